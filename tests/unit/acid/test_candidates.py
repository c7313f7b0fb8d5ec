"""Which partitions are looked at by the metastore's records of writes."""

from __future__ import annotations

import pytest

from airflow_provider_acid.compaction.candidates import written_partitions

NAMES = ["p=a", "p=A", "p=b%2Fc", "p=Ü", "p=ΟΔΟΣ_Α", "p=__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        pytest.param([], [], id="nothing recorded, nothing looked at"),
        pytest.param(["p=b%2Fc"], ["p=b%2Fc"], id="as the metastore spells it"),
        pytest.param(["p=b%2fc"], ["p=b%2Fc"], id="escape in lower case, as Hive 3 records it"),
        pytest.param(["p=b%252Fc"], ["p=b%2Fc"], id="escaped once more, as Hive 4 records it"),
        pytest.param(["p=b/c"], ["p=b%2Fc"], id="not escaped"),
        pytest.param(["p=ü"], ["p=Ü"], id="letters in lower case, as Hive 3 records them"),
        pytest.param(["p=__hive_default_partition__"], ["p=__HIVE_DEFAULT_PARTITION__"], id="default partition"),
        pytest.param(["p=οδοσ_α"], ["p=ΟΔΟΣ_Α"], id="as Java lowers a sigma, other than Python"),
        pytest.param(["p=a"], ["p=a", "p=A"], id="either may be meant"),
        pytest.param(["p=A"], ["p=a", "p=A"], id="either may be meant, whatever the spelling"),
        pytest.param(["p=gone"], [], id="dropped since"),
        pytest.param([None], NAMES, id="a write that names no partition may be anywhere"),
        pytest.param(["p=a", None], NAMES, id="also beside others that do"),
        pytest.param(["p=b%2Fc", "p=a"], ["p=a", "p=A", "p=b%2Fc"], id="in the metastore's order"),
    ],
)
def test_partitions_are_taken_by_the_records_of_writes(recorded: list[str | None], wanted: list[str]) -> None:
    assert written_partitions(NAMES, frozenset(recorded)) == wanted
