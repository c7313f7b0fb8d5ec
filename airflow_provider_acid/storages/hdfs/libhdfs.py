"""The process's connections by libhdfs, which starts a JVM inside it; the border to pyarrow's class."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress

from pyarrow import fs

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.storages.hdfs.location import HdfsLocation
from airflow_provider_acid.storages.hdfs.options import HdfsOptions

_CONNECT_SECONDS = 10
_CONNECT_RETRIES = 3

_connections: dict[tuple[int, str, HdfsOptions], fs.HadoopFileSystem] = {}
_connecting = threading.Lock()


def connection(place: HdfsLocation, options: HdfsOptions) -> fs.HadoopFileSystem:
    """The connection to a location's HDFS, made once in a process for each authority and options.

    NameNodes and nameservices are those of the Hadoop configuration on CLASSPATH, as for any client in Java.

    :raises ConfigurationError: libhdfs is not installed, or the options ask for what it cannot do.
    :raises StorageError: it does not connect.
    """
    if place.scheme != "hdfs":
        raise StorageError(place.location, "is not read by libhdfs", "use hdfs://, or WebHDFS for this location")
    if options.kerberos and options.proxy_user is not None:
        raise ConfigurationError(
            "HDFS option proxy_user",
            "is not possible by libhdfs with Kerberos",
            "use WebHDFS, or start the process with HADOOP_PROXY_USER",
        )
    key = (os.getpid(), place.authority, options)
    with _connecting:
        return _connections.get(key) or _connections.setdefault(key, _connect(place, options))


def _connect(place: HdfsLocation, options: HdfsOptions) -> fs.HadoopFileSystem:
    host, _, port = place.authority.rpartition(":") if ":" in place.authority else (place.authority, "", "0")
    timeout_milliseconds = str(int(options.timeout_seconds * 1000))
    settings = {
        "ipc.client.connect.timeout": str(_CONNECT_SECONDS * 1000),
        "ipc.client.connect.max.retries": str(_CONNECT_RETRIES),
        "ipc.client.connect.max.retries.on.timeouts": str(_CONNECT_RETRIES),
        "ipc.client.rpc-timeout.ms": timeout_milliseconds,
        "dfs.client.socket-timeout": timeout_milliseconds,
        **_read_what_others_wrote({place.authority, *options.authorities}),
    }
    try:
        return fs.HadoopFileSystem(
            host or "default",
            int(port),
            # Without Kerberos HDFS believes any name.
            user=None if options.kerberos else options.proxy_user or options.user,
            extra_conf=settings,
        )
    except OSError as error:
        reason = str(error).partition("\n")[0]
        if reason.startswith("Unable to load"):
            remedy = "set JAVA_HOME, ARROW_LIBHDFS_DIR (or HADOOP_HOME) and CLASSPATH, or use WebHDFS"
            raise ConfigurationError("libhdfs", f"cannot be used ({reason})", remedy) from error
        raise StorageError(
            place.location,
            f"libhdfs does not connect ({reason})",
            "check the host or nameservice, CLASSPATH with the Hadoop configuration and each jar, and libhdfs's "
            "messages in the log",
        ) from error


def _read_what_others_wrote(authorities: Iterable[str]) -> dict[str, str]:
    """Where Hadoop's configuration has reads go to observers, have each ask first how far the active NameNode is.

    An observer shows a client what that client wrote, but may lack what somebody else wrote and has committed since.
    """
    nameservices = (name for name in authorities if name and ":" not in name)
    return {f"dfs.client.failover.observer.auto-msync-period.{name}": "0" for name in nameservices}


def close_quietly(file: object) -> None:
    """Close a file that was only read; what goes wrong then is of no interest."""
    with suppress(OSError):
        file.close()  # type: ignore[attr-defined]
