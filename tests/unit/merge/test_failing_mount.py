"""A mount that fails while a merge reads from it is no damage of the file: the next try may read it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.merge.files.source_files import SourceReader
from airflow_provider_acid.plan.plan import CopiedStripes
from tests.unit.merge.acid_files import STAGING, Partition, insert
from tests.unit.storages.test_local_input import break_mount


@pytest.mark.parametrize("kind", ["bigint", "timestamp"])
@pytest.mark.parametrize("place", ["delta_", STAGING], ids=["a source", "what was written"])
def test_a_mount_that_fails_in_mid_merge_is_not_called_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, place: str
) -> None:
    partition = Partition(tmp_path, (kind,))
    # More than is read at once beside a file's tail.
    numbers = random.Random(3)
    values = [numbers.randrange(1 << 40) for _ in range(40_000)]
    rows = [insert(1, row, value if kind == "bigint" else (value % (1 << 30), 5)) for row, value in enumerate(values)]
    partition.write("delta_0000001_0000001", rows)
    check, broken = SourceReader.check_stripe, list[str]()

    def check_and_break(reader: SourceReader, stripe: int) -> str:
        zone = check(reader, stripe)
        if f"/{place}" in reader.name:
            broken.append(reader.name)
            break_mount(reader.file)
        return zone

    monkeypatch.setattr(SourceReader, "check_stripe", check_and_break)
    with pytest.raises(StorageError, match=r"cannot be read \(Bad file descriptor\)") as raised:
        partition.merge(stripe_copy=CopiedStripes.NEVER)
    assert str(raised.value).startswith(broken[-1])
