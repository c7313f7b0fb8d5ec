"""The check that a damaged file cannot crash this process by its pyarrow."""

from __future__ import annotations

import pyarrow

from airflow_provider_acid.exceptions import ConfigurationError

LEAST_MAJOR_VERSION = 19
"""As in setup.cfg. 18 aborts the whole process on some damaged files, where later ones raise an error."""


def check_pyarrow() -> None:
    """To be called before a table's files are read; costs a comparison.

    :raises ConfigurationError: the installed version is older than :data:`LEAST_MAJOR_VERSION`.
    """
    if int(pyarrow.__version__.partition(".")[0]) < LEAST_MAJOR_VERSION:
        raise ConfigurationError(
            f"pyarrow {pyarrow.__version__}",
            f"is older than {LEAST_MAJOR_VERSION}, and a damaged file could crash its process",
            f"install pyarrow {LEAST_MAJOR_VERSION} or later for Spark's driver and executors",
        )
