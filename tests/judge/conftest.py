from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness.hive_engine import HiveEngine
from tests.harness.hive_engine_program import HIVE_3, HIVE_4_1, HIVE_4_2
from tests.integration.compaction_site import Site
from tests.judge.compactors import compactor_for

ON_DATABASE_SERVERS = {HIVE_3: "hive_3_engine", HIVE_4_1: "hive_4_1_engine", HIVE_4_2: "hive_4_2_engine"}
StartHive = Callable[[str], HiveEngine]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets no test be in any process: its engine would be started there a second time, on a database that is there."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.get_closest_marker("xdist_group") is None:
            raise pytest.UsageError(f"{item.nodeid} has no xdist_group")


@pytest.fixture(scope="session")
def start_hive(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[StartHive]:
    """Gives the engine of a version, which is started when it is first asked for and ends with the session.

    Hive 3 works with a metastore on PostgreSQL, for only its database knows the compaction queue, and so do Hive 4.1
    and 4.2, for there our rows are kept from its Cleaner.
    """
    engines: dict[str, HiveEngine] = {}
    with ExitStack() as stack:

        def start(version: str) -> HiveEngine:
            if version in ON_DATABASE_SERVERS:
                engine: HiveEngine = request.getfixturevalue(ON_DATABASE_SERVERS[version])
                return engine
            if version not in engines:
                engines[version] = stack.enter_context(HiveEngine(version, tmp_path_factory.mktemp("hive")))
            return engines[version]

        yield start


@pytest.fixture
def site(hive: HiveEngine, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Our compactor on the metastore of a module's ``hive``, in its ``DATABASE``."""
    with compactor_for(hive, request.module.DATABASE) as compactor:
        yield compactor.site
