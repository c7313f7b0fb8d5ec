"""The part of this package that Spark's driver and executors need, as one zip file for ``--py-files``."""

from __future__ import annotations

import zipfile
from pathlib import Path

import airflow_provider_acid

ROOT_MODULES = ("__init__.py", "exceptions.py", "filesystem.py")
ROOMS = ("acid", "plan", "storages", "merge")
ARCHIVE_NAME = "airflow_provider_acid_spark.zip"


def write_package_archive(directory: Path) -> Path:
    """Write the archive of the package that runs into ``directory``; unpacked it needs nothing of Airflow."""
    root = Path(airflow_provider_acid.__file__).parent
    modules = [root / name for name in ROOT_MODULES]
    for room in ROOMS:
        modules += sorted((root / room).rglob("*.py"))
    archive = directory / ARCHIVE_NAME
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for module in modules:
            bundle.write(module, module.relative_to(root.parent))
    return archive
