"""Whether a file's columns are the table's, or can become them without a change of what an engine reads."""

from __future__ import annotations

import re

from airflow_provider_acid.exceptions import UnsupportedTableError
from airflow_provider_acid.merge.orc.schema import Kind, OrcType, can_become

# Names that Hive gave to columns before it wrote their own; ORC's readers then go by position (SchemaEvolution).
_NO_NAME = re.compile(r"_col[0-9]+")


def check_columns(name: str, row_type: OrcType, target: OrcType, for_hive_3: bool) -> None:
    """Check that a file's columns can be brought to the table's, by position.

    :param name: the file, for errors.
    :param row_type: the file's columns.
    :param target: the table's.
    :param for_hive_3: whether Hive 3 is to read what it read before. It finds columns by their exact names, and reads
        a float in a column that is double now by its shortest text; Hive 4 and Trino do neither.
    :raises UnsupportedTableError: a column cannot, engines disagree on which it is, or the file has more columns than
        the table.
    """
    if len(row_type.children) > len(target.children):
        raise UnsupportedTableError(
            name,
            f"has {len(row_type.children)} columns, the table has {len(target.children)}",
            "compact this partition with Hive",
        )
    if for_hive_3 and not all(map(_NO_NAME.fullmatch, row_type.names)):
        _check_names(name, row_type, target)
    for column, was, becomes in zip(target.names, row_type.children, target.children, strict=False):
        if not can_become(was, becomes) or (for_hive_3 and _grows_a_float(was, becomes)):
            raise UnsupportedTableError(
                name,
                f"has column {column} as {was}, the table has {becomes}, and this release cannot convert that exactly",
                "compact this partition with Hive",
            )


def _grows_a_float(was: OrcType, becomes: OrcType) -> bool:
    if (was.kind, becomes.kind) == (Kind.FLOAT, Kind.DOUBLE):
        return True
    return any(map(_grows_a_float, was.children, becomes.children))


def _check_names(name: str, row_type: OrcType, target: OrcType) -> None:
    for was, becomes in zip(row_type.names, target.names, strict=False):
        if was != becomes:
            raise UnsupportedTableError(
                name,
                f"has a column {was} where the table has {becomes}; Hive 3 finds columns by name and reads NULL where "
                "none fits, other engines go by position, so that no merged file could be read as before by both",
                "write the partition anew (INSERT OVERWRITE) with the columns as they are now, or rename them back",
            )
