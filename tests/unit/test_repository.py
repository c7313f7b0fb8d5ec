"""What is committed stands alone: no path of somebody's machine, no package registry's address, no large file."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Written with character classes so that this file does not hold what it looks for.
MACHINE_PATH = re.compile(
    rb"(?<![\w.$}{)-])/(?:[r]oot|[w]ork|[h]ome/[a-z]+|[U]sers/[A-Za-z]+|[t]mp/[l]ab|[t]mp/[p]ytest-[\w-]+)/"
)
REGISTRY = re.compile(
    rb"(?:[r]epo1?\.maven\.(?:apache\.)?org|[r]epo\.maven|maven-[c]entral|[p]ypi\.org|[p]ypi\.python\.org|[f]iles\.pythonhosted\.org"
    rb"|registry\.[n]pmjs\.org|[r]egistry\.yarnpkg\.com|archive\.[a]pache\.org/dist|dlcdn\.[a]pache\.org)"
)
LARGEST_FILE_BYTES = 2_000_000
LONGEST_MODULE_LINES = 400


def committed_files() -> list[Path]:
    """Tracked files and those about to be, as they are on disk."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split("\0")
    return [ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file()]


def places(pattern: re.Pattern[bytes]) -> list[str]:
    found = []
    for path in committed_files():
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    return found


def test_no_path_of_a_machine_is_committed() -> None:
    assert places(MACHINE_PATH) == []


def test_no_address_of_a_package_registry_is_committed() -> None:
    assert places(REGISTRY) == []


@pytest.mark.parametrize("name", ["root", "work", "tmp/pytest-of-somebody"])
def test_a_path_of_a_machine_would_be_found(name: str) -> None:
    assert MACHINE_PATH.search(f'open("/{name}/main/x")'.encode())
    assert not MACHINE_PATH.search(f"build/{name}/main".encode())
    assert not MACHINE_PATH.search(f"/net{name}/main".encode())


@pytest.mark.parametrize("host", [("repo1", "maven", "org"), ("pypi", "org"), ("registry", "npmjs", "org")])
def test_an_address_of_a_registry_would_be_found(host: tuple[str, ...]) -> None:
    assert REGISTRY.search(f"https://{'.'.join(host)}/x".encode())


def test_no_committed_file_is_large() -> None:
    assert [str(path) for path in committed_files() if path.stat().st_size > LARGEST_FILE_BYTES] == []


def test_a_module_fits_in_one_reading() -> None:
    modules = [path for path in committed_files() if path.suffix == ".py"]
    assert modules
    assert [str(path) for path in modules if len(path.read_text().splitlines()) > LONGEST_MODULE_LINES] == []


def test_the_map_of_the_harness_names_each_of_its_parts() -> None:
    harness = ROOT / "tests" / "harness"
    parts = {path.relative_to(harness).parts[0] for path in committed_files() if harness in path.parents}
    named = set(re.findall(r"^\| `([^`/]+)/?` \|", (harness / "README.md").read_text(), re.MULTILINE))
    assert named == parts - {"README.md", "__init__.py"} - {
        path for path in parts if path.endswith((".txt", ".sha256"))
    }
