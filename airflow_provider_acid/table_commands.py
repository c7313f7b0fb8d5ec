"""What the command ``airflow-acid`` does about one table: show what a compaction would do, and take one back."""

from __future__ import annotations

from argparse import Namespace

from airflow_provider_acid.compaction.evaluate.budget import RunBudget
from airflow_provider_acid.compaction.evaluate.decision_report import RunShare
from airflow_provider_acid.compaction.evaluate.demand import Demand, DemandedType, one_entity, one_table
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.housekeep.undo import Undo
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.option import MOST_IN_RUN


def plan(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: Namespace) -> None:
    """Show what a compaction of a table would do, and why; changes nothing.

    The table is looked at although ``no_auto_compaction`` is set on it, for it is asked for by name.

    :param given: ``table`` with its database, ``partition`` or None, and ``type``.
    :raises AcidError: an argument cannot be used, or metastore or storage do not answer.
    """
    selection = one_table(*_database_and_table(given.table))
    demand = Demand.of(given.partition, DemandedType(given.type))
    with endpoint.connect() as (client, queue):
        evaluation = Initiator(client, queue, settings.for_what_is_asked_by_name(), demand=demand).evaluate(selection)
    for _, line in RunShare.within(RunBudget(MOST_IN_RUN), evaluation).lines(all_partitions=True):
        print(line)


def undo(endpoint: MetastoreEndpoint, settings: CompactionSettings, given: Namespace) -> None:
    """Take back the newest compaction of a table without partitions, or of one partition.

    :param given: ``table`` with its database, ``partition`` or None, and ``dry_run``, with which nothing is changed.
    :raises AcidError: as :meth:`.Undo.undo`, or an argument cannot be used.
    """
    entity = one_entity(*_database_and_table(given.table), given.partition)
    with endpoint.connect() as (client, queue):
        newest = Undo(client, queue, settings)
        undone = newest.look(entity) if given.dry_run else newest.undo(entity)
    print(f"{'would be taken back' if given.dry_run else 'taken back'}: {undone}")


def _database_and_table(name: str) -> tuple[str, str]:
    database, _, table = name.partition(".")
    return database, table
