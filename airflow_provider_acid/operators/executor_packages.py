"""What Spark's executors have, asked by an application of a second that is submitted as compactions are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import requires
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.spark import listening
from airflow_provider_acid.shipped_files import shipped_file

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

CHECK = "executors' packages"
MARK = "airflow-acid executors: "
"""Begins the line that ``spark_jobs/executors.py`` prints."""

NEEDED = ("pyarrow", "pyorc", "protobuf")


class ExecutorPackages:
    """Asks once.

    :param hook: of the Spark connection; whoever kills the task ends its application by it.
    """

    def __init__(self, hook: SparkSubmitHook) -> None:
        self.hook = hook
        self._heard: list[str] = []
        self._refused: list[ConfigurationError] = []
        process = hook._process_spark_submit_log

        def listen(itr: Iterator[str]) -> None:
            process(self._listening(itr))

        hook._process_spark_submit_log = listen  # type: ignore[method-assign]
        listening(hook, self._refused.append)

    def findings(self) -> Iterator[Finding]:
        """A finding for each kind of executor, or that none was told of."""
        try:
            self.hook.submit(str(shipped_file("spark_jobs/executors.py")))
        except Exception as error:  # any of client, standalone, YARN or Kubernetes mode
            yield Finding(
                CHECK,
                Severity.PROBLEM,
                f"a Spark application of one second failed: {self._refused[0].reason if self._refused else error}",
                "no compaction can be carried out",
                "look at the log of this task and of the application",
            )
            return
        if not self._heard:
            yield Finding(
                CHECK,
                Severity.NOTE,
                "the application ran, and what it printed was not seen here, as in deploy mode cluster",
                "which packages the executors have is not known",
                "look at the driver's log for the line that begins with airflow-acid executors",
            )
            return
        kinds: Sequence[Mapping[str, str]] = json.loads(self._heard[0])
        for kind in kinds:
            yield finding_of(kind)
        if len(kinds) > 1:
            yield Finding(
                CHECK,
                Severity.WARNING,
                f"executors have {len(kinds)} different sets of versions",
                "what one of them compacts another may fail at",
                "install the same packages on all machines of the cluster",
            )

    def _listening(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            if MARK in line:
                self._heard.append(line.partition(MARK)[2])
            yield line


def finding_of(kind: Mapping[str, str]) -> Finding:
    """What one kind of executor has, and whether that is enough.

    :param kind: versions by name; empty where a package cannot be imported.
    """
    required = {one.name: one.specifier for one in map(Requirement, requires("airflow-provider-acid") or ())}
    bad = [name for name in NEEDED if not kind[name] or not required[name].contains(kind[name], prereleases=True)]
    told = ", ".join(f"{name} {version or 'missing'}" for name, version in kind.items())
    if not bad:
        return Finding(CHECK, Severity.OK, told)
    wanted = " ".join(f"'{name}{required[name]}'" for name in bad)
    return Finding(
        CHECK,
        Severity.PROBLEM,
        f"executors have {told}",
        "every merge fails there",
        f"pip install {wanted} for the Python of the executors (spark.pyspark.python)",
    )
