"""What spark-submit would refuse is refused with a remedy, and nothing else."""

from __future__ import annotations

import pytest

from airflow_provider_acid.compaction.run.application import check_deploy_mode
from airflow_provider_acid.exceptions import ConfigurationError


@pytest.mark.parametrize("master", ["spark://a:7077", "spark://a:7077,b:7077", "local", "local[2]"])
def test_cluster_mode_is_refused_where_spark_has_none_for_python(master: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        check_deploy_mode(master, "cluster")
    assert str(refusal.value).startswith(f"deploy mode 'cluster' on {master}: is not possible: ")
    assert "Remedy: use deploy mode 'client'" in str(refusal.value)


@pytest.mark.parametrize(
    ("master", "deploy_mode"),
    [
        ("spark://a:7077", "client"),
        ("spark://a:7077", None),
        ("local[2]", None),
        ("yarn", "cluster"),
        ("k8s://https://a:6443", "cluster"),
    ],
)
def test_every_other_mode_is_left_to_spark(master: str, deploy_mode: str | None) -> None:
    check_deploy_mode(master, deploy_mode)
