"""What the command ``airflow-acid`` does about one table: plan, compact, clean up, take a compaction back."""

from __future__ import annotations

import logging
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import airflow_provider_acid
from airflow_provider_acid.compaction.clean.cleaner import Cleaner
from airflow_provider_acid.compaction.clean.cleaning import Cleaning, CleaningState
from airflow_provider_acid.compaction.evaluate.budget import RunBudget
from airflow_provider_acid.compaction.evaluate.decision_report import RunShare
from airflow_provider_acid.compaction.evaluate.demand import Demand, DemandedType, as_partition, one_entity, one_table
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.compaction.run.application import (
    DEFAULT_CONF,
    application_arguments,
    check_program,
    watch_application,
    write_key_file,
    write_package_archive,
)
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.settings import CleaningLockAction, CompactionSettings
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.connected_batch import connected_batch
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.metastore.queue import CompactionQueue
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.values import CompactionRow
from airflow_provider_acid.option import MOST_IN_RUN
from airflow_provider_acid.parameters import as_number
from airflow_provider_acid.shipped_files import shipped_file

WAIT_SECONDS = 21_600.0
"""How long a cleaning waits for readers; as long as the option ``cleaning_deadline_seconds`` does."""

POLL_SECONDS = 10.0

STANDARD_ERROR = 2
"""Its descriptor; what Spark prints is not the answer."""

SET_HERE = ("--deploy-mode", "--py-files")
"""Options of spark-submit that :func:`compact` gives itself: Spark would take the last of two, and tell nobody."""


def plan(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: Namespace) -> bool:
    """Show what a compaction of a table would do, and why; changes nothing.

    The table is looked at although ``no_auto_compaction`` is set on it, for it is asked for by name.

    :param given: ``table`` with its database, ``partition`` or None, and ``type``.
    :raises AcidError: an argument cannot be used, or metastore or storage do not answer.
    """
    _planned(endpoint, settings, given)
    return True


def compact(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: Namespace) -> bool:
    """Compact a table, or what is due of it, with one Spark application whose driver runs beside this process.

    Interrupted, terminated or hung up, it ends the application and gives all claims, transactions and locks back.

    :param given: as for :func:`plan`; ``spark_submit``, the command line to start with, ``run_directory`` or None, and
        ``dry_run``, with which it is :func:`plan`.
    :returns: whether nothing failed; also where nothing is due, unless the table or partition is refused.
    :raises AcidError: an argument cannot be used, spark-submit is not there, or metastore or storage do not answer.
    """
    program, *options = _spark_submit(given.spark_submit)
    share = _planned(endpoint, settings, given)
    if given.dry_run or not share.taken:
        return given.dry_run or not share.evaluation.refused
    # It is long work: what the batch logs is its progress.
    logging.getLogger(airflow_provider_acid.__name__).setLevel(logging.INFO)
    settings = replace(settings, run_directory=given.run_directory)
    batch = connected_batch(endpoint, settings, share.taken, f"command/{uuid4().hex}")
    queue = share.taken[0].job_queue
    conf = {**DEFAULT_CONF, **({"spark.yarn.queue": queue} if queue else {})}
    configured = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    with _interrupted_by_signals():
        batch.start()
        try:
            run = batch.wait_until_planned()
            if run is not None:
                _run_application([program, *configured, *options, "--name", f"airflow-acid compact {given.table}"], run)
        except BaseException:
            batch.stop()
            raise
        finally:
            batch.application_ended()
            outcomes = batch.join()
            for outcome in outcomes:
                print(f"{outcome.entity}: {outcome.state.value}: {outcome.message}")
    return not any(outcome.state.is_failure for outcome in outcomes)


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """A block that SIGTERM interrupts like Ctrl-C, and SIGHUP where it is not ignored, as ``nohup`` has it."""

    def interrupt(*_: object) -> None:
        # Of a connection that is gone both the kernel and the shell tell: the second must not end the giving back.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        raise KeyboardInterrupt

    hang_up = signal.getsignal(signal.SIGHUP)
    terminate = signal.signal(signal.SIGTERM, interrupt)
    if hang_up is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, hang_up)
        signal.signal(signal.SIGTERM, terminate)


def _planned(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: Namespace) -> RunShare:
    selection = one_table(*_database_and_table(given.table))
    demand = Demand.of(given.partition, DemandedType(given.type))
    with endpoint.connect() as (client, queue):
        evaluation = Initiator(client, queue, settings.for_what_is_asked_by_name(), demand=demand).evaluate(selection)
    share = RunShare.within(RunBudget(MOST_IN_RUN), evaluation)
    for _, line in share.lines(all_partitions=True):
        print(line)
    return share


