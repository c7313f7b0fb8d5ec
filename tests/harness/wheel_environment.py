"""The wheel of this tree, and environments that hold a wheel with all that it needs and nothing of this tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = "spark,postgres"


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command; its output, or an error that shows it."""
    answer = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )
    assert answer.returncode == 0, f"{command}:\n{answer.stdout}{answer.stderr}"
    return answer.stdout


def build_wheel(source: Path, target: Path) -> Path:
    """The wheel of the tracked and new files, built from a copy so that nothing is left in the source tree.

    :param source: an empty folder for the copy.
    :param target: the folder that gets the wheel.
    """
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in names:
        if name and not name.startswith("tests/") and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, source, cwd=source)
    (built,) = target.glob("*.whl")
    return built


class WheelEnvironment:
    """An environment into which wheels are installed with the versions of ``constraints.txt``.

    It is made of uv's cache in seconds; where there is no uv, pip takes minutes.

    :param folder: made anew. Python keeps the bytecode of what lies there, also for the next one of its name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, clear=True, with_pip=False)

    @property
    def programs(self) -> Path:
        """The folder of its commands."""
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.programs / "python"

    def install(self, wheel: Path) -> None:
        """Install a wheel, in the place of the one that is there."""
        wanted = ("--constraint", ROOT / "constraints.txt", f"{wheel}[{EXTRAS}]")
        uv = Path(sys.executable).with_name("uv")
        if not uv.exists():
            run(sys.executable, "-m", "pip", "--python", self.python, "install", "-q", *wanted, cwd=self.folder)
            return
        installs = (uv, "pip", "install", "--quiet", "--python", self.python)
        try:
            # What the running environment was made of is in the cache; to ask the index for it takes half a minute.
            run(*installs, "--offline", *wanted, cwd=self.folder)
        except AssertionError:
            run(*installs, *wanted, cwd=self.folder)

    def distributions(self) -> dict[str, str]:
        """Name and version of all that is installed."""
        program = (
            "import importlib.metadata, json;"
            "print(json.dumps({found.name: found.version for found in importlib.metadata.distributions()}))"
        )
        found: dict[str, str] = json.loads(run(self.python, "-I", "-c", program, cwd=self.folder))
        return found

    def path(self) -> str:
        """``PATH`` with its commands before all others."""
        return f"{self.programs}{os.pathsep}{os.environ['PATH']}"
