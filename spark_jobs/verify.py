"""An output file is opened again and read back before it counts."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass

from airflow_provider_acid.acid.plan import OrcOptions, SourceFile
from airflow_provider_acid.exceptions import AcidError, VerificationError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.spark_jobs.exact_rows import exact_reader
from airflow_provider_acid.spark_jobs.key_filter import Key, KeyFilter, key_at
from airflow_provider_acid.spark_jobs.orc_schema import OrcType
from airflow_provider_acid.spark_jobs.orc_tail import KEY_INDEX, STATS, VERSION, OrcTail
from airflow_provider_acid.spark_jobs.sealed_output import key_index_text
from airflow_provider_acid.spark_jobs.source_files import KEY_FIELDS, SourceReader, damage_named, open_source

_REMEDY = "report this with the versions of pyarrow and pyorc; nothing was published"


@dataclass(frozen=True)
class Expected:
    """What an output must hold.

    :param rows: by the sources' footers, less the rows the filter dropped.
    :param values: by the sources' footers, how many values each of the table's first columns holds; None where the
        footers cannot say it.
    :param last_keys: of every stripe.
    :param reads_in_arrow: whether Arrow holds every value, so that it may read the file back.
    :param zone: the zone in which the file counts timestamps.
    """

    schema: OrcType
    rows: int
    values: tuple[int, ...] | None
    last_keys: tuple[Key, ...]
    calendar: int
    reads_in_arrow: bool
    zone: str


def verify_output(storage: Storage, path: str, options: OrcOptions, expected: Expected, filter_again: KeyFilter) -> int:
    """Check a written file and read every row of it.

    :param filter_again: a new filter of the same bucket; it must find nothing to drop, and the keys in order.
    :returns: the file's size in bytes.
    :raises VerificationError: the file does not hold what it must.
    """
    name = join(storage.location, path)
    with storage.open_input(path) as file:
        size = file.seek(0, 2)
    try:
        with open_source(storage, SourceFile(path, size)) as reader:
            if reader is None:
                raise VerificationError(name, "is empty", _REMEDY)
            _check_tail(name, reader.tail, options, expected)
            _read_back(reader, expected, filter_again)
    except VerificationError:
        raise
    except AcidError as error:
        raise VerificationError(name, f"cannot be read back ({error.reason})", _REMEDY) from error
    return size


def _check_tail(name: str, tail: OrcTail, options: OrcOptions, expected: Expected) -> None:
    metadata = {
        KEY_INDEX: key_index_text(expected.last_keys).encode(),
        STATS: f"{expected.rows},0,0".encode(),
        VERSION: b"2",
    }
    facts: tuple[tuple[str, object, object], ...] = (
        ("schema", str(tail.schema), str(expected.schema)),
        ("rows", tail.rows, expected.rows),
        ("rows by statistics", tail.statistics[0].values if tail.statistics else None, expected.rows),
        ("statistics", len(tail.statistics), sum(1 for _ in expected.schema.walk())),
        ("stripes with statistics", tail.stripe_statistics, len(tail.stripes)),
        ("stripes in the key index", len(expected.last_keys), len(tail.stripes)),
        ("user metadata", dict(tail.user_metadata), metadata),
        ("calendar", tail.calendar, expected.calendar),
        ("compression", tail.compression.name.lower(), options.compression),
        ("row index stride", tail.row_index_stride, options.row_index_stride),
    )
    for fact, found, wanted in facts:
        if found != wanted:
            raise VerificationError(name, f"its {fact} should be {wanted}, not {found}", _REMEDY)
    _check_values(name, tail.values_by_column(), expected.values)


def _check_values(name: str, found: tuple[int, ...] | None, wanted: tuple[int, ...] | None) -> None:
    if found is None or wanted is None:
        return
    # Columns that none of the sources has are NULL throughout.
    padded = wanted + (0,) * (len(found) - len(wanted))
    if found != padded:
        raise VerificationError(name, f"its columns hold {found} values, the sources {padded}", _REMEDY)


def _read_back(reader: SourceReader, expected: Expected, filter_again: KeyFilter) -> None:
    rows = None if expected.reads_in_arrow else exact_reader(reader, zoneinfo.ZoneInfo(expected.zone))
    write_ids: list[int] = []
    for stripe, wanted in enumerate(expected.last_keys):
        batch = reader.read_stripe(stripe, None if rows is None else KEY_FIELDS)
        kept = filter_again.apply(reader.name, batch)
        if kept.rows_aborted or kept.rows_deleted:
            raise VerificationError(
                reader.name, f"holds {kept.rows_aborted} aborted and {kept.rows_deleted} deleted rows", _REMEDY
            )
        last = key_at(batch, batch.num_rows - 1)
        if last != wanted:
            raise VerificationError(reader.name, f"its stripe {stripe} ends with {last}, not {wanted}", _REMEDY)
        if rows is not None:
            with damage_named(reader.name):
                read = sum(1 for _ in rows.read_stripe(stripe))
            if read != batch.num_rows:
                raise VerificationError(
                    reader.name, f"has {read} rows in stripe {stripe}, not {batch.num_rows}", _REMEDY
                )
        write_ids += (key_at(batch, 0)[0], last[0])
    # Column 2 is originalTransaction; Hive and Trino prune by its statistics.
    statistics = reader.tail.statistics[2]
    if (statistics.minimum, statistics.maximum) != (min(write_ids), max(write_ids)):
        raise VerificationError(reader.name, "its statistics do not fit its write ids", _REMEDY)
