"""What a DAG file says of Spark: arguments of Spark's operator, by the names that they have there."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature

from airflow_provider_acid.operators.compaction import AcidCompactionOperator
from airflow_provider_acid.operators.configured_spark import SET_PER_APPLICATION, ConfiguredSparkOperator
from airflow_provider_acid.options import OPTIONS
from airflow_provider_acid.parameters import refuse_unknown
from airflow_provider_acid.run_options import SPARK_SIZES

_BESIDES = {"max_active_partitions", "run_directory", "idle_timeout_seconds", "ship_package"}

SPARK_ARGUMENTS = tuple(
    sorted(
        {*signature(ConfiguredSparkOperator.__init__).parameters, *_BESIDES} - {"self", "kwargs", *SET_PER_APPLICATION}
    )
)
"""All that may be said."""

_OPTIONS = {"conn_id": "spark_conn_id", "conf": "spark_conf", **{name: name for name in SPARK_SIZES}}


def spark_arguments(dag_id: str, given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Sizes, with which the form starts, and arguments of the operator.

    :raises ConfigurationError: a name or value cannot be used.
    """
    refuse_unknown(f"spark of {dag_id}", given, SPARK_ARGUMENTS, "no argument of Spark's operator has that name")
    values = dict(given)
    for name in given.keys() & _OPTIONS.keys():
        values[name] = OPTIONS[_OPTIONS[name]].kind.parse(f"spark {name} of {dag_id}", given[name])
    sizes = {name: values.pop(name) for name in SPARK_SIZES if name in values}
    templated = AcidCompactionOperator.template_fields
    return sizes, {name: _kept(value) if name in templated else value for name, value in values.items()}


def _kept(value: object) -> object:
    """As it is, after a DAG whose templates give objects has read its texts as Python."""
    if isinstance(value, Mapping):
        return {key: _kept(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_kept(item) for item in value]
    return repr(value) if isinstance(value, str) else value
