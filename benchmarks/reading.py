"""How fast Hive reads this project's result, beside its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from airflow_provider_acid.plan.plan import CompactionType
from benchmarks.acid_tables import Shape, write_table
from benchmarks.measured import Findings, Measured, ratio
from benchmarks.merges import Side
from benchmarks.other_sides import HiveSide
from benchmarks.rounds import Rounds, Say
from tests.harness.generated_table import COLUMNS
from tests.harness.thrift_admin import TableDefinition, ThriftAdmin

_QUERY = "select count(*), sum(order_id), max(customer), sum(amount) from {table}"
_DATABASE = "benchmark"


def measure_reading(hive: HiveSide, project: Side, shape: Shape, folder: Path, rounds: Rounds, say: Say) -> Findings:
    """Compact a table by each, publish both results as tables of Hive's, and let Hive read them in turns."""
    table = folder / "read"
    write_table(shape, table)
    compactors: dict[str, Side] = {"by_hive": hive, "by_project": project}
    server = hive.engine.metastore
    with ThriftAdmin(server.host, server.port) as admin:
        admin.create_database(_DATABASE)
        for name, side in compactors.items():
            say(f"reading: compacting by {side.name}")
            made = side.compact(table, shape, CompactionType.MAJOR, side.meter())
            properties = {"transactional": "true", "transactional_properties": "default", **shape.properties}
            place = admin.create_table(TableDefinition(_DATABASE, name, COLUMNS, properties=properties))
            transactions = admin.open_transactions(shape.write_ids)
            admin.allocate_write_ids(_DATABASE, name, transactions)
            for transaction in transactions:
                admin.commit(transaction)
            place.mkdir(parents=True, exist_ok=True)
            shutil.move(made, place / f"base_{shape.write_ids:07d}")
    shutil.rmtree(table)
    meters = {name: hive.meter() for name in compactors}
    answers: dict[str, list[str]] = {}
    for round_name in rounds.names():
        for name, meter in meters.items():
            say(f"reading: {round_name}, {name}")
            with meter.running():
                answers[name] = hive.engine.execute(_QUERY.format(table=f"{_DATABASE}.{name}"))
    if answers["by_hive"] != answers["by_project"]:
        raise RuntimeError(f"Hive reads other rows of this project's result: {answers}")
    measured = {
        name: Measured(f"Hive reads a major of {shape.rows:,} rows", name, rounds.counted(meter))
        for name, meter in meters.items()
    }
    found = ratio("read_vs_hive_result", measured["by_project"], measured["by_hive"])
    return Findings(tuple(measured.values()), (found,))
