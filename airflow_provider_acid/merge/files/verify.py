"""An output file is opened again and read back before it counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_acid.exceptions import AcidError, StorageError, VerificationError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.sealed_output import acid_metadata
from airflow_provider_acid.merge.files.source_files import SourceReader, open_source
from airflow_provider_acid.merge.keys.acid_keys import Key, KeyRange
from airflow_provider_acid.merge.orc.schema import OrcType
from airflow_provider_acid.merge.orc.tail import OrcTail
from airflow_provider_acid.plan.plan import OrcOptions, SourceFile

REPORT = "report this with the versions of pyarrow and pyorc; nothing was published"


@dataclass(frozen=True)
class Expected:
    """What an output must hold.

    :param operation: of every row.
    :param rows: by the sources' footers, less the rows the filter dropped.
    :param values: by the sources' footers, how many values each of the table's first columns holds; None where the
        footers cannot say it.
    :param last_keys: of every stripe.
    """

    schema: OrcType
    operation: int
    rows: int
    values: tuple[int, ...] | None
    last_keys: tuple[Key, ...]
    calendar: int


StripeCheck = Callable[[SourceReader, int], KeyRange | None]
"""Reads a stripe, checks it, and gives back its first and its last key; None where it has no rows."""


def verify_output(storage: Storage, path: str, options: OrcOptions, expected: Expected, check: StripeCheck) -> int:
    """Check a written file and read every row of it.

    :param check: of one stripe after the other.
    :returns: the file's size in bytes.
    :raises VerificationError: the file does not hold what it must.
    :raises StorageError: it, or a source that it is compared with, could not be read now, which says nothing about it.
    """
    name = join(storage.location, path)
    with storage.open_input(path) as file:
        size = file.seek(0, 2)
    try:
        with open_source(storage, SourceFile(path, size)) as reader:
            if reader is None:
                raise VerificationError(name, "is empty", REPORT)
            _check_tail(name, reader.tail, options, expected)
            _check_values(name, reader.values_by_column(), expected.values)
            _read_back(reader, expected, check)
    except (StorageError, VerificationError):
        raise
    except AcidError as error:
        raise VerificationError(name, f"cannot be read back ({error.reason})", REPORT) from error
    return size


def _check_tail(name: str, tail: OrcTail, options: OrcOptions, expected: Expected) -> None:
    metadata = acid_metadata(expected.last_keys, expected.operation, expected.rows)
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
            raise VerificationError(name, f"its {fact} should be {wanted}, not {found}", REPORT)


def _check_values(name: str, found: tuple[int, ...] | None, wanted: tuple[int, ...] | None) -> None:
    if found is None or wanted is None:
        return
    # Columns that none of the sources has are NULL throughout.
    padded = wanted + (0,) * (len(found) - len(wanted))
    if found != padded:
        raise VerificationError(name, f"its columns hold {found} values, the sources {padded}", REPORT)


def _read_back(reader: SourceReader, expected: Expected, check: StripeCheck) -> None:
    write_ids: list[int] = []
    for stripe, wanted in enumerate(expected.last_keys):
        keys = check(reader, stripe)
        if keys is None:
            raise VerificationError(reader.name, f"its stripe {stripe} has no rows", REPORT)
        if keys.last != wanted:
            raise VerificationError(reader.name, f"its stripe {stripe} ends with {keys.last}, not {wanted}", REPORT)
        write_ids += (keys.first[0], keys.last[0])
    # Column 2 is originalTransaction; Hive and Trino prune by its statistics.
    statistics = reader.tail.statistics[2]
    if (statistics.minimum, statistics.maximum) != (min(write_ids), max(write_ids)):
        raise VerificationError(reader.name, "its statistics do not fit its write ids", REPORT)
