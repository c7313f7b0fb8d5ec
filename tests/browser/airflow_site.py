"""An Airflow with its UI, a Hive metastore with tables that Hive wrote, and users with and without rights."""

from __future__ import annotations

from pathlib import Path

from tests.browser.running_airflow import RunningAirflow
from tests.harness.hive_tables import FixtureTable, register
from tests.harness.metastore_server import MetastoreServer
from tests.harness.quickstart.work_folder import REPOSITORY

DATABASE = "shop"
TABLES = {
    **dict.fromkeys(("acid_part", "acid_merge", "acid_abort", "acid_buck", "acid_multi", "mm_plain"), "4.0.1"),
    **dict.fromkeys(("a_merge", "a_part", "a_types"), "3.1.3"),
}

LOOK = """\
from airflow.sdk import DAG
from airflow_provider_acid.sensors.compaction import AcidCompactionSensor

with DAG("look", schedule=None):
    AcidCompactionSensor(task_id="look", tables=["shop.*"], delta_num_threshold=1, decide_only=True)
"""
"""Evaluates all tables and compacts nothing."""


class AirflowSite(RunningAirflow):
    """Nothing is known of any partition at the beginning."""

    def __init__(self, folder: Path) -> None:
        installed = (REPOSITORY / "dags" / "acid_compact_table.py").read_text()
        server = MetastoreServer(folder / "metastore", reaper=False)
        super().__init__(folder, server, {"acid_compact_table.py": installed, "look.py": LOOK}, 2, {})
        self.tables: dict[str, FixtureTable] = {}

    def start(self) -> None:
        """Start the metastore and Airflow at the same time."""
        self.begin()
        try:
            self.server.start()
            self.tables = {name: register(self.server, name, version, DATABASE) for name, version in TABLES.items()}
            super().start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything."""
        super().stop()
        self.server.stop()

    def look(self) -> None:
        """Evaluate all tables, as a scheduled run does."""
        self.wait_for_run("look", self.trigger("look"))
