"""``python -m tests.harness.lowest``: the lowest versions that setup.cfg allows, each as a pin on a line."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = ("postgres", "mysql", "s3", "hdfs", "ldap")
"""Those that need no compiler. Spark is pinned by its extra, and taken below it from a cluster: of the lowest line that
docs/deploy.md names, see :data:`SPARK`."""
SPARK = "pyspark==3.5.*"


def lowest_pins() -> list[str]:
    """Of the package itself and of its extras."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    lines = parser["options"]["install_requires"].splitlines()
    for extra in EXTRAS:
        lines += parser["options.extras_require"][extra].splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    return [*(_pin(line) for line in wanted), SPARK]


def _pin(requirement: str) -> str:
    found = re.fullmatch(r"([A-Za-z0-9._-]+)>=([0-9.]+)", requirement)
    assert found, f"{requirement!r} of setup.cfg names no lowest version: write it as name>=version"
    return "==".join(found.groups())


if __name__ == "__main__":
    print("\n".join(lowest_pins()))
