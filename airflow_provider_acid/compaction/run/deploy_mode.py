"""Where Spark's driver runs: what spark-submit would refuse is refused before any partition is claimed."""

from __future__ import annotations

from airflow_provider_acid.exceptions import ConfigurationError


def check_deploy_mode(master: str, deploy_mode: str | None) -> None:
    """Spark starts no Python application in cluster mode on a standalone cluster, nor without a cluster.

    :param master: of the Spark connection.
    :param deploy_mode: of the operator or the Spark connection; None is Spark's default, ``client``.
    :raises ConfigurationError: spark-submit (``SparkSubmit.prepareSubmitEnvironment``) refuses this pair.
    """
    if deploy_mode != "cluster":
        return
    if master.startswith("spark://"):
        raise ConfigurationError(
            f"deploy mode 'cluster' on {master}",
            "is not possible: Spark's standalone clusters run the driver of no Python application",
            "use deploy mode 'client', in which the driver runs beside this task, or a YARN or Kubernetes cluster",
        )
    if master.startswith("local"):
        raise ConfigurationError(
            f"deploy mode 'cluster' on {master}", "is not possible: there is no cluster", "use deploy mode 'client'"
        )
