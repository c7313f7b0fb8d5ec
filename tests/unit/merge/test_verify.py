"""An output that does not hold what it must is found, whichever part of the writing went wrong."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest

from airflow_provider_acid.exceptions import StorageError, VerificationError
from airflow_provider_acid.merge import merge_rows
from airflow_provider_acid.merge.files import sealed_output, verify
from airflow_provider_acid.merge.files.sealed_output import SealedOutput
from airflow_provider_acid.merge.keys.key_filter import Kept, KeyFilter
from airflow_provider_acid.merge.orc.schema import Kind, OrcType
from airflow_provider_acid.merge.orc.tail import read_tail
from airflow_provider_acid.merge.rows.arrow_rows import ArrowRows
from airflow_provider_acid.merge.rows.exact_rows import ExactRows
from airflow_provider_acid.merge.stitch import bucket_rows as rows_output
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.ranged_reader import RangedReader
from tests.unit.merge.acid_files import STAGING, Partition, delete, insert

WAYS = {"arrow": ("bigint", 5), "exact": ("timestamp", (-5, 5))}


@pytest.fixture(params=WAYS)
def partition(request: pytest.FixtureRequest, tmp_path: Path) -> Partition:
    kind, value = WAYS[request.param]
    partition = Partition(tmp_path, (kind,))
    for write_id in (1, 2):
        name = f"delta_000000{write_id}_000000{write_id}_0000"
        partition.write(name, [insert(write_id, row_id, value) for row_id in range(40)])
    partition.write("delete_delta_0000003_0000003_0000", [delete(1, 7, 3)])
    return partition


def losing_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row of every piece is not handed to the writer."""
    for way in (ArrowRows, ExactRows):
        write = way.write

        def lose(self: Any, source: Any, stripe: int, batch: Any, mask: Any, write: Any = write) -> None:
            import pyarrow as pa

            kept = [True] * batch.num_rows if mask is None else mask.to_pylist()
            write(self, source, stripe, batch, pa.array([False, *kept[1:]]))

        monkeypatch.setattr(way, "write", lose)


def losing_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was deleted, and a value becomes NULL on its way to the writer."""
    import pyarrow as pa

    monkeypatch.setattr(merge_rows, "events_of_bucket", lambda *arguments: iter(()))
    append, rows = ArrowRows.append, ExactRows._rows_of

    def lose(self: Any, ids: Any, columns: list[Any]) -> None:
        append(self, ids, [pa.concat_arrays([pa.nulls(1, column.type), column[1:]]) for column in columns])

    def lose_exactly(self: Any, *arguments: Any) -> Any:
        for *key, row in rows(self, *arguments):
            yield (*key, row if key[3] else (None,))

    monkeypatch.setattr(ArrowRows, "append", lose)
    monkeypatch.setattr(ExactRows, "_rows_of", lose_exactly)


def forgetting_deletes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first filter keeps what it should drop, and does not count it either."""
    apply, calls = KeyFilter.apply, []

    def forget(self: KeyFilter, name: str, batch: Any) -> Kept:
        kept = apply(self, name, batch)
        calls.append(name)
        return kept if len(calls) > 2 else Kept(None, 0, 0)

    monkeypatch.setattr(KeyFilter, "apply", forget)


