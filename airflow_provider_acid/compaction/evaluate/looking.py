"""Looking at many partitions: where that is waiting, they are listed in threads; what was seen comes in order.

Nothing but storages is used in the threads, and each partition's is opened, listed and read by one of them. What the
storages of one store share (connections) is made for threads. The metastore's client belongs to the thread that takes
the results; where a table has more partitions than one call brings, one more thread, with a client of its own, fetches
the next batch meanwhile.

On object stores one recursive listing of a table would take fewer calls than one of each partition: a call brings 1,000
objects, and few partitions hold as many. It is not done: partitions may lie outside their table's location, and what
was listed would have to be held until the partitions are known.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory
from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.acid.listing import Listing
from airflow_provider_acid.acid.write_ids import ValidTxnList, ValidWriteIdList
from airflow_provider_acid.compaction.eligibility import file_format
from airflow_provider_acid.compaction.snapshot import list_with_base_formats
from airflow_provider_acid.compaction.supervision import Supervised
from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.metastore.values import PartitionInfo, TableInfo
from airflow_provider_acid.plan.plan import FileFormat
from airflow_provider_acid.plan.thresholds import TableKind, Thresholds

T = TypeVar("T")
R = TypeVar("R")

ITEMS_PER_THREAD = 4
"""How many items are under way at most for each thread: one is worked on, the others wait or are done."""

PATIENCE_SECONDS = 0.2
"""Threads begin when so much more time than the processor's went by in listings."""

LISTED_AT_ONCE = 16
"""So many are listed before what follows from each is worked out: in turns, each takes a processor half as long again,
as it forgets the one while it does the other."""

QUICK_SECONDS = 0.001
"""What took less has waited for no network; nor has the next one, as a rule."""


@dataclass(frozen=True)
class TableView:
    """A table as a compactor sees it at the moment of the evaluation, and when a partition of it is due.

    :param txns: which compactions are part of the table; None on Hive 3, where all are that are there.
    """

    table: TableInfo
    kind: TableKind
    thresholds: Thresholds
    txns: ValidTxnList | None
    write_ids: ValidWriteIdList


@dataclass(frozen=True)
class Place:
    """A partition, or an unpartitioned table, to look at.

    :param partition: None for a table without partitions.
    """

    view: TableView
    entity: Entity
    location: str
    partition: PartitionInfo | None


@dataclass(frozen=True)
class Seen:
    """What follows from a look; the listing itself is not kept.

    :param hidden: names of the directories right below the location that readers do not see, as of dead attempts.
    """

    place: Place
    files: FileFormat
    directory: AcidDirectory
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotSeen:
    """Something that was not looked at, or could not be.

    :param failed: the partition that could not be looked at; None where it was not to be, or a table could not.
    :param is_refused: whether somebody has to look at the reason.
    """

    reason: str
    failed: Entity | None = None
    is_refused: bool = False


@dataclass(frozen=True)
class _Listed:
    """What a storage told of a partition."""

    place: Place
    files: FileFormat
    listing: Listing
    base_formats: Mapping[str, str]


def looks(places: Iterable[Place | NotSeen], storages: Storages, threads: int) -> Generator[Seen | NotSeen, None, None]:
    """Look at partitions, in the order of :func:`in_order`, whose rules hold; what is not to be looked at passes.

    One odd partition must not keep the others from being compacted (Hive: ``testInitiatorFailure``).
    """
    with closing(in_order(lambda place: _listed(place, storages), places, threads)) as listed:
        while few := deque(islice(listed, LISTED_AT_ONCE)):
            while few:
                found = few.popleft()
                yield _seen(found) if isinstance(found, _Listed) else found


def _listed(place: Place | NotSeen, storages: Storages) -> _Listed | NotSeen:
    """One listing, a few where bases go meanwhile, and the small files that say who wrote a base. In any thread."""
    if isinstance(place, NotSeen):
        return place
    try:
        with Supervised(place.entity):
            files = file_format(place.view.table, place.partition)
            return _Listed(place, files, *list_with_base_formats(storages.open(place.location)))
    except AcidError as error:
        return _not_seen(place, error)


def _seen(listed: _Listed) -> Seen | NotSeen:
    """What the snapshot of its table sees of a partition."""
    place, listing, view = listed.place, listed.listing, listed.place.view
    insert_only = view.table.is_insert_only
    try:
        with Supervised(place.entity):
            directory = acid_directory(listing, view.write_ids, view.txns, listed.base_formats, insert_only=insert_only)
    except AcidError as error:
        return _not_seen(place, error)
    return Seen(place, listed.files, directory, listing.hidden_directories)


def _not_seen(place: Place, error: AcidError) -> NotSeen:
    told = str(error)
    # Whoever refuses a file or directory by its name alone does not know whose it is.
    is_named = place.location in told or place.entity.full_table_name in told
    return NotSeen(told if is_named else f"{place.entity}: {told}", place.entity, is_refused=True)


def in_advance(items: Iterator[T]) -> Generator[T, None, None]:
    """The items, each taken in a thread while the one before is worked on in the calling one.

    Whoever may leave before the end closes the iterator: the item that is being taken is waited for.
    """
    with ThreadPoolExecutor(1, "fetching") as pool:
        following = pool.submit(_taken, items)
        while taken := following.result():
            following = pool.submit(_taken, items)
            yield taken[0]


def _taken(items: Iterator[T]) -> tuple[T] | None:
    """The next item; None at the end."""
    for item in items:
        return (item,)
    return None


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Generator[R, None, None]:
    """The results of ``work`` in the order of the items, of which so many threads work on one each.

    Threads cost processor time and gain what would be waited for, so the calling thread works by itself until it has
    waited for :data:`PATIENCE_SECONDS` longer than it worked. For a local disk that never is so, for a server over a
    network within a few hundred items. (A mounted file system may be either.)

    Items are taken in the calling thread, and never more than :data:`ITEMS_PER_THREAD` for each thread before their
    results are. Whoever may leave before the end closes the iterator (``contextlib.closing``): what has not begun is
    dropped then, what has begun is waited for: a storage that is silent gives up by its own time limit and number of
    attempts. The same happens when an item's error comes, in its turn.

    :param threads: 1 for none: each item is worked on in the calling thread when its result is asked for.
    """
    left = iter(items)
    yield from _until_it_waits(work, left, PATIENCE_SECONDS if threads > 1 else math.inf)
    yield from _in_threads(work, left, threads)


def _until_it_waits(work: Callable[[T], R], items: Iterator[T], patience_seconds: float) -> Iterator[R]:
    waited_longer, is_quick = 0.0, False
    if patience_seconds <= 0:
        return
    for item in items:
        # The processor's clock costs more than all the rest here, so it is asked behind slow items only.
        clock, processor = time.perf_counter(), 0.0 if is_quick else time.thread_time()
        result = work(item)
        took = time.perf_counter() - clock
        worked = took if is_quick else time.thread_time() - processor
        # What a busy machine or another thread took now and then is made up for by what follows.
        waited_longer = max(waited_longer + took - 2 * worked, 0.0)
        is_quick = took < QUICK_SECONDS
        yield result
        if waited_longer >= patience_seconds:
            return


def _in_threads(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    under_way: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(threads, "looking")
    try:
        for item in items:
            under_way.append(pool.submit(work, item))
            if len(under_way) == threads * ITEMS_PER_THREAD:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
