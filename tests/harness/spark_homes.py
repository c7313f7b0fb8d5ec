"""Spark itself, and a Python for executors that has what they need and nothing else.

It has pyarrow, pyorc and protobuf, as deploy.md asks for, but neither this package nor Airflow.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.harness.jars import cache_base, publish

ROOT = Path(__file__).parents[2]

_EXECUTORS_NEED = ("pyarrow", "pyorc", "protobuf")


@dataclass(frozen=True)
class SparkHome:
    """An unpacked Spark.

    :param folder: what ``SPARK_HOME`` names.
    :param python: of drivers and executors.
    """

    folder: Path
    python: Path


def spark_home() -> SparkHome:
    """The installed Spark, with the executors' Python, which pip makes where it is not cached.

    :raises subprocess.CalledProcessError: pip cannot install what executors need.
    """
    return SparkHome(_spark_folder(), executor_python())


def executor_python() -> Path:
    """A Python of this version with what executors need."""
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith(_wanted())]
    name = f"executors-{sys.version_info.major}.{sys.version_info.minor}-{_digest(' '.join((*pins, sys.prefix)))}"
    complete = cache_base() / name
    if not complete.is_dir():
        complete.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=complete.parent, prefix=".venv-") as temporary:
            # Scripts in it would name the temporary folder; its python works wherever it lies.
            venv.create(temporary, with_pip=False, symlinks=True)
            python = Path(temporary, "bin", "python")
            _pip("--python", str(python), "install", "--no-deps", *pins)
            publish(Path(temporary), complete)
            Path(temporary).mkdir()
    return complete / "bin" / "python"


def _wanted() -> tuple[str, ...]:
    return tuple(f"{name}==" for name in _EXECUTORS_NEED)


def _spark_folder() -> Path:
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
