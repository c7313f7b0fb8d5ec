"""Cases are JSON files: a listing, write ids and transactions in, what must come out. One file, one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airflow_provider_acid.acid.directory import AcidDirectory, acid_directory
from airflow_provider_acid.acid.listing import FileEntry, Listing
from airflow_provider_acid.acid.write_ids import (
    TableWriteIds,
    ValidTxnList,
    ValidWriteIdList,
    cleaner_list,
    compactor_list,
)
from tests.harness.reader_list import reader_list

HERE = Path(__file__).parent

Case = dict[str, Any]


def cases(folder: str) -> dict[str, Case]:
    """The cases of a folder by name, which begins with the id of the scenario in Hive's own tests."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted((HERE / "cases" / folder).glob("*.json"))}
    assert found, f"no cases in {folder}"
    return found


def listing_of(files: Mapping[str, int], empty_directories: Iterable[str] = ()) -> Listing:
    """A listing as a file system gives it: with every directory on the way to a file."""
    directories = set(empty_directories)
    for path in files:
        parts = path.split("/")
        directories.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return Listing(
        tuple(sorted(FileEntry(path, size) for path, size in files.items())),
        tuple(sorted(directories)),
    )


def case_listing(case: Case) -> Listing:
    return listing_of(case["files"], case.get("directories", ()))


def table_write_ids(data: Mapping[str, Any]) -> TableWriteIds:
    return TableWriteIds(
        "testing.t",
        data["high_water_mark"],
        frozenset(data.get("open", ())),
        frozenset(data.get("aborted", ())),
        data.get("min_open"),
    )


def case_write_ids(case: Case, view: str) -> ValidWriteIdList:
    table = table_write_ids(case["write_ids"])
    if view == "cleaner":
        return cleaner_list(table, case["highest"])
    return {"reader": reader_list, "compactor": compactor_list}[view](table)


def case_txns(case: Case) -> ValidTxnList | None:
    data = case["txns"]
    if data is None:
        return None
    return ValidTxnList(data["high_water_mark"], tuple(data.get("open", ())), tuple(data.get("aborted", ())))


def case_directory(case: Case, view: str) -> AcidDirectory:
    return acid_directory(
        case_listing(case),
        case_write_ids(case, view),
        case_txns(case),
        case.get("base_formats", {}),
        insert_only=case.get("format", "acid_orc") != "acid_orc",
    )