def sealing(change: Callable[[dict[str, Any]], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """The file is sealed with something else than it should be."""

    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        seal = SealedOutput.seal

        def wrong(self: SealedOutput, schema: Any, key_index: Any, operation: int, rows: int, calendar: int) -> None:
            given = {
                "schema": schema,
                "key_index": key_index,
                "operation": operation,
                "rows": rows,
                "calendar": calendar,
            }
            change(given)
            seal(self, **given)

        monkeypatch.setattr(SealedOutput, "seal", wrong)

    return apply


def shorter_index(given: dict[str, Any]) -> None:
    given["key_index"] = given["key_index"][:-1]


def wrong_key(given: dict[str, Any]) -> None:
    write_id, bucket, row_id = given["key_index"][-1]
    given["key_index"] = (*given["key_index"][:-1], (write_id, bucket, row_id + 1))


def wrong_count(given: dict[str, Any]) -> None:
    given["rows"] += 1


def other_calendar(given: dict[str, Any]) -> None:
    given["calendar"] = 1


def other_type(given: dict[str, Any]) -> None:
    root: OrcType = given["schema"]
    row = replace(root.children[5], children=(OrcType(Kind.DATE),))
    given["schema"] = replace(root, children=(*root.children[:5], row))


def garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The columns' data is overwritten on its way to the storage."""
    seal: Callable[..., bytes] = vars(sealed_output)["reseal"]

    def spoil(*arguments: Any) -> bytes:
        content = b"ORC" + seal(*arguments)
        (stripe,) = read_tail(io.BytesIO(content), "file").stripes
        start = stripe.offset + stripe.index_bytes
        end = start + stripe.data_bytes
        return content[3:start] + b"\xff" * (end - start) + content[end:]

    monkeypatch.setattr(sealed_output, "reseal", spoil)


def wrong_last_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key index, and what the checks expect of it, are both of another row."""
    key_at: Callable[[Any, int], Any] = vars(sealed_output)["key_at"]
    monkeypatch.setattr(sealed_output, "key_at", lambda batch, row: key_at(batch, row - 1))


def limited(**limits: int) -> Callable[[pytest.MonkeyPatch], None]:
    """The footer says other limits of the write ids, by which readers pass over a file."""

    def inject(monkeypatch: pytest.MonkeyPatch) -> None:
        open_source = vars(verify)["open_source"]

        @contextmanager
        def with_limits(*arguments: Any) -> Iterator[Any]:
            with open_source(*arguments) as reader:
                statistics = list(reader.tail.statistics)
                statistics[2] = replace(statistics[2], **limits)
                reader.tail = replace(reader.tail, statistics=tuple(statistics))
                yield reader

        monkeypatch.setattr(verify, "open_source", with_limits)

    return inject


FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "rows are lost": (losing_rows, "rows"),
    "values are lost": (losing_values, r"columns hold \(78,\) values, the sources \(80,\)"),
    "deleted rows stay": (forgetting_deletes, "holds 0 aborted and 1 deleted rows"),
    "the key index is too short": (sealing(shorter_index), "user metadata"),
    "the key index names another row": (sealing(wrong_key), "user metadata"),
    "the counters are wrong": (sealing(wrong_count), "user metadata"),
    "the calendar is another": (sealing(other_calendar), "calendar"),
    "a column has another type": (sealing(other_type), "schema"),
    "the data cannot be read": (garbage, "cannot be read back"),
    "a stripe ends with another key": (wrong_last_key, "ends with"),
    "the lowest write id is not in the statistics": (limited(minimum=2), "statistics do not fit its write ids"),
    "the highest write id is not in the statistics": (limited(maximum=1), "statistics do not fit its write ids"),
    "the statistics tell of a write id without rows": (limited(maximum=3), "statistics do not fit its write ids"),
}


@pytest.mark.usefixtures("whole_stripes")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_output_is_found(fault: str, partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    inject, text = FAULTS[fault]
    inject(monkeypatch)
    with pytest.raises(VerificationError, match=text):
        partition.merge(stripe_copy=CopiedStripes.NEVER)


def test_an_output_of_another_compression_is_found(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    expect: Callable[..., int] = vars(rows_output)["verify_output"]

    def expect_zstd(storage: Any, path: str, options: OrcOptions, *more: Any) -> int:
        return expect(storage, path, replace(options, compression="zstd"), *more)

    monkeypatch.setattr(rows_output, "verify_output", expect_zstd)
    with pytest.raises(VerificationError, match="compression should be zstd, not zlib"):
        partition.merge(stripe_copy=CopiedStripes.NEVER)


class SilentStore(LocalStorage):
    """One call a range, as over a network; of those for files that were just written, one gets no answer."""

    silent_call = 0
    calls = 0

    def open_input(self, path: str) -> BinaryIO:
        data = (Path(self.location) / path).read_bytes()

        def fetch(offset: int, length: int) -> bytes:
            if path.startswith(STAGING):
                self.calls += 1
                if self.calls == self.silent_call:
                    raise StorageError(path, "cannot be read (503 Slow Down)", "try again")
            return data[offset : offset + length]

        return cast(BinaryIO, RangedReader(fetch, len(data)))


@pytest.mark.usefixtures("whole_stripes")
@pytest.mark.parametrize("copies", [CopiedStripes.NEVER, CopiedStripes.AUTO])
def test_a_store_that_fails_while_an_output_is_read_back_is_not_called_a_wrong_output(
    copies: CopiedStripes, partition: Partition
) -> None:
    partition.storage = store = SilentStore(str(partition.path))
    partition.merge(stripe_copy=copies)
    for silent_call in range(1, store.calls + 1):
        store.calls, store.silent_call = 0, silent_call
        with pytest.raises(StorageError, match="503 Slow Down"):
            partition.merge(stripe_copy=copies)
