"""Files that no writer of Hive makes, beside good partitions: each costs its own partition alone."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from airflow_provider_acid.acid.sealing import RunKey
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.compaction.publish.staging import staging_name
from airflow_provider_acid.compaction.run.run_directory import RunDirectory
from airflow_provider_acid.compaction.run.run_place import RunPlace, run_name
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.metastore.pools import new_token
from airflow_provider_acid.metastore.values import CompactionState
from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.run_files import RunFiles
from tests.integration.compaction_site import ON_BOTH_METASTORES, AcidTable, Site, due
from tests.integration.played_batch import play
from tests.unit.merge.acid_files import delete

DEEP = b"[" * 200_000


def inserts(site: Site, name: str) -> AcidTable:
    table = site.table(name)
    for value in range(2):
        table.insert(value)
    return table


def base_of_nobody(table: AcidTable, metadata: bytes) -> Path:
    base = table.folder() / "base_0000000"
    base.mkdir()
    (base / "_metadata_acid").write_bytes(metadata)
    return base


def test_a_side_file_that_nobody_can_read_refuses_its_partition_and_the_batch_goes_on(site: Site) -> None:
    good, odd, last = (inserts(site, name) for name in ("good", "odd", "last"))
    base_of_nobody(odd, DEEP)
    before = odd.fingerprint()
    found = play(site, [table.entity() for table in (good, odd, last)], max_active=1)
    states = {name: outcome.state for name, outcome in found.items()}
    compacted, refused = OutcomeState.COMPACTED, OutcomeState.REFUSED
    assert states == {"good": compacted, "odd": refused, "last": compacted}
    assert "odd/base_0000000/_metadata_acid: holds" in found["odd"].message
    assert odd.fingerprint() == before


def test_a_side_file_of_two_gibibytes_refuses_its_partition_and_the_evaluation_goes_on(site: Site) -> None:
    good, odd = (inserts(site, name) for name in ("good", "odd"))
    with (base_of_nobody(odd, b"") / "_metadata_acid").open("wb") as file:
        file.truncate(2 << 30)
    found = site.evaluate()
    assert [item.entity for item in found.due] == [good.entity()]
    assert ["has 2147483648 bytes" in reason for reason in found.refused] == [True]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\xff\xfe", "is not JSON"), (DEEP, "is nested too deep"), (b'{"format_version": 1}', "has format version 1")],
    ids=["garbage", "deep", "another release's"],
)
def test_a_plan_that_a_dead_run_left_and_nobody_understands_is_told_once_and_left_alone(
    site: Site, caplog: pytest.LogCaptureFixture, content: bytes, reason: str
) -> None:
    """Seen: the batch ended with a UnicodeDecodeError; the table failed for ever."""
    table, other = inserts(site, "t"), inserts(site, "other")
    place = RunPlace.of(site.settings.storages, None, str(table.folder()))
    name = run_name(site.client.database_uuid())
    run = Path(RunDirectory(Storages(), place, RunKey.new(name)).location.removeprefix("file:"))
    RunFiles(run).put_plan(0, content)
    written = (run / "0000.plan.json").read_bytes()
    with caplog.at_level(logging.WARNING):
        found = play(site, [other.entity(), table.entity()], max_active=1)
    assert {outcome.state for outcome in found.values()} == {OutcomeState.COMPACTED}
    told = [record.getMessage() for record in caplog.records if f"{name}/0000.plan.json" in record.getMessage()]
    assert [reason in message for message in told] == [True]
    assert (run / "0000.plan.json").read_bytes() == written


def test_what_a_dead_attempt_left_and_nobody_understands_is_merged_anew(site: Site) -> None:
    table = inserts(site, "t")
    staging = table.folder() / staging_name(new_token())
    staging.mkdir()
    for name in ("plan.json", "result.json", "journal.json"):
        (staging / name).write_bytes(DEEP)
    assert play(site, [table.entity()])["t"].state is OutcomeState.COMPACTED
    assert not staging.exists()
    assert table.values() == [0, 1]


@ON_BOTH_METASTORES
@pytest.mark.parametrize("type", CompactionType)
def test_an_event_of_a_write_id_outside_of_its_directory_refuses_its_partition(
    site: Site, type: CompactionType
) -> None:
    """Seen: an aborted writer's delete with the write id 0 was applied, and a row that all readers see was gone."""
    table = inserts(site, "t")
    aborted, committed = table.writes(2)
    aborted.abort()
    committed.commit()
    table.write_file(f"delete_delta_{aborted.id:07d}_{committed.id:07d}", [delete(1, 0, 0)])
    before = table.fingerprint()
    outcome = site.compact(due(table.entity(), type=type))
    assert outcome.state is OutcomeState.REFUSED
    assert site.row(outcome.request_id).state is CompactionState.FAILED
    assert f"has events of the write ids 0 to 0, its directory's name says {aborted.id} to {committed.id}" in (
        outcome.message
    )
    assert table.fingerprint() == before
