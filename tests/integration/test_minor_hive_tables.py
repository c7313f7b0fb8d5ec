"""Every full-ACID table that Hive wrote, as a minor: Hive's rows and ROW__IDs before, at every step, and after.

What cannot be a minor becomes a major, and says why.
"""

from __future__ import annotations

import re

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import Outcome, OutcomeState
from airflow_provider_acid.compaction.steps import Step
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.current_rows import comparable
from tests.harness.hive_tables import FixtureTable, register
from tests.integration.compaction_site import Site, StepRecorder, due
from tests.integration.test_compaction_hive_tables import directories, entities, folder, read_now

BOTH, INSERTS = ("delta", "delete_delta"), ("delta",)
BASE = ("base",)
NOTHING = ()
TABLES: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("4.0.1", "acid_plain"): (BOTH,),
    ("4.0.1", "acid_buck"): (BOTH,),
    ("4.0.1", "acid_part"): (BOTH, BOTH, INSERTS),
    ("4.0.1", "acid_partbuck"): (BOTH, BOTH),
    ("4.0.1", "acid_multi"): (NOTHING, NOTHING),
    ("4.0.1", "acid_merge"): (BOTH,),
    ("4.0.1", "acid_abort"): (BOTH,),
    ("4.0.1", "acid_evol"): (BOTH,),
    ("4.0.1", "acid_over"): (NOTHING,),
    ("4.0.1", "acid_types"): (BOTH,),
    ("4.0.1", "merge_src"): (NOTHING,),
    ("3.1.3", "a_plain"): (BOTH,),
    ("3.1.3", "a_buck"): (BOTH,),
    ("3.1.3", "a_part"): (BOTH, NOTHING, BOTH, NOTHING),
    ("3.1.3", "a_part_buck"): (BOTH, NOTHING),
    ("3.1.3", "a_multi"): (NOTHING, NOTHING),
    ("3.1.3", "a_merge"): (BOTH,),
    ("3.1.3", "a_abort"): (BOTH,),
    ("3.1.3", "a_evol"): (BOTH,),
    ("3.1.3", "a_over"): (NOTHING,),
    ("3.1.3", "a_stream"): (BASE,),
    ("3.1.3", "a_types"): (BOTH,),
    ("3.1.3", "a_conv"): (BASE,),
    ("3.1.3", "a_conv_part"): (BASE, BASE),
    ("3.1.3", "a_load"): (BASE,),
}
"""What each partition's minor makes; nothing where there is one directory of each kind at most."""


@pytest.mark.parametrize(("version", "name"), TABLES)
def test_readers_see_hives_rows_at_every_step_of_a_minor_and_of_the_major_after_it(
    site: Site, version: str, name: str
) -> None:
    table = register(site.server, name, version, site.database)
    expected = comparable(table.rows)
    assert read_now(site.admin, table) == expected

    def read_both_ways(step: Step) -> None:
        assert read_now(site.admin, table) == expected, step
        if step is not Step.FIRST_PUBLISHED:  # readers of this kind wait for the lock then
            assert read_now(site.admin, table, check_visibility=False) == expected, step

    made = []
    for entity in entities(table):
        recorder = StepRecorder(read_both_ways)
        outcome = site.compact(due(entity, type=CompactionType.MINOR), on_step=recorder)
        made.append(tuple(target.partition("_0")[0].partition("_1")[0] for target in outcome.targets))
        _check(site, table, entity, outcome)
        cleanings = site.clean(entity, on_step=recorder)
        assert {cleaning.state for cleaning in cleanings} <= {CleaningState.CLEANED}, cleanings
        read_both_ways(Step.MARKED_CLEANED)
        if outcome.targets:
            assert set(directories(folder(table, entity))) == set(outcome.targets)
        major = site.compact(entity, on_step=recorder)
        site.clean(entity, on_step=recorder)
        read_both_ways(Step.MARKED_CLEANED)
        if outcome.targets and made[-1] == BOTH:
            assert directories(folder(table, entity)) == [major.targets[0]]
    assert tuple(made) == TABLES[version, name]
    assert not [path for path in table.location.rglob("_acid_compaction*")]


def _check(site: Site, table: FixtureTable, entity: Entity, outcome: Outcome) -> None:
    assert outcome.state in (OutcomeState.COMPACTED, OutcomeState.NOTHING_TO_MERGE), outcome
    row = site.row(outcome.request_id)
    assert row.type == "minor", "SHOW COMPACTIONS tells what was asked for"
    if outcome.state is OutcomeState.COMPACTED:
        assert row.state is CompactionState.READY_FOR_CLEANING
        published = [re.sub(r"^(delete_)?delta_|_v\d+$", "", target) for target in outcome.targets]
        assert len(set(published)) == 1, "both of one range"
    if outcome.targets and outcome.targets[0].startswith("base_"):
        assert re.match(
            "test; done as a major, because .*(original files|without ACID columns|rows of aborted write ids)",
            outcome.message,
        )
    else:
        assert "done as a major" not in outcome.message
