"""Buttons beside a task's log: the Spark application's user interface, and the page of what is compacted.

The addresses are pushed as XComs under :attr:`xcom_key` as soon as they are known, so Airflow 3 shows them while the
task runs; Airflow 2 asks :meth:`get_link`, for which the provider info names the classes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow import __version__ as airflow_version
from airflow.providers.common.compat.sdk import BaseOperatorLink, XCom, conf

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

log = logging.getLogger(__name__)

PAGE = "/hive-acid/"
"""Where the page "Hive ACID" of Airflow's UI lies."""


class _PushedLink(BaseOperatorLink):
    """A link whose address is the XCom of that name."""

    def get_link(self, operator: object, *, ti_key: Any) -> str:
        """The address; empty where none was pushed, which greys the button out."""
        return str(XCom.get_value(ti_key=ti_key, key=self.xcom_key) or "")

    def push(self, context: Context, address: str) -> None:
        """Make the address known; without effect outside a task, and never a reason for it to fail."""
        ti = context.get("ti")
        if ti is None:
            return
        try:
            ti.xcom_push(key=self.xcom_key, value=address)
        except Exception as error:  # noqa: BLE001 - whatever Airflow's API raises: a compaction is worth more
            log.warning("The link %s is not shown: %s: %s", self.name, type(error).__name__, error)


class SparkUiLink(_PushedLink):
    """To the user interface of the task's Spark application, which ends with it."""

    name = "Spark UI"
    xcom_key = "hive_acid_spark_ui"


class AcidPageLink(_PushedLink):
    """To the page "Hive ACID": of the task's partition, or the overview where it has several."""

    name = "Hive ACID"
    xcom_key = "hive_acid_page"

    def push_page_of(self, context: Context, entities: Sequence[Entity], hive_acid_conn_id: str) -> None:
        """Make the address known of the page that shows these partitions of a metastore."""
        self.push(context, page_address(entities, hive_acid_conn_id))


PAGE_LINKS: tuple[AcidPageLink, ...] = () if airflow_version.startswith("2.") else (AcidPageLink(),)
"""What a task has: Airflow 2 has no such page, and nothing is there to lead to."""


def page_address(entities: Sequence[Entity], hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name) -> str:
    """The path of the page of one partition (or unpartitioned table), else of the overview."""
    prefix = urlsplit(str(conf.get("api", "base_url", fallback="") or "")).path.rstrip("/")
    is_default = hive_acid_conn_id == AcidMetastoreHook.default_conn_name
    query = "" if is_default else f"?metastore={quote(hive_acid_conn_id, safe='')}"
    if len(entities) != 1:
        return f"{prefix}{PAGE}#/partitions{query}" if query else f"{prefix}{PAGE}"
    (entity,) = entities
    names = [entity.database, entity.table, *([] if entity.partition is None else [entity.partition])]
    return f"{prefix}{PAGE}#/partition/{'/'.join(quote(name, safe='') for name in names)}{query}"
