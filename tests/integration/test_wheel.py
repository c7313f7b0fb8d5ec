"""The wheel, installed into a fresh environment, holds everything and can be imported.

The environment is new and holds only the wheel; its dependencies come from the running environment by a path file.
A second installation of Airflow would cost minutes and prove nothing about this package: that the pins install
into an empty environment is shown by ./run-tests itself. The path file does not bring the editable installation with
it, because path files inside a folder named by a path file are not read; a test below makes sure.
"""

from __future__ import annotations

import json
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.harness.wheel_environment import ROOT, build_wheel, run

IMPORT_ALL = """
import importlib, importlib.metadata, json, pkgutil
import airflow_provider_acid as package
names = [module.name for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
files = [importlib.import_module(name).__file__ for name in names]
distribution = importlib.metadata.distribution("airflow-provider-acid")
print(json.dumps({
    "names": names,
    "files": files,
    "version": distribution.version,
    "entry_points": {entry.group: entry.value for entry in distribution.entry_points},
    "provider": distribution.entry_points["provider_info"].load()()["package-name"],
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=environment)
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=environment).strip()
    (Path(packages) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


def test_the_wheel_holds_every_module_and_no_test(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    modules = {name for name in names if name.endswith(".py")}
    expected = {
        str(Path(installed, path.relative_to(ROOT / folder)))
        for folder, installed in {
            "airflow_provider_acid": "airflow_provider_acid",
            "dags": "airflow_provider_acid/dags",
            "spark_jobs": "airflow_provider_acid/spark_jobs",
        }.items()
        for path in (ROOT / folder).rglob("*.py")
    }
    assert modules == expected
    assert "airflow_provider_acid/py.typed" in names
    page = {
        f"airflow_provider_acid/plugins/static/{name}" for name in ("index.html", "page.css", "main.js", "icon.svg")
    }
    assert page <= names
    assert {name for name in names if name.startswith("airflow_provider_acid/plugins/static/")} == {
        str(path.relative_to(ROOT)) for path in (ROOT / "airflow_provider_acid/plugins/static").iterdir()
    }
    assert {name.rpartition("/")[2] for name in names} >= {"LICENSE", "NOTICE"}
    assert "Name: airflow-provider-acid\n" in metadata


def test_every_module_of_the_installed_wheel_can_be_imported(python: Path, tmp_path: Path) -> None:
    found = json.loads(run(python, "-I", "-c", IMPORT_ALL, cwd=tmp_path).splitlines()[-1])
    assert {"airflow_provider_acid.plan.plan", "airflow_provider_acid.merge.app.driver"} <= set(found["names"])
    environment = str(python.parents[1])
    assert [file for file in found["files"] if not file.startswith(environment)] == []
    assert found["entry_points"] == {
        "apache_airflow_provider": "airflow_provider_acid.get_provider_info:get_provider_info",
        "airflow.plugins": "airflow_provider_acid.plugins.page:HiveAcidPlugin",
        "console_scripts": "airflow_provider_acid.command:main",
    }
    assert found["provider"] == "airflow-provider-acid"


def test_the_command_of_the_installed_wheel_works(python: Path, tmp_path: Path) -> None:
    assert "doctor" in run(python.with_name("airflow-acid"), "--help", cwd=tmp_path)


@pytest.mark.parametrize("database", ["postgresql", "mysql"])
def test_the_command_of_the_installed_wheel_prints_the_grants(python: Path, tmp_path: Path, database: str) -> None:
    printed = run(python.with_name("airflow-acid"), "grants", database, cwd=tmp_path)
    assert printed == (ROOT / "docs" / f"grants-{database}.sql").read_text()


@pytest.mark.parametrize("name", ["dags/acid_compaction.py", "spark_jobs/compact.py"])
def test_what_is_copied_or_submitted_is_found_in_the_installed_wheel(python: Path, tmp_path: Path, name: str) -> None:
    program = (
        "import sys; from airflow_provider_acid.shipped_files import shipped_file; print(shipped_file(sys.argv[1]))"
    )
    found = Path(run(python, "-I", "-c", program, name, cwd=tmp_path).strip())
    assert found.is_relative_to(python.parents[1])
    assert found.read_bytes() == (ROOT / name).read_bytes()


def test_pyspark_and_its_client_are_one_version_in_the_installed_environment(python: Path, tmp_path: Path) -> None:
    program = "from importlib.metadata import version; print(version('pyspark'), version('pyspark-client'))"
    pyspark, client = run(python, "-I", "-c", program, cwd=tmp_path).split()
    assert pyspark == client
