"""The metastore's database refuses connections for a minute, after any step."""

from __future__ import annotations

import pytest

from airflow_provider_acid.compaction.steps import Step
from tests.crash.metastores import HIVE_3
from tests.crash.refusal import check_refusal
from tests.harness.crash_case import CLEANING_STEPS, STEPS

REFUSES_SECONDS = 60.0

COMPACTING = [Step(step) for step in STEPS if step in {known.value for known in Step} and step not in CLEANING_STEPS]


@pytest.mark.xdist_group(HIVE_3.name)
@pytest.mark.parametrize("step", [*COMPACTING, Step.CLEANING_DECIDED, Step.FILES_DELETED])
def test_a_database_that_refuses_connections_for_a_minute(request: pytest.FixtureRequest, step: Step) -> None:
    check_refusal(HIVE_3.table.register(HIVE_3.start(request)), step, REFUSES_SECONDS)
