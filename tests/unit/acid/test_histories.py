"""Whatever commits, aborts, compactions and cleanings happened: each committed write is read once and no other ever.

By a reader of that moment, by one whose snapshot is older, and by one that does not check visibility (Trino).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.names import BaseName, DeltaName
from airflow_provider_acid.acid.write_ids import (
    LONG_MAX,
    TableWriteIds,
    ValidTxnList,
    ValidWriteIdList,
    cleaner_list,
    compactor_list,
)
from airflow_provider_acid.plan.obsolete import deletable, leftovers
from airflow_provider_acid.plan.partition import AttemptNames, CompactionPolicy, MinorPublication, PartitionState
from airflow_provider_acid.plan.plan import CompactionType, OutputKind
from airflow_provider_acid.plan.planning import choose, plan_compaction
from tests.harness.reader_list import reader_list
from tests.unit.acid.case_files import listing_of

FIRST_COMPACTION = 1000


@dataclass
class History:
    """A partition whose directories remember which writes they hold (write id, is delete)."""

    held: dict[str, frozenset[tuple[int, bool]]] = field(default_factory=dict)
    mark: int = 0
    open: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    writes: set[tuple[int, bool]] = field(default_factory=set)
    overwrites: set[int] = field(default_factory=set)
    compactions: int = 0
    uncommitted: set[int] = field(default_factory=set)
    readers: list[tuple[ValidWriteIdList, ValidTxnList, list[tuple[int, bool]]]] = field(default_factory=list)

    def table(self) -> TableWriteIds:
        return TableWriteIds("db.t", self.mark, frozenset(self.open), frozenset(self.aborted))

    def txns(self) -> ValidTxnList:
        return ValidTxnList(FIRST_COMPACTION + self.compactions, aborted=tuple(self.uncommitted))

    def write(self, outcome: str, kinds: tuple[bool, ...]) -> None:
        if self.overwriting:
            return
        self.mark += 1
        for is_delete in kinds:
            self.held[str(DeltaName(self.mark, self.mark, 0, is_delete=is_delete))] = frozenset(
                {(self.mark, is_delete)}
            )
            self.writes.add((self.mark, is_delete))
        {"commit": set(), "abort": self.aborted, "open": self.open}[outcome].add(self.mark)

    def overwrite(self, outcome: str) -> None:
        """INSERT OVERWRITE, which locks all other writers out."""
        if self.open:
            return
        self.mark += 1
        self.held[str(BaseName(self.mark))] = frozenset({(self.mark, False)})
        self.writes.add((self.mark, False))
        self.overwrites.add(self.mark)
        {"commit": set(), "abort": self.aborted, "open": self.open}[outcome].add(self.mark)

    @property
    def overwriting(self) -> bool:
        return bool(self.overwrites & self.open)

    def expected(self) -> list[tuple[int, bool]]:
        gone = self.open | self.aborted
        first = max(self.overwrites - gone, default=0)
        return sorted(write for write in self.writes if write[0] >= first and write[0] not in gone)

    def end(self, outcome: str) -> None:
        if self.open:
            ended = min(self.open)
            self.open.remove(ended)
            if outcome == "abort":
                self.aborted.add(ended)

    def read(self, write_ids: ValidWriteIdList, txns: ValidTxnList) -> list[tuple[int, bool]]:
        """What a reader gets: rows of current directories whose write id is valid, as often as they come."""
        directory = acid_directory(listing_of(self.files()), write_ids, txns)
        return sorted(
            write
            for part in directory.current
            for write in self.held[part.path]
            if write_ids.is_write_id_valid(write[0])
        )

    def look(self) -> None:
        """A reader takes its snapshot, and reads on until the next cleaning."""
        self.readers.append((reader_list(self.table()), self.txns(), self.expected()))

    def files(self) -> dict[str, int]:
        return {f"{name}/bucket_00000": 1 for name in self.held}

    def compact(self, wanted: CompactionType, max_num_delta: int, mixed: MinorPublication, committed: bool) -> None:
        """A compaction by the real planner, published whole; where it dies before its commit, its output stays."""
        write_ids = compactor_list(self.table())
        txn_id = FIRST_COMPACTION + self.compactions + 1
        partition = PartitionState(
            Entity("db", "t"),
            "file:/t",
            acid_directory(listing_of(self.files()), write_ids, self.txns()),
            write_ids,
            (),
            bucketed=False,
            table_parameters={},
        )
        policy = CompactionPolicy(max_num_delta, mixed)
        if choose(partition.entity, partition.directory, partition.format, wanted, policy).nothing:
            return
        plan = plan_compaction(partition, AttemptNames("a", "_a", txn_id), wanted, "", policy)
        self.compactions += 1
        if not committed:
            self.uncommitted.add(txn_id)
        rows = frozenset(
            write for path in plan.directories for write in self.held[path] if write[0] not in plan.aborted_write_ids
        )
        for output in plan.outputs:
            assert output.target not in self.held
            kinds = {output.kind is OutputKind.DELETES} if plan.type is CompactionType.MINOR else {False, True}
            self.held[output.target] = frozenset(write for write in rows if write[1] in kinds)

    def clean(self) -> None:
        highest = compactor_list(self.table()).high_water_mark
        write_ids = cleaner_list(self.table(), highest)
        self.readers.clear()
        for path in deletable(listing_of(self.files()), write_ids, self.txns()):
            del self.held[path]
        assert leftovers(listing_of(self.files()), "db.t", highest) == () or self.uncommitted


steps = st.lists(
    st.tuples(
        st.just("write"),
        st.sampled_from(["commit", "commit", "abort", "open"]),
        st.sampled_from([(False,), (True,), (False, True)]),
    )
    | st.tuples(st.just("overwrite"), st.sampled_from(["commit", "abort", "open"]))
    | st.tuples(st.just("end"), st.sampled_from(["commit", "abort"]))
    | st.tuples(
        st.just("compact"),
        st.sampled_from(CompactionType),
        st.sampled_from([2, 3, 500]),
        st.sampled_from(MinorPublication),
        st.booleans(),
    )
    | st.tuples(st.just("look"))
    | st.tuples(st.just("clean")),
    max_size=25,
)


@given(steps)
@settings(max_examples=300, deadline=None)
def test_every_committed_write_is_read_exactly_once_after_every_step(history_steps: list[tuple[object, ...]]) -> None:
    history = History()
    for name, *arguments in history_steps:
        getattr(history, str(name))(*arguments)
        now = reader_list(history.table())
        assert history.read(now, history.txns()) == history.expected()
        # Trino takes no notice of a compaction's transaction.
        assert history.read(now, ValidTxnList(LONG_MAX)) == history.expected()
        for write_ids, txns, expected in history.readers:
            assert history.read(write_ids, txns) == expected
