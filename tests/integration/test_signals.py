"""What a real compaction tells others: Spark's user interface while it runs, the page, and the tables' asset events."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_provider_acid.assets.table import acid_table
from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from tests.harness.airflow_connections import connections_to
from tests.integration.compaction_site import Site

# Airflow's hook leaves process and pipe to the garbage collector, which may come in any later test of this file.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


class Task:
    """A task's instance that keeps what is pushed, and looks at once what answers at Spark's address."""

    dag_id, run_id, task_id, map_index = "d", "r", "compact", -1

    def __init__(self) -> None:
        self.pushed: dict[str, str] = {}
        self.answers: list[int] = []

    def xcom_push(self, key: str, value: str) -> None:
        self.pushed[key] = value
        if key == "hive_acid_spark_ui":
            with urllib.request.urlopen(value, timeout=30) as answer:
                self.answers.append(answer.status)


def test_a_compaction_has_its_links_and_events(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in connections_to(site.server, f"{site.server.host}:{site.server.port}").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[1]"}))
    table = site.table("t", partitions=["p=a"])
    table.insert(1, partition="p=a")
    table.insert(2, partition="p=a")
    asset = acid_table(site.server.host, site.database, "t", port=site.server.port)
    operator = AcidCompactionOperator(
        task_id="compact",
        partitions=[{"database": site.database, "table": "t", "partition": "p=a"}],
        conf={"spark.ui.enabled": "true"},
        outlets=[asset],
    )
    task, events = Task(), OutletEventAccessors()
    context: Any = {"ti": task, "outlet_events": events}
    [outcome] = operator.execute(context)
    assert outcome["state"] == "compacted"
    assert re.fullmatch(r"http://\S+:\d+", task.pushed["hive_acid_spark_ui"])
    assert task.answers == [200], "the link was pushed after the application had gone"
    assert task.pushed["hive_acid_page"] == f"/hive-acid/#/partition/{site.database}/t/p%3Da"
    assert events[asset].partition_keys == {"p=a"}
    assert (events[asset].extra["compacted"], events[asset].extra["rows"]) == (1, 2)
    assert not list(table.location.rglob("application.json"))
