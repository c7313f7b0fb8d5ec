"""Spark's own operator; what a task does not say of connection, sizes and properties, ``[hive_acid]`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_provider_acid.config import option
from airflow_provider_acid.parameters import as_spark_conf
from airflow_provider_acid.run_options import SPARK_SIZES


class ConfiguredSparkOperator(SparkSubmitOperator):
    """Submits an application to the Spark of the site.

    Sizes are templated, and may arrive as text; an empty text is none, also where ``[hive_acid]`` has one.

    :param conn_id: the Spark connection; default: ``[hive_acid] spark_conn_id``.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, *SPARK_SIZES)

    def __init__(
        self,
        *,
        conn_id: str | None = None,
        num_executors: int | str | None = None,
        executor_cores: int | str | None = None,
        total_executor_cores: int | str | None = None,
        executor_memory: str | None = None,
        driver_memory: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(conn_id=conn_id or option("spark_conn_id"), **kwargs)
        self.num_executors = num_executors
        self.executor_cores = executor_cores
        self.total_executor_cores = total_executor_cores
        self.executor_memory = executor_memory
        self.driver_memory = driver_memory

    def take_settings(self) -> None:
        """Use what the task is given, else what ``[hive_acid]`` says; comes before all else of an execution.

        :raises ConfigurationError: a size, ``conf`` or ``[hive_acid] spark_conf`` cannot be used.
        """
        for name in SPARK_SIZES:
            setattr(self, f"_{name}", option(name, getattr(self, name)))
        self.conf = {**option("spark_conf"), **as_spark_conf("conf", self.conf or {})}

    @property
    def task_slots(self) -> int:
        """How many tasks the application's sizes ask for at a time; 0: they say nothing of it."""
        executors, cores = self._num_executors or 0, self._executor_cores or 1
        return self._total_executor_cores or executors * cores
