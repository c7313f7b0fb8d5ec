"""The package is complete: every folder is packaged, the pins are whole, imports stay cheap, names resolve."""

from __future__ import annotations

import configparser
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from airflow_provider_acid.shipped_files import shipped_file
from tests.harness.lowest import lowest_pins

ROOT = Path(__file__).parents[2]
PACKAGE = "airflow_provider_acid"
SHIPPED = ("dags", "spark_jobs")
"""Folders of files that nobody imports."""
COMPILED = {"gssapi", "requests-gssapi"}
"""One needs a compiler and Kerberos' headers, the other that one: tests/secured/test_kerberos.py says that they are
there as pinned."""
AIRFLOW_ROOMS = {
    "config",
    "hooks",
    "installed_dags",
    "links",
    "operators",
    "plugins",
    "sensors",
    "triggers",
}


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def source_files() -> list[Path]:
    return sorted((ROOT / PACKAGE).rglob("*.py"))


def module_names() -> list[str]:
    return [dotted(path).removesuffix(".__init__") for path in source_files()]


def requirement_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    return {requirement_name(line): line.partition("==")[2] for line in lines}


def test_every_pinned_version_runs_on_each_python_3_11() -> None:
    """Debian 12 has 3.11.2; a version that wants a later one kept ./quickstart from starting there."""
    pinned = pins()
    asked = {
        distribution.name: distribution.metadata["Requires-Python"]
        for distribution in importlib.metadata.distributions()
        if requirement_name(distribution.name) in pinned and "Requires-Python" in distribution.metadata
    }
    assert len(asked) > 100
    assert {name: python for name, python in asked.items() if "3.11.0" not in SpecifierSet(python)} == {}


def test_types_are_checked_for_the_lowest_python_that_is_allowed() -> None:
    """Nothing else notices on the tested one what that lacks: datetime.UTC, int.from_bytes without an order."""
    [lowest] = SpecifierSet(setup_cfg()["options"]["python_requires"])
    assert lowest.operator == ">="
    assert f'python_version = "{lowest.version}"' in (ROOT / "pyproject.toml").read_text()


def test_every_dependency_has_a_lowest_version() -> None:
    """What ./run-tests versions installs."""
    pinned = lowest_pins()
    assert len(pinned) > 15
    assert all("==" in pin for pin in pinned)


def test_every_folder_with_modules_is_packaged() -> None:
    listed = setup_cfg()["options"]["packages"].split()
    assert listed == sorted(set(listed))
    assert set(listed) == {dotted(path.parent) for path in source_files()} | {f"{PACKAGE}.{name}" for name in SHIPPED}


def test_every_packaged_folder_is_a_regular_package() -> None:
    for path in source_files():
        assert (path.parent / "__init__.py").is_file(), path.parent


def test_no_room_has_more_than_15_modules() -> None:
    modules = Counter(path.parent for path in source_files() if path.name != "__init__.py")
    assert {str(room): count for room, count in modules.items() if count > 15} == {}


def test_every_module_that_the_architecture_names_is_there() -> None:
    texts = [(ROOT / "docs" / f"{page}.md").read_text() for page in ("architecture", "protocol", "merge")]
    named = re.findall(r"`([a-z0-9_/]+\.py)`", "".join(texts))
    assert len(named) > 30
    assert [name for name in named if not any((top / name).is_file() for top in (ROOT, ROOT / PACKAGE))] == []


@pytest.mark.parametrize("folder", SHIPPED)
def test_nothing_imports_what_is_copied_or_submitted(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()
    shipped = sorted((ROOT / folder).glob("*.py"))
    assert shipped == [shipped_file(f"{folder}/{path.name}") for path in shipped]
    texts = {path: path.read_text() for path in [*source_files(), *shipped]}
    assert [
        str(path) for path, text in texts.items() if re.search(rf"(import|from) ({PACKAGE}\.)?{folder}\b", text)
    ] == []


def test_every_constraint_is_a_pin() -> None:
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins().values()), pins()


def test_every_direct_dependency_is_pinned_and_installed_as_pinned() -> None:
    options = setup_cfg()
    requirements = options["options"]["install_requires"].split()
    requirements += [line for extra in options["options.extras_require"].values() for line in extra.split()]
    names = {requirement_name(requirement) for requirement in requirements}
    assert names <= pins().keys()
    names -= COMPILED
    assert {name: importlib.metadata.version(name) for name in names} == {name: pins()[name] for name in names}


def test_pyspark_and_its_client_are_one_version_everywhere() -> None:
    extra = setup_cfg()["options.extras_require"]["spark"].split()
    versions = {line.partition("==")[0]: line.partition("==")[2] for line in extra}
    assert versions.keys() == {"pyspark", "pyspark-client"}
    stated = {*versions.values(), *(pins()[name] for name in versions)}
    assert stated == {importlib.metadata.version(name) for name in versions}
    assert len(stated) == 1


@pytest.mark.parametrize("module", module_names())
def test_every_module_can_be_imported(module: str) -> None:
    import_module(module)


def test_everything_outside_the_airflow_rooms_imports_without_airflow() -> None:
    pure = [name for name in module_names() if name.removeprefix(f"{PACKAGE}.").split(".")[0] not in AIRFLOW_ROOMS]
    assert {f"{PACKAGE}.plan.plan", f"{PACKAGE}.filesystem", f"{PACKAGE}.merge.app.driver"} <= set(pure)
    assert imported_by(pure, "airflow") == []


def test_of_two_checkouts_on_the_path_one_is_used(tmp_path: Path) -> None:
    shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "import importlib, json, sys\n"
        "names = ['acid.names', 'merge.app.driver', 'installed_dags', 'operators.batch_name', 'shipped_files']\n"
        f"print(json.dumps([importlib.import_module('{PACKAGE}.' + name).__file__ for name in names]))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/", env=environment
    )
    files = [Path(file) for file in json.loads(answer.stdout)]
    assert [file for file in files if not file.is_relative_to(tmp_path)] == []


def test_what_checks_imports_notices_one() -> None:
    assert "email.message" in imported_by(["email.message"], "email")


def imported_by(modules: list[str], top_level: str) -> list[str]:
    """The modules of ``top_level`` that a fresh interpreter has loaded after importing ``modules``."""
    program = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(json.dumps([name for name in sys.modules if name.split('.')[0] == {top_level!r}]))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded: list[str] = json.loads(answer.stdout)
    return loaded
