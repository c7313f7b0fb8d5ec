"""How much memory one task takes, in a process of its own: ``python -m tests.harness.task_memory PLAN_FILE``.

The file holds a pickled plan of one bucket. Prints the MB by which the most resident memory exceeds that at the start.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.storages.local import LocalStorage
from tests.harness.plain_job import merge_bucket


def resident_mb(field: str) -> int:
    """A line of this process's status, e.g. ``VmHWM``: the most resident memory since it began.

    Not ``ru_maxrss``, which a process inherits from the one that started it.
    """
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) // 1024


def main(plan_file: str) -> None:
    """Merge the plan's bucket."""
    plan: CompactionPlan = pickle.loads(Path(plan_file).read_bytes())
    before = resident_mb("VmHWM")
    (bucket,) = plan.buckets
    merge_bucket(LocalStorage(plan.location), plan, bucket, lambda done_bytes: None)
    print(resident_mb("VmHWM") - before)


if __name__ == "__main__":
    main(sys.argv[1])
