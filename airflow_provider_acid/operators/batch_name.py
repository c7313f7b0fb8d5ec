"""Names of batches: of mapped tasks, so that Airflow's grid shows partitions and no numbers, and of applications."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.parameters import as_entities

BATCH_NAME_TEMPLATE = "{{ task.batch_name }}"

MAX_NAME_CHARACTERS = 200
"""Of an application's name. Kubernetes takes 253 for a pod's, which has an id of Spark's and ``-driver`` besides."""


class NamedByPartitions:
    """Shows each mapped task under the name of its batch; comes before an operator with a parameter ``partitions``.

    ``partial`` is where a mapped task takes its template from: a default of the constructor would not reach it.
    """

    partitions: object

    @classmethod
    def partial(cls, **kwargs: Any) -> Any:
        """As Airflow's; ``map_index_template`` may be given and then holds."""
        return super().partial(**{"map_index_template": BATCH_NAME_TEMPLATE, **kwargs})  # type: ignore[misc]

    @property
    def batch_name(self) -> str:
        """The partition, or how many there are and the first one's table; nothing for what is no list of partitions.

        Never an error: Airflow renders it after the work, and would fail the task.
        """
        try:
            entities = as_entities("partitions", self.partitions)
        except ConfigurationError:
            return ""
        if not entities:
            return "no partitions"
        first = entities[0]
        return str(first) if len(entities) == 1 else f"{len(entities)} partitions from {first.full_table_name}"


def application_name(entities: Sequence[Entity]) -> str:
    """The application's name, as Hive names its jobs: ``<hostname>-compactor-<db>.<table>.<partition>``.

    Braces, which may stand in a partition's name and mean something to YARN, are parentheses here; a long name is cut.
    """
    first = entities[0]
    name = f"{socket.gethostname()}-compactor-{first.full_table_name}"
    if first.partition is not None:
        name += f".{first.partition}"
    name = name.translate(str.maketrans("{}", "()"))[:MAX_NAME_CHARACTERS]
    return name if len(entities) == 1 else f"{name} and {len(entities) - 1} more"
