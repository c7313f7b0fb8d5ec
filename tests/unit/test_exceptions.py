"""Every error names its object, the reason and the remedy."""

from __future__ import annotations

import inspect
import pickle

import pytest

from airflow_provider_acid import exceptions
from airflow_provider_acid.exceptions import AcidError

ERRORS = [
    kind
    for _, kind in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(kind, BaseException) and kind.__module__ == exceptions.__name__
]


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_says_what_why_and_what_to_do(kind: type[AcidError]) -> None:
    error = kind("table sales.orders", "is sorted", "compact it in Hive")
    assert str(error) == "table sales.orders: is sorted. Remedy: compact it in Hive."
    assert isinstance(error, AcidError)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_survives_the_way_between_processes(kind: type[AcidError]) -> None:
    error = kind("table sales.orders", "is sorted", "compact it in Hive")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.subject, copy.reason, copy.remedy) == (error.subject, error.reason, error.remedy)


def test_the_family_is_found() -> None:
    assert len(ERRORS) > 10
