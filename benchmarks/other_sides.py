"""What this project is compared with: the job of Hive 3.1.3's own compactor, and a plain copy of the bytes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_acid.plan.plan import CompactionType
from benchmarks.acid_tables import Shape
from benchmarks.metering import Meter, this_process, tree_of
from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3

_JOB = "org.apache.hadoop.hive.ql.txn.compactor.CompactionJob"
JVM_OPTIONS = ("-Xmx3g", "-Xss8m", "-Xshare:auto", "-Duser.timezone=UTC", "-Dlog4j2.disable.jmx=true")
"""As a metastore's: unlike in tests nothing keeps the JVM from making its code fast."""

_STATEMENT_SECONDS = 3600
_QUICK_POLL_MS = 20
HIVE_POLL_MS = 5000
"""How often Hive's Worker asks whether its job has ended, by default; the client's, not the job's time."""


class HiveSide:
    """Compacts in an engine that runs its tasks in its own process, as many at once as this project does."""

    name = "Hive 3.1.3"

    def __init__(self, engine: HiveEngine) -> None:
        self.engine = engine
        self._processes = tree_of(engine.pid)

    def meter(self) -> Meter:
        """Of the engine's process."""
        return Meter(self._processes)

    def compact(
        self, folder: Path, shape: Shape, type: CompactionType, meter: Meter, poll_ms: int = _QUICK_POLL_MS
    ) -> Path:
        """Run the job, from its start to its end; the directory of the result, where it appears to readers."""
        before = {path.name for path in folder.iterdir()}
        columns = ";".join(f"{name}:{kind}" for name, kind in shape.kind.types.items())
        settings = [f"{name}={value}" for name, value in shape.properties.items()]
        polling = ("mapreduce.client.completion.pollinterval", "mapreduce.client.progressmonitor.pollinterval")
        self.engine.set({**dict.fromkeys(polling, str(poll_ms)), "mapreduce.local.map.tasks.maximum": "2"})
        try:
            with meter.running():
                self.engine.call(_JOB, f"file:{folder}", type.name, str(shape.write_ids), columns, *settings)
        finally:
            self.engine.set({"mapreduce.local.map.tasks.maximum": "1"})
        (made,) = {path.name for path in folder.iterdir() if path.name.startswith(("base_", "delta_"))} - before
        return folder / made


@contextmanager
def hive_side(folder: Path) -> Iterator[HiveSide]:
    """An engine with its metastore, ended with the block."""
    with HiveEngine(HIVE_3, folder, jvm_options=JVM_OPTIONS, statement_seconds=_STATEMENT_SECONDS) as engine:
        yield HiveSide(engine)


class CopySide:
    """Copies the files of the table, one after the other, down to the disk: results of the others are flushed, too."""

    name = "copy"

    def meter(self) -> Meter:
        """Of this process."""
        return Meter(this_process)

    def compact(self, folder: Path, shape: Shape, type: CompactionType, meter: Meter) -> Path:
        """Copy; the directory with the copies."""
        target = folder / "_copy"
        files = sorted(path for path in folder.glob("*delta_*/*") if path.is_file())
        with meter.running():
            for file in files:
                place = target / file.parent.name
                place.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place / file.name)
                with (place / file.name).open("rb") as copied:
                    os.fsync(copied.fileno())
        return target
