"""What ``spark-submit`` is given for a run (key, package, arguments, a deploy mode), and what the application says."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import airflow_provider_acid
from airflow_provider_acid.acid.arguments import as_argument
from airflow_provider_acid.acid.json_fields import decoded, optional_text
from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.plan import exchange

log = logging.getLogger(__name__)

KEY_FILE = "airflow_acid_run.key"
ROOT_MODULES = ("__init__.py", "exceptions.py", "filesystem.py", "tickets.py")
ROOMS = ("acid", "plan", "storages", "merge")
ARCHIVE_NAME = "airflow_provider_acid_spark.zip"
POLL_SECONDS = 2.0
DEFAULT_CONF = {"spark.log.level": "WARN", "spark.yarn.maxAppAttempts": "1", "spark.api.mode": "classic"}
"""What Spark is told unless somebody says otherwise.

YARN is not to start an application again: one that ended itself has no operator any more, and where its driver died
with a node the next try of the task plans anew, while a node that is only cut off would work on beside a successor.
The application needs Spark's own API; where a site's defaults name Spark Connect, Spark 4 starts a driver without it.
"""


def write_key_file(directory: Path, key: RunKey) -> Path:
    """Write a file that nobody else may read, at no moment.

    :param directory: nobody else's, and removed when the run is over.
    """
    path = directory / KEY_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.secret)
    return path


def application_arguments(run: RunDirectory, key_file: Path) -> list[str]:
    """Those of ``spark_jobs/compact.py``; the run's key is in a file, and no argument, setting or log has it."""
    arguments = {
        "--run-directory": run.location,
        "--key-file": str(key_file),
        "--storage-options": run.storages.to_json(),
    }
    return [part for name, text in arguments.items() for part in (name, as_argument(text))]


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


def check_deploy_mode(master: str, deploy_mode: str | None) -> None:
    """Spark starts no Python application in cluster mode on a standalone cluster, nor without a cluster.

    :param master: of the Spark connection.
    :param deploy_mode: of the operator or the Spark connection; None is Spark's default, ``client``.
    :raises ConfigurationError: spark-submit (``SparkSubmit.prepareSubmitEnvironment``) refuses this pair.
    """
    if deploy_mode != "cluster":
        return
    if master.startswith("spark://"):
        raise ConfigurationError(
            f"deploy mode 'cluster' on {master}",
            "is not possible: Spark's standalone clusters run the driver of no Python application",
            "use deploy mode 'client', in which the driver runs beside this task, or a YARN or Kubernetes cluster",
        )
    if master.startswith("local"):
        raise ConfigurationError(
            f"deploy mode 'cluster' on {master}", "is not possible: there is no cluster", "use deploy mode 'client'"
        )


def check_program(program: str, env_vars: Mapping[str, str] | None = None) -> None:
    """Look for ``spark-submit``, or what stands in its place, without starting it.

    :param env_vars: of the operator; Airflow's hook starts the program with them.
    :raises ConfigurationError: no executable file of that name is on the ``PATH``.
    """
    paths = (os.environ.get("PATH", os.defpath), (env_vars or {}).get("PATH", ""))
    if not any(shutil.which(program, path=path) for path in paths):
        raise ConfigurationError(
            program,
            "is not on the PATH here, so that no Spark application can be started",
            "install Spark there (pip install airflow-provider-acid[spark]), or put its bin directory on the PATH",
        )


@contextmanager
def watch_application(
    storages: Storages, run_location: str, found: Callable[[str], None], poll_seconds: float = POLL_SECONDS
) -> Iterator[None]:
    """Call ``found`` once with the address of the application's user interface, from another thread, if there is one.

    Whatever goes wrong is logged: the application is worth more than a link to it.

    :param storages: opens the run directory anew, because the batch's thread uses its own.
    """
    ended = threading.Event()

    def watch() -> None:
        try:
            storage = storages.open(run_location)
            while not storage.exists(exchange.APPLICATION_FILE):
                if ended.wait(poll_seconds):
                    return
            about = decoded(storage.read(exchange.APPLICATION_FILE), exchange.APPLICATION_FILE)
            url = optional_text(about, "ui_url")
            if url is not None:
                found(url)
        except Exception as error:  # noqa: BLE001 - of a storage, of Airflow's API; the thread has nobody to raise it to
            log.warning("The Spark application's user interface is not known: %s: %s", type(error).__name__, error)

    thread = threading.Thread(target=watch, name="acid-application-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(POLL_SECONDS)
