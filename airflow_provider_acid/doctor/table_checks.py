"""Checks of the tables' directories: rights, what dead compactions left, twins, and what nobody compacts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.evaluate.initiator import Initiator
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.facts import load_facts
from airflow_provider_acid.compaction.outcomes import DuePartition
from airflow_provider_acid.compaction.publish.discard import DISCARD_PREFIX
from airflow_provider_acid.compaction.publish.staging import REMOVED_PREFIX, token_of_staging
from airflow_provider_acid.compaction.publish.undo_note import serves_an_undo
from airflow_provider_acid.compaction.quantities import human_seconds
from airflow_provider_acid.compaction.recover.attempts import Attempts, tokens_in
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.doctor.check import Check, Seen, note, problem, warning
from airflow_provider_acid.doctor.site import Site
from airflow_provider_acid.exceptions import (
    AcidError,
    ConfigurationError,
    MetastoreUnavailableError,
    ObjectNotFoundError,
    RefusedError,
)
from airflow_provider_acid.metastore.pools import RequestPool
from airflow_provider_acid.plan.thresholds import ENROLLED, NO_AUTO_COMPACTION

MOST_TABLES = 100
"""Tables, or partitions, that one check asks about beyond what the evaluation has seen, with a call or two each."""


def not_known(name: str, error: AcidError, what: str) -> Seen:
    """One that could not be asked ends alone.

    :param what: is not known, as a clause.
    """
    return warning(f"{name}: {error.subject}: {error.reason}", f"{what} is not known", error.remedy)


def _rights_on_tables(site: Site) -> Iterator[Seen]:
    """As the user who looks, or whom the storage options name; a table that cannot be asked ends alone."""
    for name, location in sorted(site.sightings.locations.items())[:MOST_TABLES]:
        try:
            with Supervised(name):
                may_change = site.settings.storages.open(location).may_change()
        except AcidError as error:
            yield not_known(name, error, "whether its compactions can write their results")
            continue
        if may_change is False:
            yield problem(
                f"{name}: this user may not write into {location}",
                "its compactions fail when their results are to be written, and no file is deleted",
                "give Airflow's user the right, or have it act for the tables' owner (proxy_user of the HDFS options)",
            )


def _remains(site: Site) -> Iterator[Seen]:
    """What the housekeeping would remove, by the rules by which it does."""
    hidden = dict(site.sightings.hidden)
    looked_at = {seen.entity for seen in site.evaluation.evaluated}
    # Of what is in the queue, or failed too often, the evaluation makes no listing.
    for entity in sorted(set(site.rows_by_entity) - looked_at)[:MOST_TABLES]:
        try:
            with suppress(ObjectNotFoundError), Supervised(entity):
                storage = site.settings.storages.open(load_facts(site.client, entity).location)
                if storage.exists(""):
                    hidden[entity] = storage.list().hidden_directories
        except MetastoreUnavailableError:
            raise
        except AcidError as error:
            yield not_known(str(entity), error, "what dead compactions left in it")
    ours = {entity: names for entity, names in hidden.items() if any(map(_is_ours, names))}
    if not ours:
        return
    # After the listings: whoever made a directory had opened its transaction before.
    attempts = Attempts.look(site.client, site.settings.transaction_timeout_seconds)
    for entity, names in sorted(ours.items())[:MOST_TABLES]:
        dead = list(_dead(site, attempts, entity, names))
        if dead:
            age_seconds = max(filter(None, (_age_seconds(site, attempts, name) for name in dead)), default=None)
            age = "begun nobody knows when" if age_seconds is None else f"begun {human_seconds(age_seconds)} ago"
            yield warning(
                f"{entity}: {', '.join(dead[:3])}{' and more' if len(dead) > 3 else ''} of compactions or cleanings "
                f"that died, {age}",
                "no reader sees them, but they take space, and every listing brings them",
                "run acid_housekeeping on the table, or compact the partition: both remove them",
            )


def _is_ours(name: str) -> bool:
    return token_of_staging(name) is not None or name.startswith((REMOVED_PREFIX, DISCARD_PREFIX))


def _dead(site: Site, attempts: Attempts, entity: Entity, names: Iterable[str]) -> Iterator[str]:
    rows = site.queue.rows(entity=entity)
    in_the_queue = tokens_in(rows)
    for name in filter(_is_ours, names):
        token = token_of_staging(name)
        txn = None if token is None else attempts.transaction_of(token)
        if token is None:
            # Who removes something is not in its name: nobody does where nobody is at work at all.
            is_dead = not attempts.any_alive
        else:
            is_dead = token not in in_the_queue and (txn is None or not attempts.is_alive(txn, None))
            if is_dead and any(row.waits_to_be_cleaned for row in rows):
                storage = site.settings.storages.open(load_facts(site.client, entity).location)
                is_dead = not serves_an_undo(storage, token, rows)
        if is_dead:
            yield name


def _age_seconds(site: Site, attempts: Attempts, name: str) -> float | None:
    """Since its transaction began, or its request was claimed; None where neither is remembered."""
    token = token_of_staging(name)
    txn = None if token is None else attempts.transaction_of(token)
    claims = [
        row.start_ms for row in site.rows if (pool := RequestPool.of_worker(row.worker_id)) and pool.token == token
    ]
    known = [begun for begun in (None if txn is None else txn.started_ms, *claims) if begun is not None]
    return site.age_seconds(min(known)) if known else None


def _twins(site: Site) -> Iterator[Seen]:
    for entity, ranges in sorted(site.sightings.twins.items()):
        for names in ranges:
            yield problem(
                f"{entity}: {names} are results of one range of write ids",
                "Hive 4.0 and Trino read both, every row twice; beside two delete deltas queries fail; the partition "
                "is not compacted",
                "run acid_housekeeping on the table: it tells which of them is whole; with repair_twins it removes the "
                "other",
            )


def _left_alone(site: Site) -> Iterator[Seen]:
    names = site.evaluation.not_automatic[:MOST_TABLES]
    due: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    for found in _due_by_hand(site, names) if names else ():
        if isinstance(found, Seen):
            yield found
            continue
        table = found.entity.full_table_name
        due[table] += 1
        reasons.setdefault(table, found.reason)
    for table, count in sorted(due.items()):
        yield note(
            f"{table} has {NO_AUTO_COMPACTION}, and {count} of its partitions would be due without it, the worst for "
            f"this: {reasons[table]}",
            "neither Hive nor the sensor compacts it",
            f"where nobody means that, take the property out, or set {ENROLLED}=true for this package alone; "
            "acid_compact_table compacts it once",
        )


def _due_by_hand(site: Site, names: Sequence[str]) -> Iterator[DuePartition | Seen]:
    """What would be due of tables that are named; one that cannot be looked at ends alone."""
    settings = site.settings.for_what_is_asked_by_name()
    try:
        with Supervised(", ".join(names)):
            yield from Initiator(site.client, site.queue, settings).evaluate(TableSelection.of(names)).due
    except MetastoreUnavailableError:
        raise
    except AcidError as error:
        if len(names) == 1:
            yield not_known(names[0], error, f"whether it would be due without {NO_AUTO_COMPACTION}")
            return
        for name in names:
            yield from _due_by_hand(site, [name])


def _run_directory(site: Site) -> Iterator[Seen]:
    for location in site.location_per_store:
        try:
            with Supervised(location):
                site.run_place(location).check_usable(site.settings.storages)
        except (ConfigurationError, RefusedError) as error:
            yield problem(f"{error.subject} {error.reason}", "every compaction refuses to begin", error.remedy)
        except AcidError as error:
            yield not_known(location, error, "whether compactions find a place for their plans and results")


TABLE_CHECKS = (
    Check("rights on tables", "none is missing, or the store cannot be asked", _rights_on_tables),
    Check("run directory", "it is Airflow's user's own, or can be made", _run_directory),
    Check("remains of dead compactions", "there are none", _remains),
    Check("twin results", "no range of write ids has two results", _twins),
    Check("tables that nobody compacts", f"none is due that has {NO_AUTO_COMPACTION}", _left_alone),
)
