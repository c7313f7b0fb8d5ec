"""A file of several writers' stripes promises its readers no more than holds for each of them."""

from __future__ import annotations

import pytest

from airflow_provider_acid.merge.orc.schema import Kind, OrcType
from airflow_provider_acid.merge.orc.writers import OrcWriter, common_writer

LONG = OrcType(Kind.DECIMAL, parameters={"precision": 19, "scale": 2})
SHORT = OrcType(Kind.DECIMAL, parameters={"precision": 18, "scale": 2})
HIVE_3, HIVE_4 = OrcWriter(0, 7, ""), OrcWriter(0, 9, "1.8.5")
ARROW, PYORC = OrcWriter(1, 6, "2.2.2"), OrcWriter(1, 6, "2.3.1")


@pytest.mark.parametrize(
    ("writer", "of_long", "of_short"),
    [
        (HIVE_3, True, True),
        (HIVE_4, True, True),
        (ARROW, True, True),
        (OrcWriter(0, 8, "1.6.9"), True, True),
        (OrcWriter(0, 6, ""), True, False),
        (OrcWriter(0, 5, ""), False, False),
        (OrcWriter(0, 10, "3.0.0"), False, False),
        (OrcWriter(1, 6, ""), False, False),
        (OrcWriter(1, 6, "1.7.0"), False, False),
        (OrcWriter(1, 6, "1.8.0-SNAPSHOT"), True, True),
        (OrcWriter(1, 6, "C++"), False, False),
        (OrcWriter(1, 7, "2.2.2"), False, False),
        (OrcWriter(2, 6, ""), False, False),
        (OrcWriter(4, 6, "476"), False, False),
    ],
)
def test_stripes_of_writers_whose_mistakes_are_known_may_be_copied(
    writer: OrcWriter, of_long: bool, of_short: bool
) -> None:
    assert (writer.may_share(LONG), writer.may_share(SHORT)) == (of_long, of_short)
    assert writer.may_share(OrcType(Kind.STRUCT, (SHORT,), ("c",))) is of_short


@pytest.mark.parametrize(
    ("writers", "common"),
    [
        ([ARROW], ARROW),
        ([PYORC, ARROW], ARROW),
        ([OrcWriter(1, 6, "1.10.0"), OrcWriter(1, 6, "1.9.0")], OrcWriter(1, 6, "1.9.0")),
        ([HIVE_4], HIVE_4),
        ([HIVE_4, ARROW], OrcWriter(0, 9, "")),
        ([ARROW, HIVE_3], HIVE_3),
        ([HIVE_4, HIVE_3], OrcWriter(0, 7, "")),
        ([OrcWriter(0, 6, ""), ARROW, HIVE_4], OrcWriter(0, 6, "")),
    ],
)
def test_the_lowest_version_of_java_counts_and_else_the_oldest_release(
    writers: list[OrcWriter], common: OrcWriter
) -> None:
    assert common_writer(writers) == common
    assert common_writer(set(writers)) == common
