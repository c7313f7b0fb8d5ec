"""Histories for hypothesis to draw and to shrink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from airflow_provider_acid.plan.partition import MinorPublication
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_history import steps
from tests.harness.acid_history.steps import Death, History, Meanwhile, Oddity, Outcome, Step, TableKind, What

MIN_STEPS, MAX_STEPS = 10, 24
_LOOKS = 8
"""Of a compaction, with the recovery before it."""

T = TypeVar("T")


def _any_of(*choices: SearchStrategy[T]) -> SearchStrategy[T]:
    """Unlike ``one_of``, which drops equal ones, so that nothing could be drawn more often than other things."""
    return st.integers(0, len(choices) - 1).flatmap(lambda place: choices[place])


_picks = st.lists(st.integers(0, 8), min_size=1, max_size=4).map(tuple)
_outcomes = st.sampled_from([Outcome.COMMIT, Outcome.COMMIT, Outcome.COMMIT, Outcome.ABORT, Outcome.OPEN])
_types = st.sampled_from(list(CompactionType))
_deaths = st.sampled_from([*[Death.NOT] * 6, *Death])


def _writes(kinds: list[What], most: int) -> SearchStrategy[Step]:
    statements = st.lists(st.builds(steps.Statement, st.sampled_from(kinds), _picks), min_size=1, max_size=most)
    oddities = st.sampled_from([Oddity.NONE, *Oddity])
    return st.builds(steps.Write, statements.map(tuple), _outcomes, oddities, st.booleans())


_overwrites = st.builds(steps.Overwrite, st.lists(st.integers(0, 8), max_size=4).map(tuple), _outcomes, st.booleans())
_streams = st.builds(
    steps.Stream,
    st.lists(st.sampled_from([Outcome.COMMIT, *Outcome]), min_size=2, max_size=4).map(tuple),
    _picks,
    st.booleans(),
)
_ends = st.builds(steps.End, st.integers(0, 3), st.sampled_from([Outcome.COMMIT, Outcome.ABORT]))
_readers = st.builds(steps.OpenReader, st.booleans(), st.booleans())
_begins = st.builds(steps.Begin, st.sampled_from([True, True, False]))
_inserts = _writes([What.INSERT], 1)
_changes = _writes([What.DELETE, What.UPDATE], 1)
_late_inserts = st.builds(lambda picks: steps.Write((steps.Statement(What.INSERT, picks),), is_late=True), _picks)
"""Who got his write id before others wrote commits only now."""
_of_others = _any_of(_inserts, _changes, _late_inserts, _late_inserts, _ends, _readers, _readers, _begins)


def _meanwhile(looks: int) -> SearchStrategy[tuple[Meanwhile, ...]]:
    """At most two things that happen between the looks of a step, half the time none."""
    some = st.lists(st.builds(Meanwhile, st.integers(0, looks - 1), _of_others), min_size=1, max_size=2)
    return st.just(()) | some.map(tuple)


def _alone(step: Step) -> Sequence[Step]:
    return (step,)


def _long(start: Step, between: list[Step], finish: Step) -> Sequence[Step]:
    return (start, *between, finish)


def _after_write(some: SearchStrategy[Sequence[Step]]) -> SearchStrategy[Sequence[Step]]:
    """With something to do for a compaction."""
    return st.builds(lambda write, group: (write, *group), _inserts | _changes, some)


_starts = st.builds(steps.StartCompaction, _types, _meanwhile(_LOOKS))
_finishes = st.builds(steps.FinishCompaction, _deaths)
_compactions = st.builds(steps.Compact, _types, _deaths, _meanwhile(_LOOKS)).map(_alone)
_long_compactions = st.builds(_long, _starts, st.lists(_of_others, min_size=1, max_size=3), _finishes)
"""Others read and write while one is in work."""
_two_in_a_row = st.builds(lambda first, second: (*first, *second), _compactions, _long_compactions)
"""The second may merge nothing but what the first has made."""
_some_compactions = _any_of(_compactions, _two_in_a_row, _after_write(_compactions), _after_write(_two_in_a_row))
_cleans = st.builds(steps.Clean, _meanwhile(16))
_groups = st.builds(steps.GroupBegins, st.booleans())
_hive_compacts = st.builds(steps.HiveCompacts, _types)
_hive_starts = st.builds(steps.HiveStarts, _types)
_hive_marks = st.builds(steps.HiveMarks, _types)
_hive_finishes = st.builds(steps.HiveFinishes, st.sampled_from([Outcome.COMMIT, Outcome.COMMIT, Outcome.ABORT]))
_hive_cleans = st.builds(steps.HiveCleans, st.booleans())
_elsewhere = st.builds(steps.ElsewhereWrite, _outcomes)
_cleaned_late = st.tuples(
    _readers,
    _inserts | _changes,
    st.builds(steps.Compact, _types, st.just(Death.NOT), _meanwhile(_LOOKS)),
    _any_of(_elsewhere, _elsewhere, _inserts),
    _starts,
    _readers,
    _of_others,
    st.just(steps.FinishCompaction(Death.NOT)),
    st.just(steps.CloseReader(0)),
    _cleans,
)
"""One reader holds a cleaning up until another, who does not see the next result, has come and that is published.

