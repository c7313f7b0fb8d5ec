"""The Spark application that says which Python and which packages the executors have; it reads and writes nothing.

Its driver prints one line: :data:`MARK` and a JSON list, with an object for each kind of executor that took a task.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

MARK = "airflow-acid executors: "
MODULES = {"pyarrow": "pyarrow", "pyorc": "pyorc", "protobuf": "google.protobuf"}
"""By the names under which they are installed."""

MOST_TASKS = 64


def versions(_: Iterable[int]) -> Iterator[str]:
    """What this executor has, by name; empty where a package cannot be imported."""
    import platform
    from importlib import import_module

    found = {"python": platform.python_version()}
    for name, module in MODULES.items():
        try:
            found[name] = str(import_module(module).__version__)
        except Exception:  # noqa: BLE001 - missing, or of another machine's kind
            found[name] = ""
    yield json.dumps(found, sort_keys=True)


def main() -> None:
    """Ask as many tasks as there are slots, and print what they said."""
    # Spark Connect may be meant by the machine's environment, or by an installed package.
    os.environ["SPARK_API_MODE"] = "classic"
    spark = SparkSession.builder.getOrCreate()
    try:
        context = spark.sparkContext
        tasks = min(max(context.defaultParallelism, 1), MOST_TASKS)
        said = context.parallelize(range(tasks), tasks).mapPartitions(versions).distinct().collect()
        print(MARK + json.dumps([json.loads(each) for each in sorted(said)]), flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
