"""Hive reads the same rows, with the same row ids, before and after this project compacts, whatever the table.

Every kind is compacted by a major, changed, and compacted by a minor and a major (W-29, W-30). What else a kind
proves is in its ``proves`` and in the name of its case.
"""

from __future__ import annotations

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3
from tests.judge.compactors import Compacted, Compactor, compactor_for
from tests.judge.conftest import StartHive
from tests.judge.kinds import KINDS
from tests.judge.readings import check_bases, check_every_way, read
from tests.judge.statements import run, under
from tests.judge.table_kind import TableKind

CASES = [
    pytest.param(
        version,
        kind,
        id=" ".join((f"hive_{version}-{kind.name}", *kind.proves.split())),
        marks=pytest.mark.xdist_group(version),
    )
    for kind in KINDS
    for version in kind.versions
]


@pytest.mark.parametrize(("version", "kind"), CASES)
def test_hive_reads_the_same_rows_whenever_this_project_compacts(
    start_hive: StartHive, version: str, kind: TableKind
) -> None:
    hive = start_hive(version)
    # Hive 4's own Initiator asks for nothing in such a database; on Hive 3 the kinds say so themselves.
    hive.execute("create database if not exists judge with dbproperties ('no_auto_compaction'='true')")
    table = f"judge.{kind.name}"
    with under(hive, kind.settings), compactor_for(hive, "judge") as compactor:
        for statement in kind.write:
            run(hive, table, statement)
        written = read(hive, table, kind.read)
        compacted = _compact_all(hive, compactor, table, CompactionType.MAJOR)
        assert any(one.targets for one in compacted), compacted
        check_every_way(hive, table, kind.read, written, f"after a major: {compacted}")

        for statement in kind.on_top:
            run(hive, table, statement)
        changed = read(hive, table, kind.read)
        assert changed != written
        for wanted in CompactionType.MINOR, CompactionType.MAJOR:
            compacted = _compact_all(hive, compactor, table, wanted)
            _check_targets(version, kind, wanted, compacted)
            check_every_way(hive, table, kind.read, changed, f"after changes and a {wanted.value}: {compacted}")
        if kind.full_acid:
            check_bases(hive, table, f"after {compacted}")
    # Hive's own threads look at every table that was ever written to, once a second, as long as it is there.
    hive.execute(f"drop table {table}")


def _check_targets(version: str, kind: TableKind, wanted: CompactionType, compacted: list[Compacted]) -> None:
    """A minor makes deltas, or else it proves nothing of minors; Hive 3 knows none of insert-only tables."""
    targets = [target for one in compacted for target in one.targets]
    minor = wanted is CompactionType.MINOR and (kind.full_acid or version != HIVE_3)
    assert all(target.startswith("base_") is not minor for target in targets), targets
    assert targets or (wanted is CompactionType.MAJOR and not kind.full_acid), "there was something to merge"


def _compact_all(hive: HiveEngine, compactor: Compactor, table: str, wanted: CompactionType) -> list[Compacted]:
    """Compacts and cleans every partition; Hive reads the same between the two."""
    done = []
    for entity in _entities(hive, table):
        before = read(hive, table, "*")
        done.append(compactor.compact(entity, wanted))
        assert read(hive, table, "*") == before, f"after {done[-1]}"
        compactor.clean(entity)
    return done


def _entities(hive: HiveEngine, table: str) -> list[Entity]:
    database, _, name = table.partition(".")
    if not any(line.startswith("# Partition Information") for line in hive.execute(f"describe {table}")):
        return [Entity(database, name)]
    return [Entity(database, name, partition) for partition in hive.execute(f"show partitions {table}")]
