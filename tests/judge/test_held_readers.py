"""A query of Hive 4 itself, held between its snapshot and its reading, finds its rows whatever is compacted and cleaned
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_4
from tests.integration.compaction_site import Site, StepRecorder, TxnType
from tests.judge.compactors import compactor_for
from tests.judge.conftest import StartHive
from tests.judge.table_kind import make_acid_table

pytestmark = pytest.mark.xdist_group(HIVE_4)

DATABASE = "held"
TABLE = f"{DATABASE}.t"
PARTITION = Entity(DATABASE, "t", "p=a")
QUERY = f"select v from {TABLE} where p = 'a' order by v"

READERS: dict[str, Mapping[str, str]] = {
    "before its lock": {},
    "lockless": {"hive.acid.lockless.reads.enabled": "true"},
    "read-only transaction": {"hive.txn.readonly.enabled": "true"},
    "lockless, read-only transaction": {
        "hive.acid.lockless.reads.enabled": "true",
        "hive.txn.readonly.enabled": "true",
    },
}


@pytest.fixture(params=READERS)
def hive(request: pytest.FixtureRequest, start_hive: StartHive) -> Iterator[HiveEngine]:
    """Hive 4.0.1 with a table of four write ids, one of them with a delete, and a query to be run later."""
    engine = start_hive(HIVE_4)
    make_acid_table(engine, TABLE, "(v int) partitioned by (p string)")
    engine.execute(
        *(f"insert into {TABLE} partition (p = 'a') values ({value})" for value in (1, 2, 3)),
        f"insert into {TABLE} partition (p = 'b') values (1)",
        f"delete from {TABLE} where p = 'a' and v = 1",
    )
    settings = READERS[request.param]
    engine.set(settings)
    yield engine
    engine.set(dict.fromkeys(settings, "false"))


def compact(site: Site, type: CompactionType, at: Callable[[Step], None] = lambda step: None) -> None:
    outcome = site.compact(DuePartition(PARTITION, type, "the judge wants to see it"), on_step=StepRecorder(at))
    assert outcome.state is OutcomeState.COMPACTED, outcome


def test_a_query_that_began_before_a_compaction(hive: HiveEngine) -> None:
    with compactor_for(hive, DATABASE) as compactor:
        site = compactor.site
        hive.hold(QUERY)
        compact(site, CompactionType.MAJOR)
        (cleaning,) = site.clean(PARTITION)
        assert cleaning.state is CleaningState.WAITING
        assert hive.release() == ["2", "3"]
        (cleaning,) = site.clean(PARTITION)
        assert cleaning.state is CleaningState.CLEANED
        assert hive.execute(QUERY) == ["2", "3"]


def test_a_query_that_began_while_a_later_compaction_ran_and_an_older_one_was_not_cleaned(hive: HiveEngine) -> None:
    with compactor_for(hive, DATABASE) as compactor:
        site = compactor.site
        older = site.open_txn(TxnType.DEFAULT)
        compact(site, CompactionType.MINOR)
        hive.execute(f"insert into {TABLE} partition (p = 'b') values (2)")

        def begin(step: Step) -> None:
            if step is Step.STAGED:
                hive.hold(QUERY)

        compact(site, CompactionType.MAJOR, begin)
        site.end(older, site.admin.commit)
        assert [cleaning.state for cleaning in site.clean(PARTITION)] == [CleaningState.WAITING] * 2
        assert hive.release() == ["2", "3"]
        assert [cleaning.state for cleaning in site.clean(PARTITION)] == [CleaningState.CLEANED] * 2
        assert hive.execute(QUERY) == ["2", "3"]
