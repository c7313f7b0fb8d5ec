"""Jars and database schemas of a metastore, brought into a cache by Apache Ivy, every file checked by its SHA-256.

Ivy lies in PySpark's own jars folder and knows Maven Central by itself; a site's mirror is named in the
environment variable ``ACID_MAVEN_REPOSITORY``. What is brought is listed in files like ``jars.sha256``: one line per
file, ``sha256  organisation/name/version/file``, so that ``sha256sum -c`` can read it too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from tests.harness.java import find_java, truststore_options

HIVE_VERSION = "4.0.1"
LIST_FILE = Path(__file__).with_name("jars.sha256")
REPOSITORY_VARIABLE = "ACID_MAVEN_REPOSITORY"
PARALLEL_DOWNLOADS = 4
DOWNLOAD_ATTEMPTS = 3

SCHEMAS = "scripts/metastore/upgrade"
"""Folder of a distribution that holds the schemas, one folder per kind of database."""


@dataclass(frozen=True)
class JarList:
    """What is downloaded together and cached as one folder.

    :param name: of the cached folder; a digest of the list is added.
    :param file: the list.
    :param schema_files: what a listed tarball holds below :data:`SCHEMAS` and is needed; empty where none is listed.
    """

    name: str
    file: Path
    schema_files: frozenset[str] = frozenset()


def derby_schema(version: str) -> frozenset[str]:
    """What the schema tool reads to make an embedded Derby database."""
    return frozenset({f"derby/hive-schema-{version}.derby.sql", "derby/upgrade.order.derby"})


@dataclass(frozen=True)
class ListedFile:
    """One file of a list.

    :param sha256: hexadecimal checksum.
    :param organisation: Maven group id.
    :param module: Maven artifact id.
    :param version: Maven version.
    :param file_name: the file's name in a Maven repository.
    """

    sha256: str
    organisation: str
    module: str
    version: str
    file_name: str

    @property
    def path(self) -> str:
        """Where Ivy puts the file, relative to the download folder."""
        return f"{self.organisation}/{self.module}/{self.version}/{self.file_name}"

    @property
    def ivy_dependency(self) -> str:
        """The ``<dependency>`` element that asks Ivy for this file and nothing else."""
        found = re.fullmatch(r"(?:-(?P<classifier>\w+))?\.(?P<extension>jar|tar\.gz)", self._suffix)
        if found is None:
            raise ConfigurationError(str(LIST_FILE), f"{self.file_name} is no jar or tar.gz", "correct the line")
        classifier = f' m:classifier="{found["classifier"]}"' if found["classifier"] else ""
        return (
            f'<dependency org="{self.organisation}" name="{self.module}" rev="{self.version}"'
            f' conf="default->default" transitive="false"><artifact name="{self.module}"'
            f' type="{found["extension"]}" ext="{found["extension"]}"{classifier}/></dependency>'
        )

    @property
    def _suffix(self) -> str:
        return self.file_name.removeprefix(f"{self.module}-{self.version}")


def metastore_list() -> JarList:
    """What the metastore of the harness needs."""
    return JarList(f"hive-metastore-{HIVE_VERSION}", LIST_FILE, derby_schema("4.0.0"))


def listed_files(list_file: Path | None = None) -> list[ListedFile]:
    """The content of a list; of the metastore's where none is named."""
    lines = (line.split() for line in (list_file or LIST_FILE).read_text().splitlines())
    return [ListedFile(sha256, *path.split("/")) for sha256, path in lines]


def cache_folder(wanted: JarList | None = None) -> Path:
    """The folder this version of a list (by default the metastore's) is cached in; it exists only when complete."""
    wanted = wanted or metastore_list()
    digest = hashlib.sha256(wanted.file.read_bytes()).hexdigest()[:12]
    return cache_base() / f"{wanted.name}-{digest}"


def cache_base() -> Path:
    """The folder of all that the harness caches."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-provider-acid"


def metastore_distribution() -> Path:
    """The metastore's :func:`distribution`."""
    return distribution(metastore_list())


def distribution(wanted: JarList) -> Path:
    """A folder with ``jars/*.jar`` and the schemas below :data:`SCHEMAS`, downloaded where it is not cached yet.

    :raises StorageError: a file cannot be downloaded or has another checksum than the committed one.
    :raises ConfigurationError: no Java or no PySpark to download with.
    """
    complete = cache_folder(wanted)
    if complete.is_dir():
        return complete
    complete.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=complete.parent, prefix=".download-") as temporary:
        download = Path(temporary)
        files = listed_files(wanted.file)
        _download(files, download)
        arranged = download / "distribution"
        _arrange(files, download, arranged, wanted.schema_files)
        publish(arranged, complete)
    return complete


def publish(finished: Path, name: Path) -> None:
    """Gives a finished folder its name in one step; where another process was faster, that one's stays.

    :raises OSError: the rename failed for another reason.
    """
    try:
        finished.rename(name)
    except OSError:
        if not name.is_dir():
            raise