The second result ends at the first one's write id where nothing was written to the partition in between.
"""
_late_commits = st.tuples(st.builds(Meanwhile, st.integers(0, _LOOKS - 1), _late_inserts))
_overtaken = st.tuples(
    st.just(steps.Begin(True)), _inserts, st.builds(steps.Compact, _types, st.just(Death.NOT), _late_commits)
)
"""Who began before it commits between two of its looks."""
_grouped = st.builds(
    lambda group, between, compaction: (group, *between, *compaction),
    _groups,
    st.lists(_any_of(_of_others, _late_inserts, _cleans), max_size=2),
    _any_of(_compactions, _long_compactions),
)
"""One look for several partitions, as of a transaction that is older than the own one."""
_committed = st.builds(lambda picks: steps.Write((steps.Statement(What.INSERT, picks),)), _picks)
_mostly_minors = st.sampled_from([CompactionType.MINOR, *CompactionType])
_commits = st.builds(Meanwhile, st.integers(0, _LOOKS - 1), st.builds(steps.End, st.integers(0, 3)))
_woken = st.tuples(
    _committed,
    _committed,
    st.builds(steps.Compact, _mostly_minors, st.just(Death.AFTER_PUBLISHING)),
    st.builds(steps.Compact, _types, _deaths, st.tuples(_commits)),
)
"""Who was asleep since it published commits between two looks of whoever takes it for dead."""
_COMPACTIONS = (_some_compactions, _some_compactions, _cleaned_late, _overtaken, _grouped, _woken)
_compacted_in_between = st.tuples(
    st.just(steps.Begin(True)),
    _inserts,
    _groups,
    _hive_compacts,
    _any_of(_late_inserts, _hive_cleans),
    _any_of(_late_inserts, _hive_cleans),
    st.builds(steps.Compact, _types, _deaths),
)
"""Hive's worker compacts a partition of a group between the group's first transaction and its own."""
_dead_once_published = st.builds(
    steps.Compact, _mostly_minors, st.sampled_from([Death.AFTER_PUBLISHING, Death.BEFORE_ITS_END])
)
_compacted_beside_the_dead = st.builds(
    lambda before, dead, hive, between, *after: (*before, dead, hive, *between, *after),
    st.tuples(_committed, _committed),
    _dead_once_published,
    _any_of(*(st.builds(begun, _mostly_minors) for begun in (steps.HiveCompacts, steps.HiveStarts))),
    st.lists(_any_of(_of_others, _ends, _hive_cleans), max_size=2),
    _any_of(st.builds(steps.Compact, _types), _cleans),
    _hive_finishes,
)
"""What a dead attempt left once it had published, or whoever was asleep then commits late, beside Hive's worker."""
_between_looks = st.builds(Meanwhile, st.integers(0, 15), _any_of(_hive_compacts, _hive_cleans, _ends))
_cleaned_beside_hive = st.tuples(
    _inserts | _changes,
    st.builds(steps.Compact, _types, _deaths),
    _hive_compacts,
    st.builds(steps.Clean, st.lists(_between_looks, min_size=1, max_size=2).map(tuple)),
)
_committed_meanwhile = st.builds(
    lambda before, type, death, marked, finished, *after: (
        *before,
        steps.Compact(type, death, (Meanwhile(*marked), Meanwhile(finished, steps.HiveFinishes()))),
        *after,
    ),
    st.tuples(_committed, _committed),
    _types,
    st.sampled_from([Death.AFTER_PUBLISHING, Death.AFTER_PUBLISHING, *Death]),
    st.tuples(st.sampled_from([1, 1, 2]), _hive_marks),
    st.integers(5, 9),
    st.just(steps.HiveFinishes()),
    st.just(steps.HiveCleans(waits_for_readers_only=True)),
)
"""Hive's worker marks its request once ours was looked for, and commits after our transaction was opened."""
_RIVALS: tuple[SearchStrategy[Sequence[Step]], ...] = (
    _compacted_in_between,
    _compacted_beside_the_dead,
    _cleaned_beside_hive,
    _committed_meanwhile,
    *(choice.map(_alone) for choice in (_hive_compacts, _hive_starts, _hive_marks, _hive_finishes)),
    st.tuples(_hive_compacts, _hive_cleans),
)
"""Hive's own worker and Cleaner beside ours."""
_COMMON: tuple[SearchStrategy[Step], ...] = (
    st.just(steps.Pause()),
    _inserts,
    _inserts,
    _changes,
    _changes,
    _writes([What.INSERT, What.DELETE, What.UPDATE], 3),
    _begins,
    _ends,
    _readers,
    st.builds(steps.CloseReader, st.integers(0, 2)),
    _starts,
    _finishes,
    # Seldom, so that several compactions wait for it at times.
    _cleans,
)
_RARE: tuple[SearchStrategy[Step], ...] = (
    _writes([What.LOAD, What.INSERT, What.DELETE], 2),
    _overwrites,
    _streams,
    st.builds(steps.AddColumn),
    _elsewhere,
    st.builds(steps.SoftDelete, _outcomes),
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
    cleans_beside_readers=st.booleans(),
)


@st.composite
def _histories(draw: st.DrawFn) -> History:
    table = draw(_tables)
    rare = [steps_of_a_kind for steps_of_a_kind in _RARE if draw(st.booleans())]
    rivals = _RIVALS if table.hive_version == 4 and draw(st.booleans()) else ()
    some = _any_of(*_COMPACTIONS, *rivals, *rivals, *(choice.map(_alone) for choice in (*_COMMON, *rare, *rare)))
    beginning = draw(st.lists(_writes([What.INSERT], 1), max_size=3))
    drawn = draw(st.lists(some, min_size=MIN_STEPS, max_size=MAX_STEPS))
    return History(table, (*beginning, *(step for group in drawn for step in group)))


histories: SearchStrategy[History] = _histories()
