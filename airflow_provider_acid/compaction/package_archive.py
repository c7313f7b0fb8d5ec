"""The part of this package that Spark's driver and executors need, as one zip file for ``--py-files``."""

from __future__ import annotations

import zipfile
from pathlib import Path

import airflow_provider_acid

ROOT_MODULES = ("__init__.py", "exceptions.py", "filesystem.py")
ROOMS = ("acid", "storages", "spark_jobs")
ARCHIVE_NAME = "airflow_provider_acid_spark.zip"


def write_package_archive(directory: Path) -> Path:
    """Write the archive into ``directory``; it needs nothing of Airflow where it is unpacked."""
    import airflow_provider_acid.spark_jobs as jobs

    root = Path(airflow_provider_acid.__file__).parent
    # An editable install keeps the Spark jobs outside the package's own directory.
    places = {"spark_jobs": Path(jobs.__file__).parent}
    archive = directory / ARCHIVE_NAME
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in ROOT_MODULES:
            bundle.write(root / name, f"airflow_provider_acid/{name}")
        for room in ROOMS:
            for module in sorted(places.get(room, root / room).glob("*.py")):
                bundle.write(module, f"airflow_provider_acid/{room}/{module.name}")
    return archive


def compaction_script() -> Path:
    """The script that spark-submit starts."""
    import airflow_provider_acid.spark_jobs as jobs

    return Path(jobs.__file__).parent / "compact.py"
