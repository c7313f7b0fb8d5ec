"""Checks of transactions, locks and clocks: what holds everybody's cleaning back, and who does not look after it."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_acid.compaction.quantities import human_seconds
from airflow_provider_acid.doctor.check import Check, Seen, problem, warning
from airflow_provider_acid.doctor.site import Site
from airflow_provider_acid.metastore.values import LockState, TxnInfo, TxnState

OLD_SECONDS, VERY_OLD_SECONDS = 3_600.0, 86_400.0
MANY_OPEN, MANY_ABORTED = 1_000, 10_000
"""Of transactions. Every reader and every compaction is told all of them."""

CLOCK_SECONDS = 60.0
SHORT_TIMEOUT_SECONDS = 60.0
WAITING_SECONDS = 600.0

_ABORT = (
    "ask its user; where nobody works with it any more, ABORT TRANSACTIONS {id} in Hive (what it has written and not "
    "committed is lost)"
)


def _oldest(site: Site) -> Iterator[Seen]:
    begun = [txn for txn in _open(site) if txn.started_ms is not None]
    if not begun:
        return
    txn = min(begun, key=lambda txn: txn.started_ms or 0)
    seconds = site.age_seconds(txn.started_ms or 0)
    if seconds < OLD_SECONDS:
        return
    kind = problem if seconds >= VERY_OLD_SECONDS else warning
    yield kind(
        f"transaction {txn.id} of {txn.user}@{txn.host} is open for {human_seconds(seconds)}",
        "no cleaner deletes what was replaced since it began, for it may still read it",
        _ABORT.format(id=txn.id),
    )


def _dead(site: Site) -> Iterator[Seen]:
    timeout_seconds = site.client.txn_timeout_seconds()
    silent = [txn for txn in _open(site) if _silent_seconds(site, txn) > 2 * timeout_seconds]
    if silent:
        txn = min(silent, key=lambda txn: txn.id)
        yield problem(
            f"{len(silent)} open transactions sent no heartbeat for more than twice metastore.txn.timeout "
            f"({human_seconds(timeout_seconds)}), first {txn.id} of {txn.user}@{txn.host}",
            "their clients are dead, and nobody aborts them: each holds every cleaning back for ever",
            "set metastore.housekeeping.threads.on=true on one metastore (3.1: hive.compactor.initiator.on=true), or "
            + _ABORT.format(id=txn.id),
        )


def _number_open(site: Site) -> Iterator[Seen]:
    count = len(_open(site))
    if count >= MANY_OPEN:
        yield warning(
            f"{count} transactions are open",
            "each query is told all of them, and the metastore refuses new ones at metastore.max.open.txns",
            "look for clients that open transactions and never end them (SHOW TRANSACTIONS)",
        )


def _number_aborted(site: Site) -> Iterator[Seen]:
    count = sum(txn.state is TxnState.ABORTED for txn in site.transactions)
    if count >= MANY_ABORTED:
        yield warning(
            f"{count} aborted transactions are not forgotten",
            "each query is told all of them, until what they wrote is compacted and cleaned everywhere",
            "compact what they wrote to: lower aborted_txn_threshold, and let the cleaner run",
        )


def _waiting_locks(site: Site) -> Iterator[Seen]:
    begun = {txn.id: txn.started_ms for txn in site.transactions}
    for lock in (lock for lock in site.locks if lock.state is LockState.WAITING):
        started_ms = begun.get(lock.txn_id or 0)
        if started_ms is not None and site.age_seconds(started_ms) >= WAITING_SECONDS:
            yield warning(
                f"{lock} on {lock.entity or lock.database} waits, and its transaction was begun "
                f"{human_seconds(site.age_seconds(started_ms))} ago",
                "whoever asks later waits behind it, compactions too",
                "look who holds the table: SHOW LOCKS in Hive",
            )


def _timeout(site: Site) -> Iterator[Seen]:
    seconds = site.client.txn_timeout_seconds()
    if seconds < SHORT_TIMEOUT_SECONDS:
        yield warning(
            f"metastore.txn.timeout is {human_seconds(seconds)}",
            "a heartbeat that comes late on a busy machine costs a whole compaction",
            "set it to 300 s, Hive's default, on every metastore",
        )


def _clock(site: Site) -> Iterator[Seen]:
    apart_seconds = abs(site.now_ms - site.own_now_ms) / 1000
    if apart_seconds > CLOCK_SECONDS:
        yield warning(
            f"the metastore's database and this machine differ by {human_seconds(apart_seconds)}",
            "ages that people and logs compare are wrong by as much; compactions go by the metastore's clock alone",
            "let both follow one time server",
        )


def _open(site: Site) -> list[TxnInfo]:
    return [txn for txn in site.transactions if txn.state is TxnState.OPEN]


def _silent_seconds(site: Site, txn: TxnInfo) -> float:
    return 0.0 if txn.last_heartbeat_ms is None else site.age_seconds(txn.last_heartbeat_ms)


TRANSACTION_CHECKS = (
    Check("oldest transaction", "no transaction is open for an hour", _oldest),
    Check("dead clients", "every open transaction has a client that sends heartbeats", _dead),
    Check("open transactions", f"fewer than {MANY_OPEN:,} are open", _number_open),
    Check("aborted transactions", f"fewer than {MANY_ABORTED:,} are remembered", _number_aborted),
    Check("waiting locks", "no lock waits for ten minutes", _waiting_locks),
    Check("transaction time-out", "metastore.txn.timeout is a minute or more", _timeout),
    Check("clocks", "the metastore's and this machine's agree", _clock),
)
