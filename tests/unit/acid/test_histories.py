"""Whatever commits, aborts, compactions and cleanings happened: each committed write is read once and no other ever."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.names import BaseName, DeltaName
from airflow_provider_acid.acid.obsolete import deletable
from airflow_provider_acid.acid.write_ids import (
    TableWriteIds,
    ValidTxnList,
    ValidWriteIdList,
    cleaner_list,
    compactor_list,
    reader_list,
)
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

    def table(self) -> TableWriteIds:
        return TableWriteIds("db.t", self.mark, frozenset(self.open), frozenset(self.aborted))

    def txns(self) -> ValidTxnList:
        return ValidTxnList(10_000, aborted=tuple(self.uncommitted))

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

    def read(self, write_ids: ValidWriteIdList) -> list[tuple[int, bool]]:
        """What a reader gets: rows of current directories whose write id is valid, as often as they come."""
        directory = acid_directory(listing_of(self.files()), write_ids, self.txns())
        return sorted(
            write
            for part in directory.current
            for write in self.held[part.path]
            if write_ids.is_write_id_valid(write[0])
        )

    def files(self) -> dict[str, int]:
        return {f"{name}/bucket_00000": 1 for name in self.held}

    def compact(self, kind: str, committed: bool) -> None:
        write_ids = compactor_list(self.table())
        directory = acid_directory(listing_of(self.files()), write_ids, self.txns())
        inputs = directory.current if kind == "major" else directory.deltas
        ranges = {(delta.name.min_write_id, delta.name.max_write_id) for delta in directory.deltas}
        # A minor of one range would make a second directory of that range, of which Hive reads both.
        if len(inputs) < 2 or (kind == "minor" and len(ranges) < 2):
            return
        self.compactions += 1
        txn_id = FIRST_COMPACTION + self.compactions
        if not committed:
            self.uncommitted.add(txn_id)
        rows = frozenset(
            write for part in inputs for write in self.held[part.path] if write[0] not in write_ids.aborted
        )
        highest = max(
            [delta.name.max_write_id for delta in directory.deltas]
            + ([directory.base.write_id] if directory.base else [])
        )
        if kind == "major":
            self.held[str(BaseName(highest, txn_id))] = rows
            return
        lowest = min(delta.name.min_write_id for delta in directory.deltas)
        for is_delete in (False, True):
            name = DeltaName(lowest, highest, visibility_txn_id=txn_id, is_delete=is_delete)
            self.held[str(name)] = frozenset(write for write in rows if write[1] == is_delete)

    def clean(self) -> None:
        highest = compactor_list(self.table()).high_water_mark
        write_ids = cleaner_list(self.table(), highest)
        for path in deletable(listing_of(self.files()), write_ids, self.txns()):
            del self.held[path]


steps = st.lists(
    st.tuples(
        st.just("write"),
        st.sampled_from(["commit", "commit", "abort", "open"]),
        st.sampled_from([(False,), (True,), (False, True)]),
    )
    | st.tuples(st.just("overwrite"), st.sampled_from(["commit", "abort", "open"]))
    | st.tuples(st.just("end"), st.sampled_from(["commit", "abort"]))
    | st.tuples(st.just("compact"), st.sampled_from(["major", "minor"]), st.booleans())
    | st.tuples(st.just("clean")),
    max_size=25,
)


@given(steps)
@settings(max_examples=300, deadline=None)
def test_every_committed_write_is_read_exactly_once_after_every_step(history_steps: list[tuple[object, ...]]) -> None:
    history = History()
    for name, *arguments in history_steps:
        getattr(history, str(name))(*arguments)
        assert history.read(reader_list(history.table())) == history.expected()
