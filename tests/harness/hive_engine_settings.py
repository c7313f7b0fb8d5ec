"""The settings of Hive's SQL engine, version by version; each line is there because something fails without it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from tests.harness.hive_engine_program import HIVE_3
from tests.harness.metastore_server import MetastoreServer

_CAPABILITIES = (
    "EXTWRITE,EXTREAD,HIVEBUCKET2,HIVEFULLACIDREAD,HIVEFULLACIDWRITE,HIVECACHEINVALIDATE,HIVEMANAGESTATS,"
    "HIVEMANAGEDINSERTWRITE,HIVEMANAGEDINSERTREAD,HIVESQL,HIVEMQT,HIVEONLYMQTWRITE,ACCEPTS_UNMODIFIED_METADATA"
)
_LOGGING = """\
status = error
name = hive
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log_file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p [%t] %c{{2}}: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.file.ref = file
"""


def write_engine_settings(version: str, folder: Path, work_dir: Path, metastore: MetastoreServer) -> None:
    """Writes all files of an engine's settings, and makes the folders they name."""
    for name in ("tmp", "local", "install", "scratch"):
        (work_dir / name).mkdir(parents=True, exist_ok=True)
    (work_dir / "scratch").chmod(0o733)  # Hive refuses another mode
    folder.mkdir(parents=True, exist_ok=True)
    of_version = _hive_3() if version == HIVE_3 else {**_hive_4(work_dir), **metastore.database.settings()}
    protection = metastore.protection
    _write(folder / "hive-site.xml", {**_shared(work_dir, metastore), **of_version, **protection.client_settings})
    _write(
        folder / "core-site.xml",
        {
            **protection.hadoop_settings,
            "fs.defaultFS": "file:///",
            "fs.file.impl": "FilesAsOnHdfs",
            "hadoop.tmp.dir": str(work_dir / "tmp" / "hadoop"),
        },
    )
    _write(folder / "mapred-site.xml", _map_reduce())
    _write(folder / "tez-site.xml", _tez(work_dir))
    (folder / "hive-log4j2.properties").write_text(_LOGGING.format(log_file=work_dir / "hive.log"))


def _shared(work_dir: Path, metastore: MetastoreServer) -> dict[str, str]:
    return {
        "hive.metastore.uris": metastore.uri,
        "metastore.thrift.uris": metastore.uri,
        "hive.metastore.warehouse.dir": metastore.warehouse_uri,
        "hive.metastore.warehouse.external.dir": f"file:{work_dir / 'external'}",
        "hive.exec.scratchdir": f"file:{work_dir / 'scratch'}",
        "hive.exec.local.scratchdir": str(work_dir / "local"),
        "hive.downloaded.resources.dir": str(work_dir / "local" / "resources"),
        "hive.querylog.location": str(work_dir / "local" / "querylog"),
        "hive.support.concurrency": "true",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "hive.txn.timeout": f"{metastore.transaction_timeout_seconds}s",
        "hive.exec.dynamic.partition.mode": "nonstrict",
        "hive.stats.autogather": "false",
        "hive.stats.column.autogather": "false",
        "hive.compute.query.using.stats": "false",
        "hive.query.results.cache.enabled": "false",  # each reading must read
        "hive.async.log.enabled": "false",  # true needs one more jar
        "hive.compactor.initiator.on": "false",
        "hive.compactor.worker.threads": "0",
    }


def _hive_3() -> dict[str, str]:
    return {
        "hive.execution.engine": "mr",
        "hive.auto.convert.join": "false",
        "hive.security.authorization.enabled": "false",
        "hive.exec.counters.pull.interval": "20",
    }


def _hive_4(work_dir: Path) -> dict[str, str]:
    return {
        "hive.execution.engine": "tez",
        "hive.execution.mode": "container",
        "hive.llap.execution.mode": "none",
        "hive.user.install.directory": f"file:{work_dir / 'install'}",
        "hive.jar.directory": f"file:{work_dir / 'install'}",
        "hive.tez.container.size": "1024",
        "hive.exec.submitviachild": "false",
        "hive.exec.submit.local.task.via.child": "false",
        "hive.server2.materializedviews.registry.impl": "DUMMY",
        "hive.scheduled.queries.executor.enabled": "false",
        "hive.notification.event.poll.interval": "0s",
        "hive.metastore.client.capabilities": _CAPABILITIES,
    }


def _map_reduce() -> dict[str, str]:
    return {
        "mapreduce.framework.name": "local",
        "mapreduce.jobtracker.address": "local",
        "mapreduce.task.io.sort.mb": "64",
        "mapreduce.local.map.tasks.maximum": "1",  # Hive 3 is not thread-safe within one JVM
        "mapreduce.local.reduce.tasks.maximum": "1",
        "mapreduce.client.completion.pollinterval": "20",
        "mapreduce.client.progressmonitor.pollinterval": "20",
    }


def _tez(work_dir: Path) -> dict[str, str]:
    return {
        "tez.local.mode": "true",
        "tez.local.mode.without.network": "true",
        "tez.runtime.optimize.local.fetch": "true",
        "tez.runtime.io.sort.mb": "24",
        "tez.staging-dir": str(work_dir / "tmp" / "tez"),
        "tez.ignore.lib.uris": "true",
        # Nor is Hive 4: its ObjectCache takes the registry of whichever task began last in the JVM. Two tasks may share
        # one tree of operators then, and the rows of a split are lost.
        "tez.am.inline.task.execution.max-tasks": "1",
    }


def _write(file: Path, settings: Mapping[str, str]) -> None:
    properties = "\n".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{properties}\n</configuration>\n")
