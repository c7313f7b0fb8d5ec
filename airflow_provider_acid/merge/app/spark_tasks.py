"""A Spark job of independent tasks: each gets one object, and answers with one."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from airflow_provider_acid.exceptions import AcidError, ConfigurationError, SparkJobError
from airflow_provider_acid.merge.app.bucket_tasks import Refusal, spare_what_is_loaded
from airflow_provider_acid.merge.app.pyarrow_version import LEAST_MAJOR_VERSION
from airflow_provider_acid.plan.result import Fault

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")

_UNFIT = re.compile(
    r"(?:ModuleNotFoundError|ImportError): .+|\[PYTHON_VERSION_MISMATCH\] .+|Cannot run program \".+\": .+"
)
"""What Spark says of executors without a package, with another Python than the driver's, and with none at all."""


class TaskError(AcidError):
    """A refusal from a task, whose text already names object, reason and remedy."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message, "", "")
        self.fault = fault

    def __str__(self) -> str:
        return self.subject


def run_tasks(
    spark: SparkSession, subject: str, tasks: Sequence[_Task], work: Callable[[_Task], _Answer | Refusal]
) -> list[_Answer]:
    """Do the work of every task on Spark.

    :param subject: what is merged, for errors.
    :param work: what an executor does; it may do so several times for one task.
    :returns: the answers in the tasks' order.
    :raises ConfigurationError: executors cannot do such work at all.
    :raises SparkJobError: the job failed.
    :raises TaskError: a task refused.
    """
    if not tasks:
        return []

    def run(place: int) -> bytes:
        answer = work(tasks[place])
        spare_what_is_loaded()
        return pickle.dumps((place, answer))

    # A range gives exactly one row to each Spark task; a repartition does not promise that. A plain Python function is
    # enough for so few rows, and unlike mapInArrow it does not need pandas on the driver (of Spark 3.5 and 4.2).
    running = udf(run, "binary", useArrow=False).asNondeterministic()
    try:
        rows = spark.range(0, len(tasks), 1, len(tasks)).select(running("id").alias("answer")).collect()
    except PySparkException as error:
        raise _job_error(subject, str(error)) from error
    # Spark itself unpickles what its executors send.
    found: list[tuple[int, _Answer | Refusal]] = [pickle.loads(row["answer"]) for row in rows]
    if sorted(place for place, _ in found) != list(range(len(tasks))):
        raise SparkJobError(subject, f"Spark returned {len(found)} answers of {len(tasks)} tasks", "try again")
    return without_refusals([answer for _, answer in sorted(found, key=lambda pair: pair[0])])


def without_refusals(answers: Sequence[_Answer | Refusal]) -> list[_Answer]:
    """The answers.

    :raises TaskError: one of them is a refusal.
    """
    refusals = [answer for answer in answers if isinstance(answer, Refusal)]
    if refusals:
        more = f" ({len(refusals) - 1} more tasks failed)" if len(refusals) > 1 else ""
        raise TaskError(refusals[0].text + more, refusals[0].fault)
    return [answer for answer in answers if not isinstance(answer, Refusal)]


def _job_error(subject: str, text: str) -> AcidError:
    unfit = _UNFIT.search(text)
    if unfit is not None:
        return ConfigurationError(
            "executors of the Spark application",
            f"cannot merge anything ({unfit[0].strip()})",
            f"install pyarrow {LEAST_MAJOR_VERSION} or later, pyorc and protobuf for their Python "
            "(spark.pyspark.python), which has to be of the driver's version",
        )
    return SparkJobError(
        subject,
        f"its Spark job failed ({_last_line(text)})",
        "see the executors' logs of the Spark application; nothing was published",
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    named = [line for line in lines if "Error:" in line or "Exception:" in line]
    return (named or lines or ["no reason was given"])[-1]