def _spark_submit(text: str) -> list[str]:
    """The words of ``--spark-submit``, whose program is there."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigurationError("--spark-submit", f"is no command line ({error})", "close the quotation") from error
    if not words:
        raise ConfigurationError("--spark-submit", "is empty", "write e.g. 'spark-submit --master yarn'")
    for word in words:
        if word.partition("=")[0] in SET_HERE:
            raise ConfigurationError(
                f"{word} of --spark-submit",
                "is set by the command itself: the driver runs here, and this package is sent along",
                "leave it out; in deploy mode 'cluster' compact by Airflow's acid_compact_table",
            )
    check_program(words[0])
    return words


def _run_application(spark_submit: Sequence[str], run: RunDirectory) -> None:
    """Have it done, to its end; what came of it the batch reads in the run directory."""

    def tell(url: str) -> None:
        print(f"Spark: {url}", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="airflow-acid-") as directory:
        arguments = application_arguments(run, write_key_file(Path(directory), run.key))
        sent = ("--deploy-mode", "client", "--py-files", str(write_package_archive(Path(directory))))
        application = str(shipped_file("spark_jobs/compact.py"))
        with watch_application(run.storages, run.location, tell):
            subprocess.call(
                [*spark_submit, *sent, application, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=STANDARD_ERROR,
            )


def clean(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: Namespace) -> bool:
    """Delete what compactions of a table replaced, once no reader can need it.

    The command knows nothing of ``[hive_acid]``, so whoever gives it says how long things are kept at this site. It
    deletes nothing beside somebody who holds a lock, whatever the site's options say.

    :param given: ``table`` with its database, ``partition`` or None, ``keep_replaced_hours`` and ``retention_seconds``,
        ``dry_run``, with which nothing is changed, and ``no_wait``, with which it looks once.
    :returns: whether nothing waits any more, and nothing failed.
    :raises AcidError: an argument cannot be used, the table does not exist, or metastore or storage do not answer.
    """
    selection = one_table(*_database_and_table(given.table))
    partition = as_partition("partition", given.partition or "")
    settings = replace(
        settings,
        keep_replaced_hours=as_number("--keep-replaced-hours", given.keep_replaced_hours),
        cleaner_retention_seconds=as_number("--retention-seconds", given.retention_seconds),
        cleaner_lock_timeout_action=CleaningLockAction.WAIT,
    )
    with endpoint.connect() as (client, queue):
        rows = [row for row in _rows_to_clean(client, queue, selection) if partition in (None, row.entity.partition)]
        entities = {row.entity for row in rows}
        if not entities:
            print(f"nothing of {given.table} waits to be cleaned")
            return True
        if given.dry_run:
            return _told(Cleaner(client, queue, settings, keeps_claims=False).look(entities), "would be ")
    deadline = time.monotonic() + (0.0 if given.no_wait else WAIT_SECONDS)
    while True:
        with endpoint.connect() as (client, queue):
            cleanings = Cleaner(client, queue, settings, connect=endpoint.connect).clean(entities)
        is_done = _told(cleanings)
        entities = {one.entity for one in cleanings if one.state is CleaningState.WAITING}
        if not entities or time.monotonic() >= deadline:
            return is_done
        time.sleep(POLL_SECONDS)


def _rows_to_clean(
    client: AcidMetastoreClient, queue: CompactionQueue, selection: TableSelection
) -> list[CompactionRow]:
    (name,) = selection.include
    client.get_table(*_database_and_table(name))
    return [row for row in queue.rows() if row.waits_to_be_cleaned and selection.matches(row.entity.full_table_name)]


def _told(cleanings: Sequence[Cleaning], would: str = "") -> bool:
    """Print what was found or done; whether nothing waits or failed."""
    for one in sorted(cleanings, key=lambda one: (one.entity, one.request_id)):
        state = "cleaned" if one.state is CleaningState.READY else one.state.value
        is_done = one.state in (CleaningState.READY, CleaningState.CLEANED)
        print(f"{one.entity}: request {one.request_id}: {would if is_done else ''}{state}: {one.message}")
    return not any(one.state in (CleaningState.WAITING, CleaningState.FAILED) for one in cleanings)


def undo(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: Namespace) -> bool:
    """Take back the newest compaction of a table without partitions, or of one partition.

    :param given: ``table`` with its database, ``partition`` or None, and ``dry_run``, with which nothing is changed.
    :raises AcidError: as :meth:`.Undo.undo`, or an argument cannot be used.
    """
    entity = one_entity(*_database_and_table(given.table), given.partition)
    with endpoint.connect() as (client, queue):
        newest = Undo(client, queue, settings)
        undone = newest.look(entity) if given.dry_run else newest.undo(entity)
    print(f"{'would be taken back' if given.dry_run else 'taken back'}: {undone}")
    return True


def _database_and_table(name: str) -> tuple[str, str]:
    database, _, table = name.partition(".")
    return database, table
