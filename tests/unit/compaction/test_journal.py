"""What a journal may name lies in its own partition; any other journal is none, and nothing is done by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_acid.compaction.publish.journal import read_journal
from airflow_provider_acid.compaction.publish.replaced import read_replaced
from airflow_provider_acid.compaction.recover.dead_results import take_back_half
from airflow_provider_acid.plan.plan import FORMAT_VERSION
from airflow_provider_acid.storages.local import LocalStorage

STAGING = "_acid_compaction_0123456789abcdef"
PAIR = ["delta_0000001_0000002", "delete_delta_0000001_0000002"]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Beside another table's partition that has a directory of the very name."""
    for folder in (f"victim/{PAIR[0]}", f"mine/{STAGING}/output"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "victim" / PAIR[0] / "bucket_00000").touch()
    return tmp_path / "mine"


def write(partition: Path, targets: list[str], files: list[str]) -> None:
    journal = {"format_version": FORMAT_VERSION, "targets": targets, "transaction": 7, "lock": None, "files": files}
    (partition / STAGING / "journal.json").write_text(json.dumps(journal))


@pytest.mark.parametrize(
    ("targets", "files"),
    [
        (PAIR, []),
        (["base_0000005_v0000012"], ["base_0000005_v0000012/bucket_00000", "base_0000005_v0000012/_metadata_acid"]),
    ],
)
def test_what_a_compaction_publishes_is_read(partition: Path, targets: list[str], files: list[str]) -> None:
    write(partition, targets, files)
    journal = read_journal(LocalStorage(str(partition)), STAGING)
    assert journal is not None
    assert (journal.targets, journal.files) == (tuple(targets), tuple(files))


@pytest.mark.parametrize(
    ("target", "file"),
    [
        (f"../victim/{PAIR[0]}", None),
        ("/warehouse/victim/delta_0000001_0000002", None),
        ("..", None),
        (".", None),
        ("", None),
        ("p=1/delta_0000001_0000002", None),
        ("delta_0000001_0000002/", None),
        ("delta_0000001_0000002/../../victim", None),
        ("delta_0000001_0000002\n", None),
        ("delta_x", None),
        ("_acid_compaction_0000000000000000", None),
        ("somebody_elses", None),
        (PAIR[0], "../victim/delta_0000001_0000002/bucket_00000"),
        (PAIR[0], f"{PAIR[0]}/../../victim/bucket_00000"),
        (PAIR[0], f"{PAIR[0]}/.."),
        (PAIR[0], f"{PAIR[0]}/."),
        (PAIR[0], f"{PAIR[0]}/"),
        (PAIR[0], PAIR[0]),
        (PAIR[0], "/etc/passwd"),
        (PAIR[0], "delta_0000003_0000003/bucket_00000"),
    ],
)
def test_a_journal_that_names_anything_else_is_none(partition: Path, target: str, file: str | None) -> None:
    write(partition, [target, PAIR[1]], [] if file is None else [file])
    storage = LocalStorage(str(partition))
    assert read_journal(storage, STAGING) is None
    before = sorted(partition.parent.rglob("*"))
    take_back_half(storage, STAGING)
    assert sorted(partition.parent.rglob("*")) == before


@pytest.mark.parametrize("name", ["../victim", "/warehouse/victim", f"../victim/{PAIR[0]}"])
def test_a_list_of_what_was_replaced_only_narrows_what_the_listing_shows(partition: Path, name: str) -> None:
    """The cleaner deletes what both name; see ``acid.obsolete.deletable_of_replaced``."""
    (partition / STAGING / "replaced.json").write_text(json.dumps({"format_version": 1, "names": [name]}))
    storage = LocalStorage(str(partition))
    assert read_replaced(storage, STAGING) == frozenset({name})
    assert name not in storage.list().directories