def _ivy_jar() -> Path:
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is not None and pyspark.origin is not None:
        for jar in sorted(Path(pyspark.origin).parent.glob("jars/ivy-*.jar")):
            return jar
    raise ConfigurationError("Apache Ivy", "pyspark/jars/ivy-*.jar is not there", "pip install pyspark")


def _download(files: list[ListedFile], folder: Path) -> None:
    """Several Ivy processes side by side: one alone waits for the network most of the time."""
    (folder / "ivysettings.xml").write_text(_settings_xml())
    options = truststore_options(folder)
    parts = [files[start::PARALLEL_DOWNLOADS] for start in range(min(PARALLEL_DOWNLOADS, len(files)))]
    waiting = {
        folder / f"part{number}": _ivy_command(part, folder, folder / f"part{number}", options)
        for number, part in enumerate(parts)
    }
    for _ in range(DOWNLOAD_ATTEMPTS):
        waiting = _failed(waiting)
        if not waiting:
            break
    else:
        raise _download_error(waiting)
    for file in files:
        _check(file, folder / file.path)


def _ivy_command(files: list[ListedFile], folder: Path, own_folder: Path, options: list[str]) -> list[str]:
    own_folder.mkdir()
    (own_folder / "ivy.xml").write_text(_ivy_xml(files))
    pattern = "[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
    return [
        *(str(find_java()), *options, "-XX:TieredStopAtLevel=1", "-jar", str(_ivy_jar())),
        *("-settings", str(folder / "ivysettings.xml"), "-ivy", str(own_folder / "ivy.xml")),
        *("-cache", str(own_folder / "cache"), "-retrieve", str(folder / pattern)),
    ]


def _failed(commands: dict[Path, list[str]]) -> dict[Path, list[str]]:
    """Runs Ivy's commands side by side, each with a folder for its log, and returns those that failed."""
    processes: dict[Path, subprocess.Popen[bytes]] = {}
    try:
        for own_folder, command in commands.items():
            with (own_folder / "ivy.log").open("wb") as log:
                processes[own_folder] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        return {folder: commands[folder] for folder, process in processes.items() if process.wait() != 0}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def _download_error(failed: dict[Path, list[str]]) -> StorageError:
    messages = "".join((folder / "ivy.log").read_text(errors="replace") for folder in failed)
    reasons = re.findall(r".*(?:not found|FAILED|Exception|ERROR).*", messages)
    return StorageError(
        "jars of Hive",
        f"no download in {DOWNLOAD_ATTEMPTS} attempts: {'; '.join(reasons[:5]) or messages[-500:]}",
        f"check the network, or name a mirror of Maven Central in {REPOSITORY_VARIABLE}",
    )


def _settings_xml() -> str:
    mirror = os.environ.get(REPOSITORY_VARIABLE)
    root = f" root={quoteattr(mirror)}" if mirror else ""
    return (
        '<ivysettings><settings defaultResolver="maven"/><resolvers>'
        f'<ibiblio name="maven" m2compatible="true" usepoms="false"{root}/></resolvers></ivysettings>'
    )


def _ivy_xml(files: list[ListedFile]) -> str:
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="airflow-provider-acid" module="metastore"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(file.ivy_dependency for file in files)}</dependencies></ivy-module>"
    )


def _check(file: ListedFile, path: Path) -> None:
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
    if digest != file.sha256:
        raise StorageError(
            file.path, f"its SHA-256 is {digest}, not {file.sha256}", "download again from a repository you trust"
        )


def _arrange(files: list[ListedFile], download: Path, distribution: Path, schema_files: frozenset[str]) -> None:
    """Jars into one folder; of the tarball only what the schema tool reads."""
    jars = distribution / "jars"
    schemas = distribution / SCHEMAS
    jars.mkdir(parents=True)
    schemas.mkdir(parents=True)
    for file in files:
        path = download / file.path
        if path.suffix == ".jar":
            path.rename(jars / file.file_name)
        else:
            _extract_schemas(path, schemas, schema_files)


def _extract_schemas(tarball: Path, schemas: Path, names: frozenset[str]) -> None:
    missing = set(names)
    with tarfile.open(tarball, "r|gz") as archive:
        for member in archive:
            name = "/".join(Path(member.name).parts[-2:])
            content = archive.extractfile(member) if member.name.endswith(f"/{SCHEMAS}/{name}") else None
            if content is not None and name in missing:
                (schemas / name).parent.mkdir(exist_ok=True)
                with (schemas / name).open("wb") as target:
                    shutil.copyfileobj(content, target)
                missing.discard(name)
            if not missing:
                return
    raise StorageError(
        str(tarball), f"holds no {', '.join(sorted(missing))}", "correct the version in the list of jars"
    )
