"""Small plans that share one Spark job, whose start costs more than the merge of a small partition.

In a pack a plan is as independent as alone: what a task refuses is one plan's own; and what a task could not do, did
not come to in time, or cut into slices, is left to Spark jobs of the plan's own.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.merge.app.bucket_tasks import Begun, Refusal, RunItem, begin_task
from airflow_provider_acid.merge.app.spark_tasks import run_tasks, without_refusals
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.plan import CompactionPlan

SMALL_PLAN_BYTES = 16 << 20
"""Plans that read no more than this go into packs."""

SMALL_PLAN_FILES = 256
"""Nor more files: of small ones, opening takes longer than reading."""

PACK_BYTES = 256 << 20
PACK_PLANS = 32
"""A pack has no more, for its answers come together."""

TASK_SECONDS = 10.0
"""After so long a task of a pack begins nothing more, and what it has done is answered."""

PACK_SECONDS = 30.0
"""After so long the job of a pack is ended: a task hangs, or there is no place for it."""


@dataclass(frozen=True)
class Packed:
    """A plan in a pack, and what its tasks have to know."""

    plan: CompactionPlan
    item: RunItem


@dataclass(frozen=True)
class _Bucket:
    document: str
    place: int
    item: RunItem
    input_bytes: int


def is_small(plan: CompactionPlan) -> bool:
    """Whether a plan may go into a pack."""
    input_bytes = sum(bucket.input_bytes for bucket in plan.buckets)
    files = sum(len(bucket.rows) + len(bucket.deletes) for bucket in plan.buckets)
    return input_bytes <= SMALL_PLAN_BYTES and files <= SMALL_PLAN_FILES


class Pack:
    """One thread runs it while others wait for the answers.

    :param plans: by their numbers in the run.
    """

    def __init__(self, plans: Mapping[int, Packed]) -> None:
        self._plans = plans
        self._answers: dict[int, dict[int, Begun | Refusal]] = {}
        self._unfit: ConfigurationError | None = None
        self._is_run = threading.Event()

    def run(self, spark: SparkSession, group: str, slots: int) -> None:
        """Merge what can be merged together.

        :param group: what the Spark job is ended by; nobody else's.
        :param slots: how many tasks run at a time.
        """
        ending = threading.Timer(PACK_SECONDS, spark.sparkContext.cancelJobGroup, [group])
        ending.daemon = True
        ending.start()
        try:
            shares = _shares(self._buckets(), slots)
            for answered in run_tasks(spark, f"a pack of {len(self._plans)} partitions", shares, _work):
                for number, place, answer in answered:
                    self._answers.setdefault(number, {})[place] = answer
        except ConfigurationError as error:
            self._unfit = error
        except Exception as error:  # noqa: BLE001 - whatever ends it, each plan still has its own chance
            print(f"compaction {error} Each gets a job of its own.", flush=True)
        finally:
            ending.cancel()
            self._is_run.set()

    def merged(self, number: int) -> list[Merged] | None:
        """Wait for what was merged of a plan; None where it has to be merged alone.

        :raises ConfigurationError: executors cannot do such work, alone no more than together.
        :raises TaskError: a task refused.
        """
        self._is_run.wait()
        if self._unfit is not None:
            raise self._unfit
        answers = self._answers.get(number, {})
        begun: list[Begun] = without_refusals([answers[place] for place in sorted(answers)])
        if len(begun) < len(self._plans[number].plan.buckets):
            return None
        merged: list[Merged] = []
        for one in begun:
            if isinstance(one, SlicedRows):
                return None
            merged += one
        return merged

    def _buckets(self) -> Iterable[_Bucket]:
        for packed in self._plans.values():
            document = packed.plan.to_json()
            for place, bucket in enumerate(packed.plan.buckets):
                yield _Bucket(document, place, packed.item, bucket.input_bytes)


def _work(share: Sequence[_Bucket]) -> list[tuple[int, int, Begun | Refusal]]:
    """What an executor does with its share; what is missing in the answer was not done."""
    begin_seconds = time.monotonic()
    found = []
    for bucket in share:
        if time.monotonic() - begin_seconds > TASK_SECONDS:
            break
        try:
            answer = begin_task(bucket.document, bucket.place, bucket.item)
        except Exception:  # noqa: BLE001 - of whatever kind, it is this plan's alone
            traceback.print_exc()
        else:
            found.append((bucket.item.number, bucket.place, answer))
    return found


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
