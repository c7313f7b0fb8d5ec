from __future__ import annotations

import pytest

from airflow_provider_acid.acid.directory import acid_directory
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.write_ids import TableWriteIds, compactor_list
from airflow_provider_acid.compaction.evaluate.read_cost import OPENING_BYTES, read_cost_bytes

BASE = {"base_0000002/bucket_00000": 10**9}


def insert(write_id: int, buckets: int = 1, size_bytes: int = 1000) -> dict[str, int]:
    name = f"delta_{write_id:07d}_{write_id:07d}_0000"
    return {f"{name}/bucket_{bucket:05d}": size_bytes for bucket in range(buckets)}


def delete(write_id: int, buckets: int = 1, size_bytes: int = 1000) -> dict[str, int]:
    return {f"delete_{path}": size for path, size in insert(write_id, buckets, size_bytes).items()}


ORIGINAL = {"000000_0": 10**9}


@pytest.mark.parametrize(
    ("state", "files", "openings", "delete_bytes"),
    [
        ("nothing", {}, 0, 0),
        ("a base alone is what a compaction leaves", BASE, 0, 0),
        ("original files alone have no deltas", ORIGINAL, 0, 0),
        ("a file of an insert delta is opened once", BASE | insert(3), 1, 0),
        ("however many bytes it has", BASE | insert(3, size_bytes=10**9), 1, 0),
        ("each of its files is opened", BASE | insert(3, buckets=4), 4, 0),
        ("deletes are read beside the base", BASE | delete(3, size_bytes=500), 1, 500),
        ("beside original files", ORIGINAL | delete(3, size_bytes=500), 1, 500),
        ("and beside every insert delta once more", BASE | insert(3) | insert(4) | delete(5), 2 + 3, 3 * 1000),
        ("deletes that nothing is read beside cost nothing", delete(3), 0, 0),
        (
            "a streamed file's side file is not opened as one",
            BASE | insert(3) | {"delta_0000003_0000003_0000/bucket_00000_flush_length": 8},
            1,
            0,
        ),
        (
            "five of each, as in docs/read-cost.md",
            BASE
            | {k: v for i in range(3, 8) for k, v in insert(i).items()}
            | {k: v for i in range(8, 13) for k, v in delete(i).items()},
            5 + 6 * 5,
            6 * 5 * 1000,
        ),
    ],
)
def test_deltas_cost_readers_what_is_opened_and_read_besides_the_rows(
    state: str, files: dict[str, int], openings: int, delete_bytes: int
) -> None:
    names = tuple(sorted({path.rpartition("/")[0] for path in files} - {""}))
    listing = Listing(tuple(FileEntry(path, size) for path, size in sorted(files.items())), names)
    write_ids = compactor_list(TableWriteIds("d.t", 99, frozenset(), frozenset()))
    directory = acid_directory(listing, write_ids, None)
    assert read_cost_bytes(directory) == OPENING_BYTES * openings + delete_bytes, state
