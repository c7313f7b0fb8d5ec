"""Publishing where there are no renames: the store copies file by file from where the tasks have left them.

Nobody sees a part of a single file. Of several, readers of Hive 4's kind see nothing before the commit, in whatever
order they come; those that ignore a compaction's transaction take a directory for whole as soon as it has a data file,
so that several data files are published under an EXCLUSIVE lock. Hidden files come last: a base that has nothing else
hides all older rows from some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from airflow_provider_acid.acid.names import is_hidden, marker_files
from airflow_provider_acid.compaction.active import ActiveCompaction
from airflow_provider_acid.compaction.publish.journal import PublicationJournal, write_journal
from airflow_provider_acid.compaction.publish.staged_files import check_found, check_markers, rejected, written_files
from airflow_provider_acid.compaction.steps import Step, StepListener
from airflow_provider_acid.filesystem import ObjectStorage, join
from airflow_provider_acid.plan.exchange import ATTEMPTS_DIRECTORY, OUTPUTS_DIRECTORY
from airflow_provider_acid.plan.plan import CompactionPlan, OutputDirectory
from airflow_provider_acid.plan.result import CompactionResult, OutputFile


class PublicationByCopy:
    """See :class:`~.store_rules.Publication`."""

    def __init__(self, storage: ObjectStorage) -> None:
        self._storage = storage

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
