"""What keeps a Spark application from starting: of the connection, told before anything is claimed, and YARN's word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.tickets import keytab_of_nobody

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

_QUEUE_REFUSED = re.compile(
    r"Failed to submit application_\w+ to YARN ?: "
    r"(.*(?:to (?:unknown|ambiguous|non-leaf) queue: |is not a leaf queue|rejected by queue placement policy).*)"
)
"""The first three are of YARN's CapacityScheduler, the others of its FairScheduler."""

UNFIT = "airflow-acid unfit: "
"""Begins the line by which ``spark_jobs/compact.py`` says why its driver cannot work: an error's parts in JSON."""

_NO_JAVA = re.compile(r"JAVA_HOME is not set|bin/java: .*(?:No such file or directory|not found|Permission denied)")
"""Of ``spark-class``, whose shell says it in its own language otherwise."""

_JARS_UPLOADED = "Neither spark.yarn.jars nor spark.yarn.archive is set"
"""Of Spark's client, which alone knows all places where they may be set."""


def spark_connection(conn_id: str, make_hook: Callable[[], SparkSubmitHook]) -> Mapping[str, Any]:
    """What Airflow's hook makes of a Spark connection: ``master``, ``deploy_mode``, ``spark_binary`` and more.

    :raises ConfigurationError: there is none, which Airflow's hook takes for YARN; or the hook cannot use it, as where
        it is to watch a YARN with Kerberos, or is to use Kubernetes, and a package for that is missing.
    """
    subject = f"connection {conn_id}"
    try:
        BaseHook.get_connection(conn_id)
    except AirflowNotFoundException as error:
        raise ConfigurationError(subject, "does not exist", "make one of type Spark, or correct conn_id") from error
    try:
        hook = make_hook()
        # Airflow finds out at the submission, when partitions are claimed; older providers know nothing of it.
        getattr(hook, "_validate_yarn_track_via_rm_api_config", lambda: None)()
        connection: Mapping[str, Any] = hook._connection
    except NameError as error:  # of kube_client, which Airflow's hook imports if it can, and asks for in any case
        raise ConfigurationError(
            subject,
            f"cannot be used: a package of Airflow for it is missing ({error})",
            "for Kubernetes, pip install apache-airflow-providers-cncf-kubernetes",
        ) from error
    except (ValueError, RuntimeError) as error:
        raise ConfigurationError(subject, f"cannot be used for Spark ({error})", "correct it") from error
    if connection.get("keytab") and not connection.get("principal"):
        raise ConfigurationError(f"{subject} or the task itself", *keytab_of_nobody("keytab", "principal"))
    return connection


def conf_of_kubernetes(master: str) -> Mapping[str, str]:
    """What Spark is told besides on Kubernetes: nobody else is to read what it uploads, the run's key among it.

    YARN's staging directories are private by themselves. Another user's driver could not use the run directory either.
    """
    return {"spark.hadoop.fs.permissions.umask-mode": "077"} if master.startswith("k8s://") else {}


def listening(hook: SparkSubmitHook, refused: Callable[[ConfigurationError], None]) -> SparkSubmitHook:
    """Have it told what keeps an application from its work, now and later; the hook keeps the last lines alone.

    Where Spark uploads its own jars, the log says what keeps it from that.

    :param refused: given what ``spark-submit`` prints of it: that YARN has no such queue, that there is no Java, or the
        application's own word that it cannot work where its driver is.
    """
    process = hook._process_spark_submit_log

    def heard(lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            reason = _refusal_in(line, hook._connection["queue"])
            if reason is not None:
                refused(reason)
            if _JARS_UPLOADED in line:
                hook.log.warning(
                    "Spark uploads its own jars, some 370 MB, to YARN for this batch, and will for every other: set "
                    "spark.yarn.jars to where they lie on the nodes or on HDFS (docs/deploy.md, YARN)"
                )
            yield line

    def listen(itr: Iterator[str]) -> None:
        process(heard(itr))
        # It is the pipe itself, read to its end, which Airflow leaves to the garbage collector.
        close: Callable[[], None] = getattr(itr, "close", lambda: None)
        close()

    hook._process_spark_submit_log = listen  # type: ignore[method-assign]
    return hook


def _refusal_in(line: str, queue: str | None) -> ConfigurationError | None:
    if UNFIT in line:
        with suppress(ValueError, TypeError):
            return ConfigurationError(**json.loads(line.partition(UNFIT)[2]))
    said = _QUEUE_REFUSED.search(line)
    if said is not None:
        return _unknown_queue(queue, said[1].strip())
    if _NO_JAVA.search(line):
        return ConfigurationError(
            "spark-submit",
            f"finds no Java ({line.strip()})",
            "install the Java that this Spark needs on Airflow's workers, or correct JAVA_HOME there",
        )
    return None


def _unknown_queue(queue: str | None, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"queue {queue or 'default'} of the cluster",
        f"YARN takes no application into it ({reason})",
        "name one that YARN has: in the table's properties, [hive_acid] job_queue, the task's yarn_queue or the "
        "Spark connection",
    )
