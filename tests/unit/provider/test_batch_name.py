"""Mapped tasks are shown under the names of their partitions, whatever the partitions are."""

from __future__ import annotations

from typing import Any

import jinja2.nativetypes
import pytest
from airflow.providers.common.compat.sdk import DAG

from airflow_provider_acid.operators.cleaner import AcidCleanerOperator
from airflow_provider_acid.operators.compaction import AcidCompactionOperator

ONE = {"database": "d", "table": "orders", "partition": "p=1", "type": "major", "reason": "r"}
TWO = {"database": "d", "table": "orders", "partition": "p=2"}
BOTH = pytest.mark.parametrize("operator", [AcidCompactionOperator, AcidCleanerOperator])


def mapped(operator: Any, **arguments: Any) -> Any:
    with DAG("d", schedule=None):
        return operator.partial(task_id="t", **arguments).expand(partitions=[[ONE], [TWO]])


@BOTH
@pytest.mark.parametrize(
    ("partitions", "name"),
    [
        ([ONE], "d.orders/p=1"),
        ([ONE, TWO], "2 partitions from d.orders"),
        ([{"database": "d", "table": "plain", "partition": None}], "d.plain"),
        ([], "no partitions"),
        ("{{ not rendered }}", ""),
        ([{"table": "no database"}], ""),
        (None, ""),
    ],
)
def test_a_batch_has_a_readable_name_and_never_an_error(operator: Any, partitions: Any, name: str) -> None:
    template = mapped(operator).map_index_template
    task = operator(task_id="t", partitions="{{ not rendered }}")
    task.partitions = partitions
    assert jinja2.Environment().from_string(template).render(task=task) == name
    assert task.batch_name == name


@BOTH
def test_the_dags_author_may_name_them_otherwise(operator: Any) -> None:
    assert mapped(operator, map_index_template="{{ mine }}").map_index_template == "{{ mine }}"


@BOTH
def test_all_else_of_partial_is_airflows(operator: Any) -> None:
    task = mapped(operator, retries=3, pool="compactions", hive_acid_conn_id="other")
    assert (task.retries, task.pool) == (3, "compactions")
    assert task.partial_kwargs["hive_acid_conn_id"] == "other"
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        mapped(operator, no_such_parameter=1)
