"""What kinds of stores differ in, beyond what every storage promises."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoreRules:
    """The rules of one kind of store.

    :param renames: whether a directory gets another name in one moment, so that nobody ever sees a part of it there.
        Where not, each file appears and goes by itself, and the storage is an
        :class:`~airflow_provider_acid.filesystem.ObjectStorage`.
    :param is_remote: whether bytes travel to it, so that what is written is compared with what is read back.
    :param late_request_seconds: how long after its source is gone a copy may still be taken by the store.
    :param tasks_may_not_delete: whether a Spark task may lack what it takes to delete; what it leaves goes with the
        staging directory.
    """

    renames: bool = True
    is_remote: bool = True
    late_request_seconds: float = 0.0
    tasks_may_not_delete: bool = False
