"""Histories for hypothesis to draw and to shrink."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from airflow_provider_acid.acid.partition import MinorPublication
from airflow_provider_acid.acid.plan import CompactionType
from tests.harness.acid_history import steps
from tests.harness.acid_history.steps import Death, History, Oddity, Outcome, TableKind, What

MIN_STEPS, MAX_STEPS = 10, 24

_picks = st.lists(st.integers(0, 8), min_size=1, max_size=4).map(tuple)
_outcomes = st.sampled_from([Outcome.COMMIT, Outcome.COMMIT, Outcome.COMMIT, Outcome.ABORT, Outcome.OPEN])
_types = st.sampled_from(list(CompactionType))
_deaths = st.sampled_from([Death.NOT, Death.NOT, Death.NOT, *Death])


def _writes(kinds: list[What], most: int) -> SearchStrategy[steps.Step]:
    statements = st.lists(st.builds(steps.Statement, st.sampled_from(kinds), _picks), min_size=1, max_size=most)
    return st.builds(steps.Write, statements.map(tuple), _outcomes, st.sampled_from([Oddity.NONE, *Oddity]))


_overwrites = st.builds(steps.Overwrite, st.lists(st.integers(0, 8), max_size=4).map(tuple), _outcomes, st.booleans())
_streams = st.builds(
    steps.Stream,
    st.lists(st.sampled_from([Outcome.COMMIT, *Outcome]), min_size=2, max_size=4).map(tuple),
    _picks,
    st.booleans(),
)
_compactions = st.builds(steps.Compact, _types, _deaths)
_COMMON: tuple[SearchStrategy[steps.Step], ...] = (
    st.just(steps.Pause()),
    _writes([What.INSERT], 1),
    _writes([What.INSERT], 1),
    _writes([What.DELETE, What.UPDATE], 1),
    _writes([What.DELETE, What.UPDATE], 1),
    _writes([What.INSERT, What.DELETE, What.UPDATE], 3),
    st.builds(steps.End, st.integers(0, 3), st.sampled_from([Outcome.COMMIT, Outcome.ABORT])),
    st.builds(steps.OpenReader),
    st.builds(steps.CloseReader, st.integers(0, 2)),
    _compactions,
    _compactions,
    _compactions,
    st.builds(steps.StartCompaction, _types),
    st.builds(steps.FinishCompaction, _deaths),
    st.builds(steps.Clean),
    st.builds(steps.Clean),
)
_RARE: tuple[SearchStrategy[steps.Step], ...] = (
    _writes([What.LOAD, What.INSERT, What.DELETE], 2),
    _overwrites,
    _streams,
    st.builds(steps.AddColumn),
    st.builds(steps.ElsewhereWrite, _outcomes) | st.builds(steps.Begin),
)
"""Each history has only some of these, so that what stands in another's way is not always there."""

_originals = st.lists(st.integers(-1, 2), min_size=1, max_size=len(steps.ORIGINAL_FILES)).map(tuple)
_tables = st.builds(
    TableKind,
    hive_version=st.sampled_from([4, 3]),
    buckets=st.sampled_from([0, 2]),
    originals=st.just(()) | st.just(()) | _originals,
    max_deltas=st.sampled_from([500, 500, 3, 5]),
    mixed=st.sampled_from([MinorPublication.UNDER_LOCK, *MinorPublication]),
)


@st.composite
def _histories(draw: st.DrawFn) -> History:
    table = draw(_tables)
    rare = [steps_of_a_kind for steps_of_a_kind in _RARE if draw(st.booleans())]
    step = _any_of(*_COMMON, *rare, *rare)
    beginning = draw(st.lists(_writes([What.INSERT], 1), max_size=3))
    return History(table, (*beginning, *draw(st.lists(step, min_size=MIN_STEPS, max_size=MAX_STEPS))))


def _any_of(*choices: SearchStrategy[steps.Step]) -> SearchStrategy[steps.Step]:
    """Unlike ``one_of``, which drops equal ones, so that nothing could be drawn more often than other things."""
    return st.integers(0, len(choices) - 1).flatmap(lambda place: choices[place])


histories: SearchStrategy[History] = _histories()
