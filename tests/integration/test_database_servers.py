"""The database servers of the tests."""

from __future__ import annotations

import pytest

from tests.harness.database_server import DatabaseServer
from tests.harness.mariadb_server import MariaDbServer
from tests.harness.postgres_server import PostgresServer


@pytest.mark.parametrize("kind", [PostgresServer, MariaDbServer])
def test_another_server_on_the_same_port_is_not_taken_for_this_one(kind: type[DatabaseServer]) -> None:
    late = kind()
    with kind() as first:
        late.port = first.port
        with pytest.raises(RuntimeError, match="does not answer"), late:
            pass
    with late:
        late.create_database("made", "CREATE TABLE t (a INT);")
        assert late.query("made", "SELECT count(*) FROM t") == [(0,)]
