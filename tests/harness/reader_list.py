"""What a query sees of a table's write ids."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_acid.acid.write_ids import TableWriteIds, ValidWriteIdList, WriteIdView, cleaner_list


def reader_list(write_ids: TableWriteIds) -> ValidWriteIdList:
    """Everything up to the high-water mark but what is open or aborted."""
    return replace(cleaner_list(write_ids, write_ids.high_water_mark), view=WriteIdView.READER)
