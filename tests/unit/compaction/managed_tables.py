"""Tables as a metastore describes them."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_acid.compaction.eligibility import ORC_INPUT_FORMAT
from airflow_provider_acid.metastore.values import ColumnInfo, TableInfo

COLUMN = ColumnInfo("v", "bigint")


def managed_table(
    database: str,
    name: str,
    location: str,
    parameters: Mapping[str, str],
    *,
    column: ColumnInfo = COLUMN,
    partitioned: bool = True,
) -> TableInfo:
    """A managed table in ORC with one column, partitioned by ``p string`` unless it is to be a whole."""
    return TableInfo(
        database=database,
        name=name,
        location=location,
        columns=(column,),
        partition_keys=(ColumnInfo("p", "string"),) if partitioned else (),
        parameters=parameters,
        bucket_count=-1,
        sort_columns=(),
        table_type="MANAGED_TABLE",
        input_format=ORC_INPUT_FORMAT,
        owner="hive",
    )
