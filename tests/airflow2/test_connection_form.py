"""Airflow 2.11 itself makes the connection form, with the fields that Airflow 3 reads in the provider info."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import pytest
from airflow import providers_manager

from airflow_provider_acid.hooks.connection_form import FIELDS, HIDDEN_FIELDS

# The Flask that Airflow 2 needs warns of itself.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


@pytest.fixture
def manager() -> Any:
    """What Airflow found out about its providers."""
    module: Any = providers_manager
    return module.ProvidersManager()


@pytest.fixture
def shown(manager: Any) -> dict[str, Any]:
    """The form's own fields, by name."""
    widgets = manager.connection_form_widgets
    return {info.field_name: info.field for key, info in widgets.items() if key.startswith("extra__hive_acid__")}


def test_this_is_airflow_2_11() -> None:
    assert importlib.metadata.version("apache-airflow").startswith("2.11.")


def test_every_field_is_shown_in_order_with_label_and_description(shown: dict[str, Any]) -> None:
    assert sorted(shown) == sorted(FIELDS)
    for name, field in FIELDS.items():
        assert shown[name].args == (field["label"],)
        assert shown[name].kwargs["description"] == field["description"]


def test_truths_are_boxes_and_the_rest_are_texts(shown: dict[str, Any]) -> None:
    boxes = {name for name, field in shown.items() if field.field_class.__name__ == "BooleanField"}
    assert boxes == {"housekeeping_elsewhere", "tls", "http"}
    assert shown["timeout_seconds"].kwargs["default"] == "60"


def test_what_is_not_used_is_hidden(manager: Any) -> None:
    assert tuple(manager.field_behaviours["hive_acid"]["hidden_fields"]) == HIDDEN_FIELDS
    assert manager.hooks["hive_acid"].connection_testable
