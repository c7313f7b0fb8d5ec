"""A DAG as Airflow stores it and finds it again: the class that does it has another name in Airflow 2.11."""

from __future__ import annotations

import json
from typing import Any

from airflow.serialization import serialized_objects

_STORE: Any = getattr(serialized_objects, "DagSerialization", None) or serialized_objects.SerializedDAG


def stored_and_found(dag: object) -> Any:
    """The DAG after a round trip through JSON."""
    return _STORE.from_dict(json.loads(json.dumps(_STORE.to_dict(dag))))
