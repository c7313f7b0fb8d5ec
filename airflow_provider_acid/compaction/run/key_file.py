"""The key of a run as a file, which ``spark-submit`` takes to the driver."""

from __future__ import annotations

import os
from pathlib import Path

from airflow_provider_acid.acid.sealing import RunKey

KEY_FILE = "airflow_acid_run.key"


def write_key_file(directory: Path, key: RunKey) -> Path:
    """Write a file that nobody else may read, at no moment.

    :param directory: nobody else's, and removed when the run is over.
    """
    path = directory / KEY_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.secret)
    return path
