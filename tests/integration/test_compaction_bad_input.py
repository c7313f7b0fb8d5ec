"""What must not be compacted ends in a clear error, and not one byte of the table changes."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.settings import CompactionSettings
from airflow_provider_acid.exceptions import MetastoreError
from airflow_provider_acid.hooks.connected_batch import open_connected_worker
from airflow_provider_acid.hooks.endpoint import MetastoreEndpoint
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.integration.clear_refusals import assert_clear, inserts
from tests.integration.compaction_site import AcidTable, Site, fingerprint
from tests.unit.merge.acid_files import insert
from tests.unit.metastore.test_connection import old_server

__all__ = ["old_server"]


@pytest.mark.parametrize(
    ("options", "text", "has_row"),
    [
        ({"properties": {"EXTERNAL": "TRUE", "transactional": "false"}}, "is an external table", False),
        ({"properties": {"hive.repl.first.inc.pending": "true"}}, "waits for its first incremental replication", True),
        ({"properties": {"NO_CLEANUP": "True"}}, "no_cleanup", True),
    ],
)
def test_a_kind_of_table_that_is_not_compacted_is_refused_by_name(
    site: Site, options: dict[str, Any], text: str, has_row: bool
) -> None:
    table = site.table(**options)
    for value in range(2):
        table.write_file(f"delta_{value:07d}_{value:07d}_0000", [insert(value, 0, value)])
    before = table.fingerprint()
    outcome = site.compact(table.entity())
    assert_clear(site, outcome, text, has_row=has_row)
    assert outcome.message.startswith((f"table {table.entity()}: ", f"{table.entity()}: "))
    assert table.fingerprint() == before


def test_a_table_that_is_not_acid_is_refused_without_a_request(site: Site) -> None:
    plain = site.table("plain", properties={"transactional": "false", "transactional_properties": ""})
    outcome = site.compact(plain.entity())
    assert_clear(site, outcome, "is an external table", has_row=False)
    assert site.rows(plain.entity()) == []


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"repl.source.for": "policy"}, "its database is a replication source (repl.source.for)"),
        ({"hive.repl.first.inc.pending": "true"}, "waits for its first incremental replication"),
    ],
)
def test_a_database_in_replication_is_refused(site: Site, properties: dict[str, str], text: str) -> None:
    table = inserts(site)
    site.set_database_properties(properties)
    before = table.fingerprint()
    assert_clear(site, site.compact(table.entity()), text)
    assert table.fingerprint() == before


# Names that lead nowhere


@pytest.mark.parametrize(
    ("name", "partition", "text"),
    [
        ("parts", "p=unknown", "the metastore does not know partition p=unknown"),
        ("parts", None, "is partitioned, but no partition is named"),
        ("plain", "p=a", "has no partitions"),
        ("nowhere", None, "nowhere"),
    ],
)
def test_an_entity_that_does_not_exist_is_named_and_nothing_is_requested(
    site: Site, name: str, partition: str | None, text: str
) -> None:
    site.table("parts", partitions=["p=a"])
    site.table("plain")
    entity = Entity(site.database, name, partition)
    outcome = site.compact(entity)
    assert_clear(site, outcome, text, has_row=False)
    assert site.rows(entity) == []


# Files


def cut(table: AcidTable) -> None:
    file = table.folder() / "delta_0000002_0000002_0000" / "bucket_00000"
    file.write_bytes(file.read_bytes()[:-7])


def spoil(table: AcidTable) -> None:
    file = table.folder() / "delta_0000002_0000002_0000" / "bucket_00000"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) - len(content) // 2))


def spoil_delete(table: AcidTable) -> None:
    table.write().delete((1, 0)).commit()
    (table.folder() / "delete_delta_0000004_0000004_0000" / "bucket_00000").write_bytes(b"ORC and no more of it")


def link(table: AcidTable) -> None:
    (table.folder() / "delta_0000004_0000004_0000").symlink_to(table.folder() / "delta_0000003_0000003_0000")


def add(name: str, content: bytes = b"1") -> Callable[[AcidTable], None]:
    def write(table: AcidTable) -> None:
        file = table.folder() / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)

    return write


def twin(table: AcidTable) -> None:
    folder = table.folder() / "delta_0000002_0000002_0000"
    shutil.copy(folder / "bucket_00000", folder / "bucket_00000_1")


def above_4095(table: AcidTable) -> None:
    folder = table.folder() / "delta_0000002_0000002_0000"
    (folder / "bucket_00000").rename(folder / "bucket_04096")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (cut, "delta_0000002_0000002_0000/bucket_00000"),
        (spoil, "delta_0000002_0000002_0000/bucket_00000"),
        (spoil_delete, "delete_delta_0000004_0000004_0000/bucket_00000"),
        (link, "delta_0000004_0000004_0000: is a symbolic link inside a table"),
        (above_4095, "has a bucket number above 4095"),
        (twin, "has the same bucket number as"),
        (add("delta_0000002_0000002_0000/part-0001"), "follows none of the name rules"),
        (add("delta_0000002_0000002_0000/000000_0"), "holds files with ACID columns"),
        (add("delta_0000002_0000002_0000/bucket_00000_flush_length", b"\0" * 8), "is the side file of a streaming"),
        (add("data.orc"), "has no bucket number in its name"),
        (add("000000_0"), "/000000_0"),
        (add("delta_abc/bucket_00000"), "directory delta_abc"),
        (add("base_0000002/_metadata_acid", b"not JSON"), "base_0000002/_metadata_acid"),
        (add("delta_0000002_0000002_0000/nested/bucket_00000"), "is a directory inside an ACID directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", ""),
)
def test_files_that_cannot_be_merged_exactly_are_named(
    site: Site, damage: Callable[[AcidTable], None], text: str
) -> None:
    table = inserts(site)
    damage(table)
    before = table.fingerprint()
    outcome = site.compact(table.entity())
    # These are met when the partition is listed for the first time, before anything is requested.
    assert_clear(site, outcome, text, has_row=damage is not link and "delta_abc" not in text)
    assert table.fingerprint() == before


def test_a_delete_file_of_a_bucket_without_rows_is_no_obstacle(site: Site) -> None:
    """Where every row of a bucket is gone by an earlier compaction, a writer may still leave an empty delete file."""
    table = site.table(bucket_columns=("v",), buckets=2)
    table.insert(1, 2)
    write = table.write().delete((1, 0))
    table.write_file(f"delete_delta_{write.id:07d}_{write.id:07d}_0000", [], bucket=1)
    write.commit()
    outcome = site.compact(table.entity())
    assert outcome.state is OutcomeState.COMPACTED, outcome
    assert table.values() == [2]


# While the job runs


def error_of_opening(address: MetastoreAddress) -> str:
    endpoint = MetastoreEndpoint((address,), 2.0, None)
    with pytest.raises(MetastoreError) as error, open_connected_worker(endpoint, CompactionSettings(), "task"):
        pass
    return str(error.value)


def test_a_metastore_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    message = error_of_opening(MetastoreAddress("127.0.0.1", port))
    assert f"127.0.0.1:{port}" in message
    assert "Remedy: " in message


def test_a_hive_3_without_its_database_is_named_before_anything_is_requested(old_server: MetastoreAddress) -> None:
    assert error_of_opening(old_server) == (
        "metastore 3.1.3: keeps its compaction queue in its database alone, as Hive 3.1 does. Remedy: name a "
        "connection to that database as metastore_db_conn_id in the extra of the hive_acid connection."
    )


def test_a_table_whose_folder_is_gone_is_named(site: Site, tmp_path: Path) -> None:
    table = inserts(site)
    table.location.rename(tmp_path / "moved")
    before = fingerprint(tmp_path)
    assert_clear(site, site.compact(table.entity()), f"{table.location}: ", has_row=False)
    assert fingerprint(tmp_path) == before
