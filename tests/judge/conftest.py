from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.harness.hive_engine import HiveEngine

StartHive = Callable[[str], HiveEngine]


@pytest.fixture(scope="session")
def start_hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartHive]:
    """Gives the engine of a version, which is started when it is first asked for and ends with the session."""
    engines: dict[str, HiveEngine] = {}
    with ExitStack() as stack:

        def start(version: str) -> HiveEngine:
            if version not in engines:
                engines[version] = stack.enter_context(HiveEngine(version, tmp_path_factory.mktemp("hive")))
            return engines[version]

        yield start
