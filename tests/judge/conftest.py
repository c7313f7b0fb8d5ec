from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3

StartHive = Callable[[str], HiveEngine]


@pytest.fixture(scope="session")
def start_hive(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartHive]:
    """Gives the engine of a version, which is started when it is first asked for and ends with the session.

    Hive 3 works with a metastore on PostgreSQL, for only its database knows the compaction queue.
    """
    engines: dict[str, HiveEngine] = {}
    with ExitStack() as stack:

        def start(version: str) -> HiveEngine:
            if version == HIVE_3:
                engine: HiveEngine = request.getfixturevalue("hive_3_engine")
                return engine
            if version not in engines:
                engines[version] = stack.enter_context(HiveEngine(version, tmp_path_factory.mktemp("hive")))
            return engines[version]

        yield start
