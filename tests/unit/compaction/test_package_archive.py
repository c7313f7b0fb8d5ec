from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from airflow_provider_acid.compaction.package_archive import compaction_script, write_package_archive


def test_the_archive_holds_all_that_the_executors_import_and_nothing_of_airflow(tmp_path: Path) -> None:
    archive = write_package_archive(tmp_path)
    names = zipfile.ZipFile(archive).namelist()
    assert {name.split("/")[1] for name in names} == {
        "__init__.py",
        "exceptions.py",
        "filesystem.py",
        "acid",
        "spark_jobs",
        "storages",
    }
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from airflow_provider_acid.spark_jobs import merge\n"
        "assert merge.__file__.startswith(sys.argv[1]), merge.__file__\n"
        "assert not [name for name in sys.modules if name == 'airflow' or name.startswith('airflow.')]\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(archive)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_script_to_submit_is_there() -> None:
    assert compaction_script().is_file()
