"""An operator that looks at a site: what the command ``airflow-acid doctor`` sees, and what Airflow alone knows."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowFailException, BaseOperator

from airflow_provider_acid.compaction.candidates import Candidates
from airflow_provider_acid.compaction.evaluate.selection import TableSelection
from airflow_provider_acid.compaction.run.application import DEFAULT_CONF, check_deploy_mode, check_program
from airflow_provider_acid.config import configured_settings, option
from airflow_provider_acid.doctor.diagnosis import Diagnosis, diagnose
from airflow_provider_acid.doctor.finding import Finding, Severity
from airflow_provider_acid.doctor.report import brief, for_the_page, small_json
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.health.recording import record_report
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.hooks.spark import conf_of_kubernetes, spark_connection
from airflow_provider_acid.operators.executor_packages import ExecutorPackages
from airflow_provider_acid.operators.literals import refuse_wrong_literals
from airflow_provider_acid.operators.permanent import failing_at_once
from airflow_provider_acid.parameters import as_boolean, as_optional_text, as_word
from airflow_provider_acid.run_options import SPARK_SIZES

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.providers.common.compat.sdk import Context

LOG_COLUMNS = 160
SPARK_CONNECTION, SPARK_SUBMIT = "Spark connection", "spark-submit"
"""What only Airflow can be asked."""


class FailOn(str, Enum):
    """The findings that fail the task."""

    PROBLEM = "problem"
    WARNING = "warning"
    NEVER = "never"


class AcidDoctorOperator(BaseOperator):
    """Looks at a metastore and its tables, at their stores, at Spark's connection and at the health store.

    It changes nothing but that it writes a small file where compactions exchange plans, on each store, and removes it.

    The log has all findings, as the command ``airflow-acid doctor`` prints them, and so has the page in Airflow's UI,
    where ``[hive_acid] health_location`` is set. Returned is what is worst, and some of the problems and warnings.

    :param tables: patterns of tables; default: ``[hive_acid] tables``. (templated)
    :param exclude: patterns of tables to leave out; default: ``[hive_acid] exclude``; an emptied field of a form is
        none. (templated)
    :param hive_acid_conn_id: the metastore's connection. (templated)
    :param spark_conn_id: the Spark connection; default: ``[hive_acid] spark_conn_id``; empty: it is not looked at.
        (templated)
    :param executors: whether executors are asked for their packages, by a Spark application of a second. (templated)
    :param fail_on: ``problem`` (as that the metastore does not answer), ``warning`` or ``never``: the task fails, and
        is not tried again; its error is the report in brief, for whoever is notified. (templated)
    """

    template_fields: Sequence[str] = ("tables", "exclude", "hive_acid_conn_id", "spark_conn_id", "executors", "fail_on")
    template_fields_renderers: ClassVar[dict[str, str]] = {"tables": "json", "exclude": "json"}
    ui_color = "#d7ccc8"

    def __init__(
        self,
        *,
        tables: Sequence[str] | str | None = None,
        exclude: Sequence[str] | str | None = None,
        hive_acid_conn_id: str = AcidMetastoreHook.default_conn_name,
        spark_conn_id: str | None = None,
        executors: bool | str = False,
        fail_on: str = FailOn.PROBLEM.value,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.tables = tables
        self.exclude = option("exclude") if exclude is None else exclude
        self.hive_acid_conn_id = hive_acid_conn_id
        self.spark_conn_id = spark_conn_id
        self.executors = executors
        self.fail_on = fail_on
        self._hook: SparkSubmitHook | None = None
        refuse_wrong_literals(
            self,
            spark_conn_id=lambda name, value: as_optional_text(value),
            executors=as_boolean,
            fail_on=partial(as_word, words=FailOn),
        )

    @failing_at_once()
    def execute(self, context: Context) -> dict[str, object]:
        """Look at everything once; the worst, problems and warnings.

        :raises AirflowFailException: something is as bad as ``fail_on``; or a parameter or the connection cannot be
            used.
        """
        fail_on = as_word("fail_on", self.fail_on, words=FailOn)
        executors = as_boolean("executors", self.executors)
        endpoint = AcidMetastoreHook(self.hive_acid_conn_id).endpoint()
        diagnosis = self._diagnose(endpoint, executors)
        self._tell(diagnosis)
        record_report(option("health_location"), self.hive_acid_conn_id, endpoint.storages, for_the_page(diagnosis))
        if fail_on is not FailOn.NEVER:
            limit = Severity(fail_on.value)
            if diagnosis.worst.rank >= limit.rank:
                raise AirflowFailException(brief(diagnosis, limit))
        return small_json(diagnosis)

    def _diagnose(self, endpoint: MetastoreEndpoint, executors: bool) -> Diagnosis:
        selection = TableSelection.of(option("tables", self.tables), option("exclude", self.exclude or ()))
        settings = replace(configured_settings(), candidates=Candidates.ALL, storages=endpoint.storages)
        found = diagnose(endpoint, selection, settings, health_location=option("health_location"), try_storage=True)
        return replace(found, findings=(*found.findings, *self._of_spark(executors)))

    def _of_spark(self, executors: bool) -> Iterator[Finding]:
        if self.spark_conn_id == "":
            return
        # Not needed to read a DAG file, and slow to import.
        from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

        conn_id = option("spark_conn_id", self.spark_conn_id)
        check = SPARK_CONNECTION
        try:
            connection = spark_connection(conn_id, partial(SparkSubmitHook, conn_id=conn_id))
            check_deploy_mode(connection["master"], connection["deploy_mode"])
            yield Finding(check, Severity.OK, f"{conn_id} is of {connection['master']}")
            check = SPARK_SUBMIT
            check_program(connection["spark_binary"])
            yield Finding(check, Severity.OK, f"{connection['spark_binary']} is on the PATH of this worker")
        except ConfigurationError as error:
            seen = f"{error.subject}: {error.reason}"
            yield Finding(check, Severity.PROBLEM, seen, "no compaction can be started", error.remedy)
            return
        if executors:
            self._hook = SparkSubmitHook(
                conn_id=conn_id,
                conf={**DEFAULT_CONF, **conf_of_kubernetes(connection["master"]), **option("spark_conf")},
                name="airflow-acid-doctor",
                yarn_queue=option("job_queue"),
                **{name: option(name) for name in SPARK_SIZES},
            )
            yield from ExecutorPackages(self._hook).findings()

    def on_kill(self) -> None:
        """End the application that asks the executors."""
        if self._hook is not None:
            self._hook.on_kill()

    def _tell(self, diagnosis: Diagnosis) -> None:
        # Not needed to read a DAG file.
        from rich.console import Console

        from airflow_provider_acid.doctor.picture import show

        text = io.StringIO()
        show(diagnosis, Console(file=text, width=LOG_COLUMNS, color_system=None))
        for line in text.getvalue().splitlines():
            self.log.info("%s", line.rstrip())
