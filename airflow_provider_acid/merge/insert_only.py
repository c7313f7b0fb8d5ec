"""One bucket of an insert-only table: its files taken over with their content unchanged, in as few files as is exact.

Rows of such tables have no ids, so nothing of a file depends on where it lies. ORC files of one kind become one by
their stripes, plain text files by their lines; all others keep to themselves as ``000000_0``, ``000000_0_copy_1``, ….
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as parquet
import pyorc

from airflow_provider_acid.exceptions import CorruptFileError, UnsupportedTableError, VerificationError
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.merge.files.answers import Merged, Progress, attempt_path
from airflow_provider_acid.merge.files.file_copy import Segment, check_size, copy_whole, verify_segments
from airflow_provider_acid.merge.files.orc_stripes import (
    StripeCopy,
    StripeSource,
    groups_that_fit,
    look_at,
    verify_stripes,
    write_stripes,
)
from airflow_provider_acid.plan.plan import BucketPlan, CompactionPlan, FileFormat, OutputKind, SourceFile
from airflow_provider_acid.plan.result import OutputFile

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ENCRYPTED_FOOTER = b"PARE"
_REPORT = "report this with the version of pyorc; nothing was published"


@dataclass(frozen=True)
class _Output:
    """A file to write.

    :param extension: of its name; readers choose the codec of text by it.
    :param stripes: of an ORC file; 0 for others.
    :param merged: the ORC files whose stripes it is made of; empty where the sources are copied as they are.
    """

    sources: tuple[SourceFile, ...]
    extension: str = ""
    rows: int = 0
    stripes: int = 0
    end_lines: bool = False
    merged: tuple[StripeSource, ...] = ()


def copy_files(storage: Storage, plan: CompactionPlan, bucket: BucketPlan, progress: Progress) -> tuple[Merged, ...]:
    """Take over a bucket's files into new files below the staging directory's ``attempts``, and verify them.

    :param storage: of the plan's location.
    :param progress: called with the bytes of the sources that are copied so far.
    :return: in the order of the files' names. Text counts no rows.
    :raises CorruptFileError: a source is damaged, or is not the planned one.
    :raises UnsupportedTableError: a source's footer is encrypted, so that its rows cannot be counted.
    :raises VerificationError: a written file does not hold what its sources hold.
    """
    sources = tuple(source for source in bucket.rows if source.size_bytes)
    if sources:
        outputs = list(_OUTPUTS[plan.format](storage, sources))
    else:
        # All that a bucket of a bucketed table has is empty files: it keeps one.
        outputs = [_Output(bucket.rows[:1], _extension(source)) for source in bucket.rows[:1]]
    merged, done_bytes = [], 0
    for number, output in enumerate(outputs):
        name = f"{bucket.bucket:06d}_0{f'_copy_{number}' if number else ''}{output.extension}"
        path = attempt_path(plan, name)
        size = _write(storage, path, output, partial(_add, progress, done_bytes))
        merged.append(Merged(path, _figures(bucket, name, size, output)))
        done_bytes += sum(source.size_bytes for source in output.sources)
    return tuple(merged) or (Merged(None, _figures(bucket, None, 0, _Output(()))),)


def _add(progress: Progress, before_bytes: int, done_bytes: int) -> None:
    progress(before_bytes + done_bytes)


def _figures(bucket: BucketPlan, name: str | None, size_bytes: int, output: _Output) -> OutputFile:
    return OutputFile(
        output=OutputKind.ROWS,
        bucket=bucket.bucket,
        name=name,
        size_bytes=size_bytes,
        stripes=output.stripes,
        rows_in=output.rows,
        rows_aborted=0,
        rows_deleted=0,
        rows_repeated=0,
        rows_out=output.rows,
    )


def _write(storage: Storage, path: str, output: _Output, progress: Progress) -> int:
    """Write and verify one file; its size."""
    name = join(storage.location, path)
    segments: tuple[Segment, ...] = ()
    copy: StripeCopy | None = None
    with storage.create(path) as file:
        if output.merged:
            copy = write_stripes(output.merged, file, progress)
        else:
            segments = copy_whole(storage, output.sources, file, progress, end_lines=output.end_lines)
    with storage.open_input(path) as file:
        if copy is None:
            return verify_segments(name, file, segments)
        verify_stripes(name, file, copy)
        _read_tail(name, file, output)
        return copy.size_bytes


def _read_tail(name: str, file: BinaryIO, output: _Output) -> None:
    """Let another reader of ORC look at a file that was put together here."""
    file.seek(0)
    try:
        reader = pyorc.Reader(file)
        found = len(reader), reader.num_of_stripes
    # pyorc raises a RuntimeError for what ORC's C++ reader throws.
    except (pyorc.ParseError, RuntimeError) as error:
        raise VerificationError(name, f"cannot be read back ({error})", _REPORT) from error
    if found != (output.rows, output.stripes):
        raise VerificationError(
            name, f"has (rows, stripes) {found}, its sources {(output.rows, output.stripes)}", _REPORT
        )


def _orc(storage: Storage, sources: Sequence[SourceFile]) -> Iterator[_Output]:
    looked_at: dict[str, SourceFile] = {}
    tails = []
    for source in sources:
        name = join(storage.location, source.path)
        tail = look_at(name, partial(storage.open_input, source.path))
        check_size(name, tail.size_bytes, source.size_bytes)
        looked_at[name] = source
        tails.append(tail)
    for group in groups_that_fit(tails):
        yield _Output(
            tuple(looked_at[tail.name] for tail in group),
            rows=sum(tail.rows for tail in group),
            stripes=sum(tail.stripes for tail in group),
            merged=group if len(group) > 1 else (),
        )


def _parquet(storage: Storage, sources: Sequence[SourceFile]) -> Iterator[_Output]:
    for source in sources:
        name = join(storage.location, source.path)
        with storage.open_input(source.path) as file:
            try:
                rows = parquet.read_metadata(file).num_rows
            except (pa.ArrowException, OSError) as error:
                if _has_encrypted_footer(file, source.size_bytes):
                    raise UnsupportedTableError(
                        name, "has an encrypted footer", "compact this partition with Hive, which has the keys"
                    ) from error
                raise CorruptFileError(
                    name,
                    f"is not a complete Parquet file ({error})",
                    "restore the file from a backup or ask its writer; nothing was changed",
                ) from error
        yield _Output((source,), rows=rows)


def _has_encrypted_footer(file: BinaryIO, size_bytes: int) -> bool:
    """Such a file ends with a magic of its own (Apache Parquet's modular encryption)."""
    file.seek(max(size_bytes - len(_ENCRYPTED_FOOTER), 0))
    return file.read(len(_ENCRYPTED_FOOTER)) == _ENCRYPTED_FOOTER


def _text(storage: Storage, sources: Sequence[SourceFile]) -> Iterator[_Output]:
    """Plain text files become one. Hadoop drops a byte order mark at the beginning of a file only.

    A file of nothing but the mark has no row; with a line end behind it, it would have one.
    """
    together: list[SourceFile] = []
    for source in sources:
        if _extension(source):
            continue
        if together and (_is_mark(storage, together[-1]) or _begins_with_mark(storage, source)):
            yield _Output(tuple(together), end_lines=True)
            together = []
        together.append(source)
    if together:
        yield _Output(tuple(together), end_lines=True)
    yield from _apart(storage, [source for source in sources if _extension(source)])


def _apart(storage: Storage, sources: Sequence[SourceFile]) -> Iterator[_Output]:
    """Files that begin with what holds for the rest of them, or are compressed, or whose lines end in their own way."""
    for source in sources:
        yield _Output((source,), _extension(source))


def _begins_with_mark(storage: Storage, source: SourceFile) -> bool:
    with storage.open_input(source.path) as file:
        return file.read(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK


def _is_mark(storage: Storage, source: SourceFile) -> bool:
    return source.size_bytes == len(_BYTE_ORDER_MARK) and _begins_with_mark(storage, source)


def _extension(source: SourceFile) -> str:
    """All from the first dot of the name on: Hadoop compares codecs' extensions with the end of a name."""
    _, dot, extension = source.name.partition(".")
    return dot + extension


_OUTPUTS: dict[FileFormat, Callable[[Storage, Sequence[SourceFile]], Iterator[_Output]]] = {
    FileFormat.ORC: _orc,
    FileFormat.PARQUET: _parquet,
    FileFormat.TEXT: _text,
    FileFormat.APART: _apart,
}
