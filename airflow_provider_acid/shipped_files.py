"""Files that come with this package and are imported by nobody: DAG files to copy, scripts that spark-submit starts."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped_file(name: str) -> Path:
    """``dags/acid_compaction.py``, say: inside an installed package, beside the package in a checkout."""
    inside = _PACKAGE / name
    return inside if inside.exists() else _PACKAGE.parent / name
