"""Where the driver finds the run's key, which the operator sends as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark import SparkFiles

from airflow_provider_acid.acid.sealing import KEY_BYTES
from airflow_provider_acid.exceptions import ConfigurationError


def read_secret(path: str) -> bytes:
    """The key of the run.

    In client mode the driver shares the operator's machine. In cluster mode the file was sent along: YARN puts it into
    the driver's working directory, Kubernetes where Spark keeps such files.

    :param path: the file's, on the operator's machine.
    :raises ConfigurationError: there is no such file, or it holds no key.
    """
    for place in _places(path):
        try:
            with place.open("rb") as file:
                secret = file.read(KEY_BYTES + 1)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ConfigurationError(
                f"key file {place}", f"cannot be read ({error.strerror})", "let the driver run as Airflow's user"
            ) from error
        if len(secret) != KEY_BYTES:
            raise ConfigurationError(f"key file {place}", "holds no key", "run operator and Spark job of one release")
        return secret
    raise ConfigurationError(
        f"key file {path}",
        "did not come to the driver",
        "in client mode, let the driver see this path; in cluster mode, leave it among the files of spark-submit",
    )


def _places(path: str) -> Iterator[Path]:
    yield Path(path)
    name = Path(path).name
    yield Path(name)
    # Only asked where the others have none: it needs the application's context.
    yield Path(SparkFiles.get(name))
