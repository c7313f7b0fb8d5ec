"""Plays a history step by step, and compares every state with the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.acid_history import steps
from tests.harness.acid_history.cleaner import Cleaner
from tests.harness.acid_history.compactor import Compactor
from tests.harness.acid_history.hive_compactor import HiveCompactor
from tests.harness.acid_history.metastore import LockKind, State, TxnType
from tests.harness.acid_history.partition import Partition
from tests.harness.acid_history.readings import OpenSnapshot, Readings
from tests.harness.acid_history.script import as_python, in_words
from tests.harness.acid_history.soft_deletes import SoftDeletes
from tests.harness.acid_history.steps import Death, History, Meanwhile, Outcome, Step
from tests.harness.acid_history.streaming import Streams
from tests.harness.acid_history.writer import HiveWriter

_MAX_READERS = 3
_STATES = {Outcome.COMMIT: State.COMMITTED, Outcome.ABORT: State.ABORTED}
_TO_END_WITH = (
    steps.Compact(CompactionType.MINOR),
    steps.Clean(),
    steps.Compact(CompactionType.MAJOR),
    steps.Clean(),
)


class HistoryError(AssertionError):
    """A history went wrong; the message is its script."""


def play(history: History, folder: Path) -> Counter[str]:
    """Play a history in an empty folder.

    After the last step all transactions end, and the partition is compacted once more in both ways and cleaned.

    :returns: how often things happened that a test of histories must not be without.
    :raises HistoryError: an engine would have read something else than the truth, or something was refused that must
        not be.
    """
    player = _Player(history, folder)
    try:
        player.play(history.steps)
        player.settle()
    except Exception as error:
        script = "\n".join(f"  {line}" for line in player.partition.script)
        files = "\n".join(f"  {path.relative_to(folder)}" for path in sorted(folder.rglob("*")) if path.is_file())
        raise HistoryError(
            f"{error}\nscript:\n{script}\nfiles:\n{files}\nplay again:\n  {as_python(history)}"
        ) from error
    return player.figures()


class _Player:
    def __init__(self, history: History, folder: Path) -> None:
        self.partition = Partition(history.table, folder)
        self._readings = Readings(self.partition)
        self._writer = HiveWriter(self.partition)
        self._streams = Streams(self.partition)
        self._compactor = Compactor(
            self.partition, self._check_published, lambda: any(not reader.is_hive for reader in self._readers)
        )
        self._cleaner = Cleaner(self.partition)
        self._hive = HiveCompactor(self.partition, lambda: [reader.txn for reader in self._readers])
        self._soft_deletes = SoftDeletes(self.partition)
        self._readers: list[OpenSnapshot] = []
        self._begun: list[int] = []
        self._counts: Counter[str] = Counter()
        self._actions: dict[type[Any], Callable[[Any], str | None]] = {
            steps.Pause: lambda step: None,
            steps.Write: self._write,
            steps.Overwrite: self._overwrite,
            steps.Stream: self._stream,
            steps.Begin: self._begin,
            steps.End: self._end,
            steps.ElsewhereWrite: self._write_elsewhere,
            steps.AddColumn: self._add_column,
            steps.SoftDelete: self._soft_deletes.add,
            steps.OpenReader: self._open_reader,
            steps.CloseReader: self._close_reader,
            steps.Compact: self._compact,
            steps.StartCompaction: self._start_compaction,
            steps.FinishCompaction: lambda step: self._compactor.finish(step.death),
            steps.GroupBegins: lambda step: self._compactor.begin_group(has_ended=step.has_ended),
            steps.HiveCompacts: self._hive_compacts,
            steps.HiveStarts: lambda step: self._hive.start(step.type),
            steps.HiveMarks: lambda step: self._hive.mark(step.type),
            steps.HiveFinishes: lambda step: self._hive.finish(_STATES.get(step.outcome, State.COMMITTED)),
            steps.HiveCleans: lambda step: self._hive.clean(waits_for_readers_only=step.waits_for_readers_only),
            steps.Clean: self._clean,
        }

    def play(self, some: Iterable[Step]) -> None:
        """Do the steps and look at the partition after each."""
        self._check()
        for step in some:
            self.partition.script.append(in_words(step))
            said = self._actions[type(step)](step)
            if said is not None:
                self.partition.script.append(f"    {said}")
                self._counts[type(step).__name__] += 1
                self._check()

    def settle(self) -> None:
        """End everything that is open, one by one, clean after each, compact and clean."""
        self.play([steps.FinishCompaction(Death.NOT), steps.HiveFinishes()])
        while self._enders:
            self.play([steps.End(0, Outcome.COMMIT), steps.Clean()])
        while self._readers:
            self.play([steps.CloseReader(0), steps.Clean()])
        self.play(_TO_END_WITH)

    def figures(self) -> Counter[str]:
        """What happened how often."""
        for plan in self._compactor.done:
            files = plan.input_files
            self._counts[f"{plan.type.value} published, {len(plan.outputs)} directories"] += 1
            self._counts["original files merged"] += any(
                file.synthetic and not file.synthetic.write_id for file in files
            )
            self._counts["LOAD DATA files merged"] += any(file.synthetic and file.synthetic.write_id for file in files)
            self._counts["flush lengths kept"] += any(file.committed_bytes is not None for file in files)
            self._counts["aborted write ids dropped"] += bool(plan.aborted_write_ids)
        self._counts["died one step before its end"] += self._compactor.died_before_its_end
        self._counts["directories deleted"] += self._cleaner.deleted
        self._counts["requests cleaned"] += self._cleaner.cleaned
        self._counts["aborted write ids forgotten"] += self.partition.forgotten
        self._counts["readings"] += self._readings.compared
        return self._counts

    def _check(self) -> None:
        self._check_published(True)
        self._soft_deletes.check()

    def _check_published(self, is_complete: bool) -> None:
        # Hive's worker publishes a pair by two renames, and beside what others left, and no lock keeps Trino away.
        hive_only = not is_complete or self._hive.has_compacted
        for reader in (self._readings.now(), *self._readers):
            self._readings.check(reader, hive_only=hive_only)

    @property
    def _enders(self) -> list[int]:
        """Open transactions that a step may end."""
        silent = self.partition.metastore.silent
        return [*self.partition.writers, *self._soft_deletes.open, *self._compactor.groups, *silent]

    def _act(self, meanwhile: Meanwhile) -> bool:
        """Somebody acts in the middle of another step; whether there was anything to do."""
        self.partition.script.append(f"    before look {meanwhile.look}: {in_words(meanwhile.step)}")
        said = self._actions[type(meanwhile.step)](meanwhile.step)
        if said is None:
            return False
        self.partition.script.append(f"        {said}")
        self._counts[f"{type(meanwhile.step).__name__} between two looks"] += 1
        self._check()
        return True

    def _clean(self, step: steps.Clean) -> str:
        with self.partition.looks.disturbed_by(step.meanwhile, self._act):
            return self._cleaner.clean()

    def _writers_txn(self, *, is_late: bool = False) -> int:
        if is_late and self._begun:
            return self._begun.pop(0)
        txn = self.partition.metastore.open()
        self.partition.writers.append(txn)
        return txn

    def _end_as(self, txn: int, outcome: Outcome) -> None:
        if outcome is not Outcome.OPEN:
            self.partition.end(txn, _STATES[outcome])
            self._streams.ended(txn)

    def _write(self, step: steps.Write) -> str | None:
        if self.partition.overwriter or self.partition.metastore.is_closed:
            return None
        txn = self._writers_txn(is_late=step.is_late)
        self.partition.lock(txn)
        write_id = self.partition.metastore.allocate(txn)
        self._writer.write(step, txn, write_id)
        self._end_as(txn, step.outcome)
        return f"transaction {txn}, write id {write_id}"

    def _overwrite(self, step: steps.Overwrite) -> str | None:
        if self.partition.writers or self._compactor.has_lock or self._hive.is_running:
            return None
        txn = self._writers_txn()
        self.partition.lock(txn, LockKind.EXCLUSIVE)
        write_id = self.partition.metastore.allocate(txn)
        self.partition.overwriter = txn
        self._writer.overwrite(step, write_id)
        self._end_as(txn, step.outcome)
        return f"transaction {txn}, write id {write_id}"

    def _stream(self, step: steps.Stream) -> str | None:
        if self.partition.overwriter:
            return None
        metastore = self.partition.metastore
        txns = [metastore.open() for _ in step.outcomes]
        self.partition.writers += txns
        for txn in txns:
            self.partition.lock(txn)
        write_ids = {txn: metastore.allocate(txn) for txn in txns}
        self._streams.open(step, write_ids)
        for txn, outcome in zip(txns, step.outcomes, strict=True):
            if outcome is Outcome.OPEN:
                break
            self._end_as(txn, outcome)
        return f"transactions and their write ids {write_ids}"

    def _begin(self, step: steps.Begin) -> str | None:
        txn = self.partition.metastore.open()
        self._begun.append(txn)
        self.partition.writers.append(txn)
        written = f", write id {self.partition.metastore.allocate(txn)}" if step.has_write_id else ""
        return f"transaction {txn}{written}"

    def _end(self, step: steps.End) -> str | None:
        if not self._enders or step.outcome is Outcome.OPEN:
            return None
        txn = self._streams.next_open(self._enders[step.which % len(self._enders)])
        if txn in self._soft_deletes.open:
            self._soft_deletes.end(txn, _STATES[step.outcome])
            return f"transaction {txn}"
        if txn in self._compactor.groups:
            self._compactor.end_group(txn, _STATES[step.outcome])
            return f"transaction {txn}"
        if txn in self.partition.metastore.silent:
            return self._end_dead(txn, _STATES[step.outcome])
        if txn in self._begun:
            self._begun.remove(txn)
        self._end_as(txn, step.outcome)
        return f"transaction {txn}"

    def _end_dead(self, txn: int, wanted: State) -> str:
        """By time-out, or by whoever was only asleep before his commit, whatever happened meanwhile."""
        metastore = self.partition.metastore
        if wanted is State.COMMITTED and self._compactor.wake(txn):
            self._counts["woke up before its commit"] += 1
        else:
            metastore.end(txn, State.ABORTED)
        return f"the dead transaction {txn}: {metastore.state(txn).value}"

    def _write_elsewhere(self, step: steps.ElsewhereWrite) -> str | None:
        txn = self._writers_txn()
        write_id = self.partition.metastore.allocate(txn)
        self._end_as(txn, step.outcome)
        return f"transaction {txn}, write id {write_id}"

    def _compact(self, step: steps.Compact) -> str:
        started = self._start_compaction(steps.StartCompaction(step.type, step.meanwhile))
        return f"{started}; {self._compactor.finish(step.death)}"

    def _start_compaction(self, step: steps.StartCompaction) -> str:
        with self.partition.looks.disturbed_by(step.meanwhile, self._act):
            waits = self._compactor.recover()
            if waits is not None:
                self._counts["made ready late"] += "ready for cleaning, which a dead attempt" in waits
                self._counts["ended while a successor looked"] += "which was only asleep" in waits
                return waits
            said = self._compactor.start(step.type)
        if said.startswith("refused"):
            self._counts["refused"] += 1
        return said

    def _hive_compacts(self, step: steps.HiveCompacts) -> str | None:
        if self._hive.is_running:
            return None
        started = self._hive.start(step.type)
        return None if started is None else f"{started}; {self._hive.finish(State.COMMITTED)}"

    def _add_column(self, step: steps.AddColumn) -> str | None:
        if self.partition.writers:
            return None
        self.partition.columns[f"added_{len(self.partition.columns)}"] = "int"
        return f"columns {self.partition.columns}"

    def _open_reader(self, step: steps.OpenReader) -> str | None:
        metastore, is_hive_4 = self.partition.metastore, self.partition.kind.hive_version == 4
        has_lock = step.has_lock or not is_hive_4
        if len(self._readers) == _MAX_READERS or self.partition.overwriter or (has_lock and metastore.is_closed):
            return None
        txn = metastore.open(TxnType.READ_ONLY if step.read_only and is_hive_4 else TxnType.DEFAULT)
        if has_lock:
            metastore.lock(txn, LockKind.SHARED_READ)
        reader = self._readings.now(txn, is_hive=not has_lock or metastore.type(txn) is TxnType.READ_ONLY)
        self._readers.append(reader)
        return f"transaction {txn}"

    def _close_reader(self, step: steps.CloseReader) -> str | None:
        if not self._readers:
            return None
        reader = self._readers.pop(step.which % len(self._readers))
        self.partition.metastore.end(reader.txn, State.COMMITTED)
        return f"transaction {reader.txn}"
