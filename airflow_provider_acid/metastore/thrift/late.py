"""What is loaded with the first call to a metastore: hmsclient's classes, a megabyte of Python that no DAG file needs.

Whoever imports ``ttypes`` or ``methods`` from here asks for something of them only in functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hmsclient.genthrift.hive_metastore import ttypes

    from airflow_provider_acid.metastore.thrift import methods
else:

    class _Late:
        def __init__(self, module: str) -> None:
            self._module = module

        def __getattr__(self, name: str) -> object:
            return getattr(import_module(self._module), name)

    ttypes = _Late("hmsclient.genthrift.hive_metastore.ttypes")
    methods = _Late("airflow_provider_acid.metastore.thrift.methods")

__all__ = ["methods", "ttypes"]
