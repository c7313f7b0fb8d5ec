"""What this project makes of Hive-written tables is, file by file and event by event, what Hive's own compactor made.

Compared are the data files of every directory that a major or minor leaves: the same directory names (but for Hive 4's
``_vT``), the same bucket files, and in each the same events in the same order, with operation, write id, bucket
property, row number and current write id. ``tests/fixtures/hive-VERSION/hives_KIND.json`` has those of Hive's own
compactions of the same tables. Where this project does something else on purpose, or Hive does something wrong, the
case is listed below with its reason. (W-16, W-24, W-35, L-01, L-12, U-05)
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyorc
import pytest

from airflow_provider_acid.plan.plan import CompactionType
from tests.harness.hive_tables import FIXTURES, load_fixture
from tests.unit.merge.test_hive_fixtures import MAJOR, MINOR, TABLES, compact, partitions

Files = dict[str, list[list[int]]]

DONE_AS_A_MAJOR = {
    ("3.1.3", "a_conv"): "Hive 3's minor leaves the original files alone",
    ("3.1.3", "a_conv_part"): "Hive 3's minor leaves the original files alone",
    ("3.1.3", "a_stream"): "Hive 3 copies a single delta without its aborted rows",
    ("3.1.3", "a_load"): "Hive 3's minor writes each delete into both bucket files, and cannot read the table any more",
}
"""A minor that becomes a major here; it is compared with Hive's major."""

LEFT_ALONE = {
    ("3.1.3", MINOR, "a_multi", "p=1"): "Hive 3 copies a single delta",
    ("3.1.3", MINOR, "a_multi", "p=2"): "Hive 3 copies a single delta",
    ("3.1.3", MINOR, "a_over", ""): "Hive 3 copies a single delta and a single delete delta",
    ("3.1.3", MINOR, "a_part", "ds=2024-01-01/h=1"): "Hive 3 copies a single delta",
    ("3.1.3", MINOR, "a_part", "ds=a b%2Fc%3Dd%25/h=7"): "Hive 3 copies a single delta",
    ("3.1.3", MINOR, "a_part_buck", "p=2"): "Hive 3 copies a single delta and a single delete delta",
}
"""Partitions that this project leaves as they are while Hive writes new files."""

REWRITTEN = {
    ("4.0.1", MAJOR, "acid_multi", "p=1"): "Hive 4 refuses a single delta; a policy wants it here",
    ("4.0.1", MAJOR, "acid_multi", "p=2"): "Hive 4 refuses a single delta; a policy wants it here",
    ("4.0.1", MAJOR, "merge_src", ""): "Hive 4 refuses a single delta; a policy wants it here",
}
"""Partitions that Hive leaves as they are."""

CASES = [(version, name, wanted) for version, name in TABLES for wanted in (MAJOR, MINOR)]


@pytest.mark.parametrize(("version", "name", "wanted"), CASES)
def test_the_files_are_those_of_hives_own_compaction(
    version: str, name: str, wanted: CompactionType, tmp_path: Path
) -> None:
    fixture = load_fixture(version, name)
    location = fixture.unpack(tmp_path)
    before = data_files(location)
    done = {
        key(partition, location): compact(fixture, partition, wanted) for partition in partitions(fixture, location)
    }
    ours = {path: events for path, events in data_files(location).items() if path not in before}
    compared = MAJOR if (version, name) in DONE_AS_A_MAJOR else wanted
    hives = hives_own(version, compared)[name]
    for partition, kind in done.items():
        case = (version, wanted, name, partition)
        made, by_hive = of_partition(ours, partition), of_partition(hives, partition)
        assert bool(made) is (kind is not None)
        assert kind in (None, compared)
        if case in LEFT_ALONE or case in REWRITTEN:
            assert bool(made) is (case in REWRITTEN)
            assert bool(by_hive) is (case in LEFT_ALONE)
        else:
            assert made == by_hive


def data_files(location: Path) -> Files:
    """The events of every file below a table's folder that has any (Hive 3 also writes files without)."""
    paths = [path for path in location.rglob("bucket_*") if re.fullmatch(r"bucket_\d+(_\d+)?", path.name)]
    found = {str(path.relative_to(location)): events_of(path) for path in paths}
    return {path: events for path, events in found.items() if events}


def events_of(path: Path) -> list[list[int]]:
    with path.open("rb") as file:
        return [list(row[:5]) for row in pyorc.Reader(file)]


def hives_own(version: str, kind: CompactionType) -> dict[str, Files]:
    """What Hive's compactor left of each table."""
    text = (FIXTURES / f"hive-{version}" / f"hives_{kind.value}.json").read_text()
    tables: dict[str, Files] = json.loads(text)
    return {name: {path: events for path, events in files.items() if events} for name, files in tables.items()}


def key(partition: Path, location: Path) -> str:
    return "" if partition == location else str(partition.relative_to(location))


def of_partition(files: Files, partition: str) -> Files:
    return {path: events for path, events in files.items() if path.startswith(f"{partition}/" if partition else "")}


def test_the_comparison_covers_both_kinds_and_many_events() -> None:
    for version in ("3.1.3", "4.0.1"):
        major, minor = hives_own(version, MAJOR), hives_own(version, MINOR)
        assert sum(len(events) for files in major.values() for events in files.values()) > 40
        deletes = [event for files in minor.values() for events in files.values() for event in events if event[0] == 2]
        assert len(deletes) > 15
