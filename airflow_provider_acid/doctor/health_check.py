"""A check of the health store, from which the page in Airflow's UI has what it shows."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_acid.compaction.quantities import human_seconds
from airflow_provider_acid.doctor.check import Check, Seen, problem, warning
from airflow_provider_acid.doctor.site import Site
from airflow_provider_acid.filesystem import Storage, join
from airflow_provider_acid.health.files import RenewedFile, TableFile, newest_files, renewed_file

SILENT_SECONDS = 86_400.0
MOST_FILES = 100
"""That are read, the newest first."""


def _health_store(site: Site) -> Iterator[Seen]:
    location = site.health_location
    if location is None:
        return
    storage = site.settings.storages.open(location)
    if not storage.exists(""):
        yield warning(
            f"{location} is not there",
            "the page 'Hive ACID' has nothing to show",
            "let the sensor of acid_compaction run once, which makes it; its parent has to be there",
        )
        return
    if storage.may_change() is False:
        yield problem(
            f"this user may not write into {location}",
            "the page 'Hive ACID' shows what was known long ago, or nothing",
            "give Airflow's user the right, or name another place by [hive_acid] health_location",
        )
    yield from _files(site, location, storage)


def _files(site: Site, location: str, storage: Storage) -> Iterator[Seen]:
    paths = [file.path for file in storage.list().files]
    found: list[TableFile | RenewedFile] = [*newest_files(paths).values(), *filter(None, map(renewed_file, paths))]
    newest_first = sorted(found, key=lambda file: -file.written_ms)
    seconds = (site.own_now_ms - newest_first[0].written_ms) / 1000 if found else None
    if seconds is None or seconds >= SILENT_SECONDS:
        yield warning(
            f"{location} holds no partition's figures"
            if seconds is None
            else f"{location} was written last {human_seconds(seconds)} ago",
            "the page 'Hive ACID' shows nothing, or what was true then",
            "look whether acid_compaction is switched on and runs, and what its sensor's log says of the health store",
        )
    yield from _unreadable(location, storage, [file.path for file in newest_first[:MOST_FILES]])


def _unreadable(location: str, storage: Storage, paths: list[str]) -> Iterator[Seen]:
    # Not needed by who has no such store, and slow to import.
    from airflow_provider_acid.health.parquet_files import fault_in

    for path in paths:
        with storage.open_input(path) as file:
            fault = fault_in(file)
        if fault is not None:
            yield warning(
                f"{join(location, path)} cannot be read: {fault}",
                "the page 'Hive ACID' lacks its table",
                "delete the file; the table's next evaluation writes another",
            )


HEALTH_CHECKS = (Check("health store", "it is written and can be read, or there is none", _health_store),)
