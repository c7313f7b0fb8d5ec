"""Who puts a dead attempt's things in order may die over it; on Hive 3 the rename stays, and the heir only notes it."""

from __future__ import annotations

import pytest

from tests.crash.ending import finish
from tests.harness.compaction_chain import run_until_killed
from tests.harness.crash_case import ITS_END, chain_for
from tests.harness.table_state import TableState

AFTER_A_RENAME = (
    *("recovered", "enqueued", "claimed", "transaction_opened", "recorded"),
    *("marked_compacted", "committed"),
)
WITH_AN_OUTPUT = ("recovered", "recorded", "staged", *ITS_END)


@pytest.mark.parametrize(
    ("first", "second"),
    [*(("published", step) for step in AFTER_A_RENAME), *(("fenced", step) for step in WITH_AN_OUTPUT)],
)
def test_a_successor_that_dies_leaves_nothing_worse(state: TableState, first: str, second: str) -> None:
    run_until_killed(chain_for(state), first)
    run_until_killed(chain_for(state), second)
    finish(state)
