"""Spark's own operator as it is used here: for one application, and listened to."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature, unwrap
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.spark import listening

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import Context


class Submission(SparkSubmitOperator):
    """One application.

    :ivar refusals: what was printed of what keeps it from its work; see :func:`~..hooks.spark.listening`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # A resumed application would work on the run directory of a dead attempt.
        self.durable = False
        self.refusals: list[ConfigurationError] = []

    @property
    def is_begun(self) -> bool:
        """Whether there is a hook, which may have started something."""
        return self._hook is not None

    def run(self, context: Context) -> None:
        """Submit it, and wait for its end, within the execution of another operator, of which Airflow warns."""
        unwrap(SparkSubmitOperator.execute)(self, context)

    def _get_hook(self) -> SparkSubmitHook:
        return listening(super()._get_hook(), self.refusals.append)


def submission(task_id: str, arguments: Mapping[str, Any]) -> Submission:
    """An application of a task.

    :param arguments: of Spark's operator; None is its default.
    :raises ConfigurationError: Spark's provider is too old for one.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    if unknown := sorted(given.keys() - signature(SparkSubmitOperator.__init__).parameters.keys()):
        raise ConfigurationError(
            f"argument {unknown[0]}",
            "is not known to the Spark provider that is installed",
            "leave it out, or install a newer apache-airflow-providers-apache-spark",
        )
    # Of a DAG of its own: in the task's, where that is open, its name is taken.
    dag = DAG("submission", schedule=None)
    return Submission(task_id=task_id, dag=dag, task_group=dag.task_group, **given)
