"""libhdfs.so, which is packaged nowhere: compiled from the C sources that the sdist of pydoop holds.

It starts a JVM inside the process that uses it, once: environment and class path count as they are at that moment.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from tests.harness.hdfs_server import HdfsServer
from tests.harness.jars import cache_base, publish
from tests.harness.java import find_java

SOURCE = "pydoop==2.0.0"
SOURCE_SHA256 = "c7eb2ad8c36d2a75dc1c6cee701928334614f2e862a70798b0cb278e3102f77d"
LIBRARY = "libhdfs.so"

_SOURCE_FOLDER = "/src/libhdfs/"
_OLD_SETUPTOOLS = "setuptools<70"  # pip wants the sdist's metadata, and its setup.py the pkg_resources of old
_C_FILES = ("hdfs.c", "exception.c", "jni_helper.c", "common/htable.c")
_POSIX_C_FILES = ("mutexes.c", "thread.c", "thread_local_storage.c")
_INCLUDES = (".", "include", "include/hdfs", "os", "os/posix")
# -Xrs: SIGINT, SIGTERM and SIGHUP stay Python's.
_JVM_OPTIONS = "-Xrs -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"


def libhdfs_environment(server: HdfsServer) -> dict[str, str]:
    """What a process needs in its environment before it first uses pyarrow's ``HadoopFileSystem``.

    :raises ConfigurationError: no JDK or no C compiler.
    :raises StorageError: the sources cannot be downloaded.
    """
    home = java_home()
    return {
        "ARROW_LIBHDFS_DIR": str(libhdfs_folder(home)),
        "JAVA_HOME": str(home),
        "CLASSPATH": server.class_path,
        "HADOOP_CONF_DIR": str(server.client_configuration),
        "LIBHDFS_OPTS": _JVM_OPTIONS,
    }


def java_home() -> Path:
    """The folder of the JDK that :func:`find_java` finds, also where that is a link or a script."""
    java = find_java()
    command = [str(java), "-XshowSettings:properties", "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"java\.home = (.+)", answer.stderr)
    if found is None or not Path(found[1], "include", "jni.h").is_file():
        raise ConfigurationError(
            "libhdfs", f"the Java of {java} has no include/jni.h", "install a JDK, 17 or later, and set JAVA_HOME"
        )
    return Path(found[1])


def libhdfs_folder(home: Path) -> Path:
    """A folder with :data:`LIBRARY`, compiled for the JVM of a Java home where it is not cached yet."""
    digest = hashlib.sha256(f"{SOURCE_SHA256} {home}".encode()).hexdigest()[:12]
    complete = cache_base() / f"libhdfs-{digest}"
    if complete.is_dir():
        return complete
    complete.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=complete.parent, prefix=".libhdfs-") as temporary:
        work = Path(temporary)
        sources = _unpack(_download(work), work / "sources")
        library = work / "library"
        library.mkdir()
        _compile(sources, home, library / LIBRARY)
        publish(library, complete)
    return complete


def _download(folder: Path) -> Path:
    """By pip, whatever index it is configured to use; it refuses another checksum before it runs anything."""
    (folder / "requirements.txt").write_text(f"{SOURCE} --hash=sha256:{SOURCE_SHA256}\n")
    constraint = folder / "build-constraint.txt"
    constraint.write_text(f"{_OLD_SETUPTOOLS}\n")
    environment = {
        **os.environ,
        "PIP_USE_PEP517": "1",
        # The constraints of builds have a name of their own since pip 25.3.
        "PIP_CONSTRAINT": str(constraint),
        "PIP_BUILD_CONSTRAINT": str(constraint),
    }
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pydoop"),
        *("--require-hashes", "--dest", str(folder), "--requirement", str(folder / "requirements.txt")),
    ]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    archives = list(folder.glob("*.tar.gz"))
    if done.returncode != 0 or len(archives) != 1:
        raise StorageError(SOURCE, f"no download: {done.stderr[-1000:]}", "check the network and pip's configuration")
    return archives[0]


def _unpack(archive: Path, folder: Path) -> Path:
    """Only the C sources."""
    with tarfile.open(archive) as tar:
        for member in tar:
            _, found, name = member.name.partition(_SOURCE_FOLDER)
            content = tar.extractfile(member) if found else None
            if content is not None:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content.read())
    return folder


def _compile(sources: Path, home: Path, library: Path) -> None:
    java_library = home / "lib" / "server"
    includes = [*_INCLUDES, str(home / "include"), str(home / "include" / "linux")]
    command = [
        *("gcc", "-O2", "-fPIC", "-shared", "-w", "-o", str(library)),
        *(*_C_FILES, *(f"os/posix/{name}" for name in _POSIX_C_FILES)),
        *(f"-I{folder}" for folder in includes),
        *(f"-L{java_library}", "-ljvm", f"-Wl,-rpath,{java_library}"),
    ]
    try:
        done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ConfigurationError("libhdfs", "there is no gcc on PATH", "install a C compiler (gcc)") from error
    if done.returncode != 0:
        raise ConfigurationError("libhdfs", f"gcc fails: {done.stderr[-2000:]}", "install gcc and a JDK 17 or later")
