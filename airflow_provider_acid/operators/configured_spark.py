"""Spark's own operator; what a task does not say of connection, sizes and properties, ``[hive_acid]`` says.

It is made when an application is to be submitted: to import Spark's provider takes a second, and DAG files are read all
day long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_acid.config import option
from airflow_provider_acid.parameters import as_spark_conf
from airflow_provider_acid.run_options import SPARK_SIZES

if TYPE_CHECKING:
    from airflow_provider_acid.operators.submission import Submission

SET_PER_APPLICATION = ("application", "application_args", "java_class", "name", "durable", "reconnect_on_retry")
"""Arguments of Spark's operator that are taken and passed over."""

_TEMPLATED = (
    *("conf", "files", "py_files", "jars", "driver_class_path", "packages", "exclude_packages", "keytab", "principal"),
    *("proxy_user", "env_vars", "post_submit_commands", "properties_file"),
    *SPARK_SIZES,
)


class ConfiguredSparkOperator(BaseOperator):
    """Submits applications to the Spark of the site, by Spark's own operator, whose arguments it takes.

    Sizes are templated, and may arrive as text; an empty text is none, also where ``[hive_acid]`` has one.

    :param conn_id: the Spark connection; default: ``[hive_acid] spark_conn_id``.
    """

    template_fields: Sequence[str] = _TEMPLATED
    conf: dict[str, Any] | None
    files: str | None
    py_files: str | None
    env_vars: dict[str, str] | None

    # Named one by one, for default_args and partial() look at the names; None leaves each to Spark's operator.
    def __init__(
        self,
        *,
        conn_id: str | None = None,
        conf: dict[str, Any] | str | None = None,
        files: str | None = None,
        py_files: str | None = None,
        archives: str | None = None,
        driver_class_path: str | None = None,
        jars: str | None = None,
        packages: str | None = None,
        exclude_packages: str | None = None,
        repositories: str | None = None,
        total_executor_cores: int | str | None = None,
        executor_cores: int | str | None = None,
        executor_memory: str | None = None,
        driver_memory: str | None = None,
        keytab: str | None = None,
        principal: str | None = None,
        proxy_user: str | None = None,
        num_executors: int | str | None = None,
        status_poll_interval: int | None = None,
        env_vars: dict[str, str] | None = None,
        verbose: bool | None = None,
        spark_binary: str | None = None,
        properties_file: str | None = None,
        yarn_queue: str | None = None,
        deploy_mode: str | None = None,
        use_krb5ccache: bool | None = None,
        post_submit_commands: list[str] | None = None,
        track_driver_via_k8s_api: bool | None = None,
        yarn_track_via_rm_api: bool | None = None,
        yarn_rm_auth: object = None,
        openlineage_inject_parent_job_info: bool | None = None,
        openlineage_inject_transport_info: bool | None = None,
        application: object = None,
        application_args: object = None,
        java_class: object = None,
        name: object = None,
        durable: object = None,
        reconnect_on_retry: object = None,
        **kwargs: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        super().__init__(**kwargs)
        self.conn_id: str = given.pop("conn_id") or option("spark_conn_id")
        self.yarn_queue: str | None = given.pop("yarn_queue")
        for templated in _TEMPLATED:
            setattr(self, templated, given.pop(templated))
        self._untemplated = {name: value for name, value in given.items() if name not in SET_PER_APPLICATION}
        self._sizes: dict[str, Any] = {}

    def take_settings(self) -> None:
        """Use what the task is given, else what ``[hive_acid]`` says; comes before all else of an execution.

        :raises ConfigurationError: a size, ``conf`` or ``[hive_acid] spark_conf`` cannot be used.
        """
        self._sizes = {name: option(name, getattr(self, name)) for name in SPARK_SIZES}
        self.conf = {**option("spark_conf"), **as_spark_conf("conf", self.conf or {})}

    def submission(self, **arguments: Any) -> Submission:
        """Spark's operator as it is made for one application.

        :param arguments: instead of, and besides, the task's.
        :raises ConfigurationError: Spark's provider is too old for an argument of the task.
        """
        # Not needed to read a DAG file, and slow to import.
        from airflow_provider_acid.operators.submission import submission

        templated = {name: getattr(self, name) for name in _TEMPLATED}
        of_task = {"conn_id": self.conn_id, "yarn_queue": self.yarn_queue, **templated, **self._sizes}
        return submission(self.task_id, {**self._untemplated, **of_task, **arguments})

    @property
    def task_slots(self) -> int:
        """How many tasks the application's sizes ask for at a time; 0: they say nothing of it."""
        executors, cores = self._sizes.get("num_executors") or 0, self._sizes.get("executor_cores") or 1
        return self._sizes.get("total_executor_cores") or executors * cores
