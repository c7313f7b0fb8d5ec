"""Insert-only tables on a real metastore: written as Hive writes them, compacted, read by an independent reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pyorc

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import DuePartition, Outcome, OutcomeState
from airflow_provider_acid.compaction.steps import StepListener, ignore_steps
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.current_rows import snapshot_now
from tests.harness.insert_only_reader import Row, read_table
from tests.integration.compaction_site import AcidTable, Site, Write, fingerprint


def compact(site: Site, entity: Entity, type: CompactionType, on_step: StepListener = ignore_steps) -> Outcome:
    return site.compact(DuePartition(entity, type, "test", None), on_step=on_step)


def compacted(site: Site, entity: Entity, type: CompactionType, on_step: StepListener = ignore_steps) -> str:
    """Compacts and cleans; the name of the directory that was made."""
    outcome = compact(site, entity, type, on_step)
    assert outcome.state is OutcomeState.COMPACTED, outcome
    (target,) = outcome.targets
    (cleaning,) = site.clean(entity, on_step=on_step)
    assert cleaning.state is CleaningState.CLEANED, cleaning
    return target


def orc_file(values: Iterable[int], schema: str = "struct<v:bigint>") -> bytes:
    output = BytesIO()
    with pyorc.Writer(output, schema) as writer:
        writer.writerows([(value, *([f"s{value}"] if "s:string" in schema else [])) for value in values])
    return output.getvalue()


def parquet_file(values: Iterable[int]) -> bytes:
    output = BytesIO()
    parquet.write_table(pa.table({"v": pa.array(values, pa.int64())}), output)
    return output.getvalue()


def text_file(values: Iterable[int]) -> bytes:
    return "".join(f"{value}\n" for value in values).encode()


HIVE = "org.apache.hadoop.hive."
FORMATS: dict[str, tuple[str, str, Callable[[Iterable[int]], bytes]]] = {
    "ORC": (HIVE + "ql.io.orc.OrcInputFormat", HIVE + "ql.io.orc.OrcSerde", orc_file),
    "Parquet": (
        HIVE + "ql.io.parquet.MapredParquetInputFormat",
        HIVE + "ql.io.parquet.serde.ParquetHiveSerDe",
        parquet_file,
    ),
    "text": ("org.apache.hadoop.mapred.TextInputFormat", HIVE + "serde2.lazy.LazySimpleSerDe", text_file),
}


class InsertOnly:
    """An insert-only table ``t`` with the one column ``v bigint``; text unless told otherwise."""

    def __init__(
        self,
        site: Site,
        format: str = "text",
        *,
        columns: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> None:
        self.input_format, serde, self.file = FORMATS[format]
        self.site, self.columns = site, columns or {"v": "bigint"}
        properties = {"transactional_properties": "insert_only", **(properties or {})}
        self.table: AcidTable = site.table(
            properties=properties, input_format=self.input_format, serde=serde, columns=self.columns, **changes
        )

    def write(
        self, *values: int, partition: str | None = None, name: str = "000000_0", overwrite: bool = False
    ) -> Write:
        """Files of a transaction that is left open."""
        write = self.table.write(partition)
        self.put(write, {"000000_0": self.file(values)}, partition, overwrite=overwrite)
        return write

    def put(
        self, write: Write, files: Mapping[str, bytes], partition: str | None = None, *, overwrite: bool = False
    ) -> None:
        directory = f"base_{write.id:07d}" if overwrite else f"delta_{write.id:07d}_{write.id:07d}_0000"
        for name, content in files.items():
            file = self.table.folder(partition) / directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def insert(self, *values: int, partition: str | None = None) -> None:
        self.write(*values, partition=partition).commit()

    def overwrite(self, *values: int, partition: str | None = None) -> None:
        self.write(*values, partition=partition, overwrite=True).commit()

    def rows(self) -> list[Row]:
        """What a reader who starts now sees."""
        return read_table(
            self.table.location,
            self.input_format,
            self.columns,
            snapshot_now(self.site.admin, self.site.database, "t"),
            partition_keys=self.table.partition_keys,
        )

    def values(self) -> list[int]:
        return sorted(int(str(row["v"])) for row in self.rows())

    def compact(self, type: CompactionType, partition: str | None = None) -> str:
        """Compacts and cleans; what readers see stays the same."""
        before = self.values()
        target = compacted(self.site, self.table.entity(partition), type)
        assert self.values() == before
        return target

    def refuses_to_merge(self, type: CompactionType, partition: str | None = None) -> None:
        """Asks in vain; not a byte below the table changes."""
        before = fingerprint(self.table.location)
        outcome = compact(self.site, self.table.entity(partition), type)
        assert outcome.state is OutcomeState.NOTHING_TO_MERGE, outcome
        assert fingerprint(self.table.location) == before

    def files(self, directory: str) -> list[str]:
        return sorted(file.name for file in (self.table.location / directory).iterdir() if file.name[0] not in "_.")


def unsuffixed(name: str) -> str:
    return name.partition("_v")[0]
