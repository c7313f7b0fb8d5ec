"""Timestamps count in the zone of their writer, which the merge keeps or refuses."""

from __future__ import annotations

import zoneinfo
from pathlib import Path

import pytest

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge.files import source_files
from tests.unit.merge.acid_files import Partition, insert, read_events
from tests.unit.merge.test_values import TIMESTAMPS


@pytest.mark.parametrize("moment", TIMESTAMPS)
def test_a_writers_time_zone_is_kept(moment: str, tmp_path: Path) -> None:
    zone = zoneinfo.ZoneInfo("Asia/Tokyo")
    partition = Partition(tmp_path, ("timestamp",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, TIMESTAMPS[moment])], timezone=zone)
    merged = partition.merge()
    assert merged.attempt is not None
    for path in ("delta_0000001_0000001_0000/bucket_00000", merged.attempt):
        for reader_zone in (zone, zoneinfo.ZoneInfo("UTC")):
            assert read_events(tmp_path / path, timezone=reader_zone) == read_events(
                tmp_path / "delta_0000001_0000001_0000/bucket_00000", timezone=reader_zone
            )


def test_files_of_different_time_zones_are_refused(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("timestamp",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, (5, 0))])
    partition.write("delta_0000002_0000002_0000", [insert(2, 0, (5, 0))], timezone=zoneinfo.ZoneInfo("Europe/Berlin"))
    with pytest.raises(UnsupportedTableError, match="delta_0000002_0000002_0000/bucket_00000: counts timestamps in"):
        partition.merge()


@pytest.mark.parametrize(
    ("zone", "agrees"), {"America/Los_Angeles": True, "Asia/Kolkata": False, "Europe/Paris": False}.items()
)
def test_timestamps_before_1900_are_taken_where_their_limits_would_be_what_java_counts(
    zone: str, agrees: bool, tmp_path: Path
) -> None:
    """Java 17 counts moments of 1800 in Kolkata by 19,800 s, in Paris by 3,600 s; ORC's C++ library by 21,200 and 561.

    A row group of nothing but 0001-01-01 had a maximum below it, so that Hive skipped the rows asked for.
    """
    partition = Partition(tmp_path, ("timestamp",))
    in_zone = zoneinfo.ZoneInfo(zone)
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, TIMESTAMPS["0001-01-01"])], timezone=in_zone)
    if agrees:
        assert partition.merge().file.rows_out == 1
    else:
        with pytest.raises(UnsupportedTableError, match=f"timestamps before 1900 counted in the zone {zone}"):
            partition.merge()


def test_later_timestamps_are_taken_in_every_zone(tmp_path: Path) -> None:
    partition = Partition(tmp_path, ("timestamp",))
    zone = zoneinfo.ZoneInfo("Asia/Kolkata")
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, TIMESTAMPS["2024"])], timezone=zone)
    assert partition.merge().file.rows_out == 1


@pytest.mark.parametrize("zone", ["GMT+02:00", "PST", "../UTC"])
def test_a_zone_that_only_java_knows_is_refused(zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = Partition(tmp_path, ("timestamp",))
    partition.write("delta_0000001_0000001_0000", [insert(1, 0, TIMESTAMPS["2024"])])
    monkeypatch.setattr(source_files, "zone_of", lambda footer: zone)
    with pytest.raises(UnsupportedTableError, match="bucket_00000: counts timestamps in the zone .* not known here"):
        partition.merge()
