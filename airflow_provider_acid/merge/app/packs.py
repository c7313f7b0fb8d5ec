"""Small plans together in one Spark job, whose start costs more than merging a small partition."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from airflow_provider_acid.exceptions import AcidError
from airflow_provider_acid.merge.app.bucket_tasks import Begun, Refusal, RunItem, begin_task
from airflow_provider_acid.merge.app.partition_job import carry_out, check_wanted, merge_alone, merged_of, unforeseen
from airflow_provider_acid.merge.app.spark_tasks import run_tasks, without_refusals
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult

SMALL_PLAN_BYTES = 16 << 20
"""Plans that read no more than this go into packs."""

PACK_BYTES = 256 << 20
PACK_PLANS = 32
"""A pack has no more, for its results come together."""

_FINISHING_THREADS = 8

Answers = dict[int, Begun | Refusal]
"""What came of a plan's buckets, by their places in it; one is missing where its task failed."""


@dataclass(frozen=True)
class Packed:
    """A plan in a pack, and what its tasks have to know."""

    plan: CompactionPlan
    item: RunItem


@dataclass(frozen=True)
class _Bucket:
    number: int
    place: int
    input_bytes: int


def is_small(plan: CompactionPlan) -> bool:
    """Whether a plan may go into a pack."""
    return sum(bucket.input_bytes for bucket in plan.buckets) <= SMALL_PLAN_BYTES


def run_pack(spark: SparkSession, pack: Mapping[int, Packed], slots: int) -> dict[int, CompactionResult]:
    """Carry out plans up to their finished staging directories, each independent of the others.

    What a task could not do for a reason that may pass, or what turns out too large, is done by Spark jobs of the
    plan's own.

    :param pack: by number in the run.
    :param slots: how many tasks run at a time.
    :returns: the results, as of :func:`~.partition_job.run_plan`.
    """
    begin_seconds = time.monotonic()
    answers = _merge_together(spark, {number: one for number, one in pack.items() if _is_wanted(one)}, slots)

    def finish(number: int) -> CompactionResult:
        one = pack[number]
        merge = partial(_merged, spark, one, answers.get(number, {}))
        try:
            return carry_out(one.item.storages, one.plan, merge, begin_seconds)
        except Exception as error:  # noqa: BLE001 - of whatever kind, it is this plan's alone
            return unforeseen(one.plan, error, time.monotonic() - begin_seconds)

    with ThreadPoolExecutor(_FINISHING_THREADS) as threads:
        return dict(zip(pack, threads.map(finish, pack), strict=True))


def _is_wanted(one: Packed) -> bool:
    """Whether merging it makes sense; why not, :func:`~.partition_job.carry_out` says."""
    try:
        check_wanted(one.item.storages.open(one.plan.location), one.plan)
    except AcidError:
        return False
    return True


def _merge_together(spark: SparkSession, pack: Mapping[int, Packed], slots: int) -> dict[int, Answers]:
    buckets = [
        _Bucket(number, place, bucket.input_bytes)
        for number, one in pack.items()
        for place, bucket in enumerate(one.plan.buckets)
    ]
    documents = {number: one.plan.to_json() for number, one in pack.items()}
    items = {number: one.item for number, one in pack.items()}

    def work(share: Sequence[_Bucket]) -> list[tuple[int, int, Begun | Refusal]]:
        found = []
        for bucket in share:
            try:
                answer = begin_task(documents[bucket.number], bucket.place, items[bucket.number])
            except Exception:  # noqa: BLE001 - of whatever kind, it is this plan's alone
                traceback.print_exc()
            else:
                found.append((bucket.number, bucket.place, answer))
        return found

    answers: dict[int, Answers] = {}
    try:
        shares = run_tasks(spark, f"a pack of {len(pack)} small partitions", _shares(buckets, slots), work)
    except AcidError as error:
        print(f"compaction {error}", flush=True)
        return answers
    for number, place, answer in (found for share in shares for found in share):
        answers.setdefault(number, {})[place] = answer
    return answers


def _shares(buckets: Iterable[_Bucket], slots: int) -> list[list[_Bucket]]:
    """For each task slot about as many bytes, in whole buckets."""
    shares: list[list[_Bucket]] = [[] for _ in range(slots)]
    sizes = [0] * slots
    for bucket in sorted(buckets, key=lambda bucket: -bucket.input_bytes):
        smallest = sizes.index(min(sizes))
        shares[smallest].append(bucket)
        # Also one without bytes takes time.
        sizes[smallest] += bucket.input_bytes + 1
    return [share for share in shares if share]


def _merged(spark: SparkSession, one: Packed, answers: Answers) -> list[Merged]:
    """What the pack's tasks merged of a plan.

    :raises TaskError: one refused.
    """
    found: list[Begun] = without_refusals([answers[place] for place in sorted(answers)])
    if len(found) < len(one.plan.buckets) or any(isinstance(begun, SlicedRows) for begun in found):
        return merge_alone(spark, one.plan, one.item)
    return merged_of(one.plan, [merged for begun in found if not isinstance(begun, SlicedRows) for merged in begun])
