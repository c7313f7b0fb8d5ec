"""Where there are no renames: the store copies file by file from where the tasks have left them.

Nobody sees a part of a single file. Of several, readers of Hive 4's kind see nothing before the commit, in whatever
order they come; those that ignore a compaction's transaction take a directory for whole as soon as it has a data file,
so that several data files are published under an EXCLUSIVE lock. Hidden files come last: a base that has nothing else
hides all older rows from some.

Of a staging directory the files go, and with them what a zombie could still publish. The plan takes the place of the
directory. It is written last and goes first: a driver looks for it once all files of the result are written, so that
whatever a sealed result names was there when its successor deleted the rest. Nobody writes such files after it. So a
zombie finds no sources, and a copy of which the request was under way is taken by the store the rules'
``late_request_seconds`` after their deletion at the latest, for it is bound to its source. The store may take minutes
to carry out what it took, so that the uploads to the journal's names are ended after that wait.

The journal stays to the end, since it tells the next recovery, should this one die, what belongs together. The result
stays until nothing can appear any more.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from time import sleep

from airflow_provider_acid.acid.names import is_hidden, marker_files
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.publish.discard import AnchoredDiscard, Discard
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, read_journal, write_journal
from airflow_provider_acid.compaction.publish.staged_files import check_found, check_markers, rejected, written_files
from airflow_provider_acid.compaction.publish.staging import FinishedOutput, staging_name
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.filesystem import ObjectStorage, join
from airflow_provider_acid.plan.exchange import (
    ATTEMPTS_DIRECTORY,
    JOURNAL_FILE,
    OUTPUTS_DIRECTORY,
    PLAN_FILE,
    RESULT_FILE,
)
from airflow_provider_acid.plan.plan import CompactionPlan, OutputDirectory
from airflow_provider_acid.plan.result import CompactionResult, OutputFile

log = logging.getLogger(__name__)


class ByCopy:
    """See :class:`~.publisher.Publisher`. Two may take over the same: all may be done twice, or be found done."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

    def take_over(self, token: str) -> str | None:
        """By deleting all that could be published; the name stays.

        Where publishing had begun, it waits until it is certain what appeared.
        """
        name = staging_name(token)
        if not self._storage.exists(name):
            return None
        self._storage.delete([f"{name}/{PLAN_FILE}"])
        self._storage.delete([f"{name}/{part}" for part in (ATTEMPTS_DIRECTORY, OUTPUTS_DIRECTORY)])
        result = f"{name}/{RESULT_FILE}"
        # Without a journal no copy was begun, and none will be, for its sources are looked up after that.
        if self._storage.exists(f"{name}/{JOURNAL_FILE}") and self._storage.exists(result):
            sleep(self._storage.rules.late_request_seconds)
            self._end_uploads(name)
        self._storage.delete([result])
        return name

    def _end_uploads(self, name: str) -> None:
        journal = read_journal(self._storage, name)
        if journal is None:
            path = f"{name}/{JOURNAL_FILE}"
            if not self._storage.exists(path):
                # Somebody else took over at the same time, and has done all this.
                return
            raise StorageError(
                join(self._storage.location, path),
                "cannot be read, so that nobody knows what its attempt may yet publish",
                "try again; if that does not help, compact it with the release of this package that wrote it",
            )
        markers = [f"{target}/{marker}" for target in journal.targets for marker in marker_files(target)]
        self._storage.end_uploads([*journal.files, *markers])

    def remove(self, name: str) -> None:
        """The plan first, then data, and last what tells of it.

        Of a published directory, too, data go first: hidden files alone make no base for Trino.
        """
        self._storage.delete([f"{name}/{PLAN_FILE}"])
        found = self._storage.list().below(name)
        data = [file for file in found.files if file.path not in (JOURNAL_FILE, RESULT_FILE)]
        self._storage.delete([f"{name}/{file.path}" for file in data if not is_hidden(file.name)])
        self._storage.delete([name])

    def give_up(self, plan: CompactionPlan) -> None:
        """After a look whether anything has a name of the result's; nothing of its own can appear later.

        Of a copy of which it does not know whether it is there, nobody gives it up.
        """
        found = [target for target in plan.targets if self._storage.exists(target)]
        if found:
            log.warning(
                "%s: %s exists, so that %s is left to the next attempt", plan.entity, ", ".join(found), plan.staging
            )
            return
        self.remove(plan.staging)

    def finished_output(self, staging: str) -> FinishedOutput | None:
        """None: a name of somebody's own would take a copy of everything."""
        return None

    def adopt(self, finished: FinishedOutput, plan: CompactionPlan) -> bool:
        """Never."""
        return False

    def discard(self) -> Discard:
        """Every deletion is bound to a file in it."""
        return AnchoredDiscard(self._storage)

    def check_staged(self, plan: CompactionPlan, result: CompactionResult, output: OutputDirectory) -> None:
        """The files are still among the tasks' attempts, where there may be others, of tasks that were repeated."""
        subject = join(self._storage.location, plan.staging)
        files = written_files(result, output.kind)
        _check_names(subject, files)
        everywhere = [file.attempt for file in result.files if file.name is not None]
        if len(set(everywhere)) != len(everywhere):
            raise rejected(subject, "is reported to hold one file in two places")
        staged = self._storage.list().below(plan.staging)
        sizes = {file.path: file.size_bytes for file in staged.files if file.path.startswith(f"{ATTEMPTS_DIRECTORY}/")}
        reported = {(file.attempt or "").removeprefix(f"{plan.staging}/"): file.size_bytes for file in files}
        check_found(subject, {path: size for path, size in sizes.items() if path in reported}, reported)
        beside = {file.path for file in staged.below(f"{OUTPUTS_DIRECTORY}/{output.kind.value}").files}
        check_markers(join(self._storage.location, plan.staged(output.kind)), beside, set(marker_files(output.target)))

    def shows_parts(self, result: CompactionResult) -> bool:
        """Whether one directory has several data files."""
        written = Counter(file.output for file in result.files if file.name is not None)
        return any(count > 1 for count in written.values())

    def publish(self, active: ActiveCompaction, result: CompactionResult, on_step: StepListener) -> None:
        """All copies, or none; the journal says which belong together."""
        plan, transaction = active.plan, active.transaction
        data: dict[str, str] = {}
        markers: dict[str, str] = {}
        for output in plan.outputs:
            data |= _data_files(result, output)
            staged = plan.staged(output.kind)
            markers |= {f"{staged}/{name}": f"{output.target}/{name}" for name in marker_files(output.target)}
        files = tuple(sorted(data.values()))
        journal = PublicationJournal(plan.targets, transaction.txn_id, transaction.exclusive_lock_id, files)
        write_journal(self._storage, plan.staging, journal)
        on_step(Step.JOURNALLED, active.entity)
        self._storage.publish_files({**data, **markers}, transaction.check)


def _data_files(result: CompactionResult, output: OutputDirectory) -> Mapping[str, str]:
    """Where the files of a directory lie, each with its path in the directory's target."""
    files = written_files(result, output.kind)
    return {file.attempt: f"{output.target}/{file.name}" for file in files if file.attempt is not None}


def _check_names(subject: str, files: Sequence[OutputFile]) -> None:
    names = [file.name or "" for file in files]
    odd = [name for name in names if "/" in name or is_hidden(name) or names.count(name) > 1]
    if odd:
        raise rejected(subject, f"is reported to hold {', '.join(sorted(odd))}, under which nothing can be published")
