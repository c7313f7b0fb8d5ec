"""``./release TAG``: builds, checks and tries a release; uploads nothing."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.harness.release.chain import try_wheel
from tests.harness.release.distributions import build, write_checksums
from tests.harness.release.tagged import RefusalError, release_of
from tests.harness.wheel_environment import ROOT


def main() -> int:
    """The exit code is 0 only where all of it went well."""
    parser = argparse.ArgumentParser(prog="./release", description=__doc__)
    parser.add_argument("tag", help="the version, as 1.0.0, which is checked out")
    tag: str = parser.parse_args().tag
    try:
        _release(tag)
    except RefusalError as refusal:
        print(f"release: {refusal}", file=sys.stderr)
        return 1
    return 0


def _release(tag: str) -> None:
    release = release_of(ROOT, tag)
    target = ROOT / "dist" / tag
    if target.exists():
        raise RefusalError(f"{target} is there already; remove it first")
    with tempfile.TemporaryDirectory() as work:
        built, tried = Path(work, "built"), Path(work, "tried")
        tried.mkdir()
        wheel, source = build(release, Path(work), built)
        print(f"built and checked: {wheel.name}, {source.name}", flush=True)
        print(f"tried in an empty environment: {try_wheel(wheel, tried)}", flush=True)
        write_checksums(wheel, source)
        target.parent.mkdir(exist_ok=True)
        shutil.copytree(built, target)
    print(f"Nothing is uploaded yet. To upload it: twine upload {target}/*.whl {target}/*.tar.gz")


if __name__ == "__main__":
    sys.exit(main())
