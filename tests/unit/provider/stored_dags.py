"""A DAG as Airflow stores it and finds it again: the class that does it has another name in Airflow 2.11."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

_NAMES = vars(import_module("airflow.serialization.serialized_objects"))
_STORE: Any = _NAMES.get("DagSerialization") or _NAMES["SerializedDAG"]


def stored_and_found(dag: object) -> Any:
    """The DAG after a round trip through JSON."""
    return _STORE.from_dict(json.loads(json.dumps(_STORE.to_dict(dag))))
