"""What a partition costs the operator is the same among ten and among a thousand; nobody else's time is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.storages.local import LocalStorage
from benchmarks.simulated_chain import measure_simulated_chain

FEW, MANY = 10, 1000


def counted_looks(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Listings and readings. Run directories are listed from time to time, whatever is in work, and not counted."""
    looks: Counter[str] = Counter()

    def counting(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def look(self: LocalStorage, *arguments: Any, **named: Any) -> Any:
            if "/runs" not in self.location or name != "list":
                looks[name] += 1
            return do(self, *arguments, **named)

        return look

    for name in ("list", "open_input"):
        monkeypatch.setattr(LocalStorage, name, counting(name, getattr(LocalStorage, name)))
    return looks


def test_calls_and_looks_for_each_partition_do_not_grow_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = counted_looks(monkeypatch)
    found: list[tuple[int, Counter[str]]] = []
    for count in (FEW, MANY):
        looks.clear()
        (measured,) = measure_simulated_chain(tmp_path / str(count), count, lambda text: None).measured
        assert measured.metastore_calls is not None
        found.append((measured.metastore_calls, looks.copy()))
    (few_calls, few_looks), (many_calls, many_looks) = found
    assert many_calls - few_calls <= 15 * (MANY - FEW)
    assert many_looks["open_input"] - few_looks["open_input"] <= MANY - FEW
    assert many_looks["list"] - few_looks["list"] <= 5 * (MANY - FEW)
