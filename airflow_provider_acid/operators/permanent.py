"""What no other try can mend ends a task at once: Airflow tries it again after every other error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_acid.exceptions import AcidError


@contextmanager
def failing_at_once() -> Iterator[None]:
    """Around what a task runs; also a decorator.

    :raises AirflowFailException: in the words of an error that :attr:`~..exceptions.AcidError.is_permanent`.
    """
    try:
        yield
    except AcidError as error:
        if not error.is_permanent:
            raise
        raise AirflowFailException(str(error)) from error
