from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import airflow_provider_acid
from airflow_provider_acid.compaction.run.application import write_package_archive

PACKAGE = Path(airflow_provider_acid.__file__).parent


def test_the_archive_holds_all_that_the_executors_import_and_nothing_of_airflow(tmp_path: Path) -> None:
    archive = write_package_archive(tmp_path)
    names = zipfile.ZipFile(archive).namelist()
    assert {name.split("/")[1] for name in names} == {
        "__init__.py",
        "exceptions.py",
        "filesystem.py",
        "tickets.py",
        "acid",
        "merge",
        "plan",
        "storages",
    }
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from airflow_provider_acid.merge.app import driver\n"
        "assert driver.__file__.startswith(sys.argv[1]), driver.__file__\n"
        "assert not [name for name in sys.modules if name == 'airflow' or name.startswith('airflow.')]\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(archive)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_shipped_is_the_package_that_runs(tmp_path: Path) -> None:
    with zipfile.ZipFile(write_package_archive(tmp_path)) as archive:
        for name in archive.namelist():
            assert archive.read(name) == (PACKAGE.parent / name).read_bytes()
