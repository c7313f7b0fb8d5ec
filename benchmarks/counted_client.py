"""How often a metastore is asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.wire import Method


class CountedClient(AcidMetastoreClient):
    """Counts the calls of all clients of its kind, by name."""

    calls: Counter[str] = Counter()

    def _invoke(self, subject: str, method: Method, *arguments: object, repeatable: bool) -> Any:
        CountedClient.calls[method.name] += 1
        return super()._invoke(subject, method, *arguments, repeatable=repeatable)
