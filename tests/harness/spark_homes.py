"""Spark in three versions, and a Python for drivers and executors that has what they need and nothing else.

It has pyarrow, pyorc and protobuf, as deploy.md asks for, but neither this package nor Airflow nor PySpark: that one
comes out of Spark's own folder, as on any cluster.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.harness.jars import cache_base, publish

ROOT = Path(__file__).parents[2]

_EXECUTORS_NEED = ("pyarrow", "pyorc", "protobuf")
ON_HDFS = ("fsspec", "requests", "urllib3", "idna", "certifi", "charset-normalizer")
"""What executors need beside that for tables on HDFS."""

# Where PySpark's source distribution has what a Spark installation has elsewhere.
_PLACES = {"deps/bin": "bin", "deps/jars": "jars", "lib": "python/lib"}


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


def unpacked_spark_home(version: str) -> SparkHome:
    """Another Spark than the installed one, downloaded where it is not cached.

    Its PySpark cannot be installed beside that of the tested versions, nor need it be: its source distribution holds
    all of Spark. To unpack that takes seconds, to make a wheel of it and install it minutes.

    :param version: of ``spark-VERSION.txt`` here, a line of pip's requirements with its checksum.
    :raises subprocess.CalledProcessError: pip cannot download it, or it is not the one that is listed.
    """
    listed = Path(__file__).with_name(f"spark-{version}.txt")
    complete = cache_base() / f"{listed.stem}-{_digest(listed.read_text())}"
    if not complete.is_dir():
        complete.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=complete.parent, prefix=".spark-") as temporary:
            source = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--no-cache-dir")
            _pip("download", "--dest", temporary, *source, "--require-hashes", "--requirement", str(listed))
            (archive,) = Path(temporary).glob("*.tar.gz")
            _unpack(archive, Path(temporary, "home"))
            publish(Path(temporary, "home"), complete)
    return SparkHome(complete, executor_python())


def _unpack(archive: Path, home: Path) -> None:
    """A Spark installation, out of PySpark's source distribution."""
    with tarfile.open(archive, "r|gz") as files:
        for file in files:
            _, _, name = file.name.partition("/")
            places = [place for place in _PLACES if name.startswith(f"{place}/")]
            if places and file.isfile():
                file.name = _PLACES[places[0]] + name.removeprefix(places[0])
                files.extract(file, home, filter="data")


def executor_python(more: tuple[str, ...] = ()) -> Path:
    """A Python of this version with what executors need.

    :param more: names of further packages; theirs are not brought along.
    """
    wanted = tuple(f"{name}==" for name in (*_EXECUTORS_NEED, *more))
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith(wanted)]
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
            # Still there where another process was first.
            Path(temporary).mkdir(exist_ok=True)
    return complete / "bin" / "python"


def _spark_folder() -> Path:
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


SPARKS: Mapping[str, Callable[[], SparkHome]] = {
    "4.2": spark_home,
    "4.3": partial(unpacked_spark_home, "4.3"),
    "3.5": partial(unpacked_spark_home, "3.5"),
}
"""The versions of Spark on whose clusters compactions are tested; the installed one comes first."""

THE_SPARK = os.environ.get("TEST_SPARK", next(iter(SPARKS)))
"""On whose cluster a test works that names none: the installed one, or another by ``TEST_SPARK``.
``./run-tests soak`` repeats on 3.5 what goes wrong on a cluster, and all on YARN."""


def the_spark() -> SparkHome:
    """The one that :data:`THE_SPARK` names."""
    home = SPARKS[THE_SPARK]()
    assert list((home.folder / "jars").glob(f"spark-core_*-{THE_SPARK}.*.jar")), home
    return home
