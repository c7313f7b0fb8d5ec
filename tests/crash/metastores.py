"""The metastores of the crash tests, each with the tables that its own version of Hive wrote."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import dataclass

import pytest
from thrift.Thrift import TApplicationException

from tests.harness import hive_engine_program
from tests.harness.crash_case import CrashCase, Kind
from tests.harness.metastore_server import MetastoreServer
from tests.harness.table_state import TableState
from tests.harness.the_hive_4 import NAME, NAMES

REGISTRATIONS = 3

_DATABASES = itertools.count()


@dataclass(frozen=True)
class FixtureName:
    """A fixture and the partition of it that is compacted; each has inserts and deletes."""

    version: str
    name: str
    partition: str | None = None

    def __str__(self) -> str:
        return self.name

    def register(self, server: MetastoreServer) -> TableState:
        """In a database of its own; a new one where Derby's lock manager got in its own way."""
        for _ in range(REGISTRATIONS):
            with suppress(TApplicationException):
                return TableState.of(server, self.name, f"crash_{next(_DATABASES)}", self.partition, self.version)
        raise AssertionError(f"{self.name} cannot be registered in {server.uri}")


@dataclass(frozen=True)
class CrashMetastore:
    """A kind of metastore.

    :param name: for the records.
    :param patient: fixture that starts one which aborts no transaction for minutes.
    :param reaping: fixture that starts one which aborts silent transactions after seconds.
    :param table: with aborted writes.
    :param partitioned: with partitions.
    """

    name: str
    patient: str
    reaping: str
    table: FixtureName
    partitioned: FixtureName

    @property
    def publishes_by_rename(self) -> bool:
        """Whether it is a Hive 3."""
        return self.name.startswith("3")

    @property
    def kinds(self) -> list[Kind]:
        """What can be compacted how."""
        return list(Kind) if self.publishes_by_rename else [Kind.MAJOR, Kind.MINOR]

    def start(self, request: pytest.FixtureRequest, *, reaping: bool = False) -> MetastoreServer:
        """The running one."""
        server: MetastoreServer = request.getfixturevalue(self.reaping if reaping else self.patient)
        return server

    def case(
        self, request: pytest.FixtureRequest, table: FixtureName, kind: Kind, step: str, *, reaping: bool = False
    ) -> CrashCase:
        """A case on a table that is registered for it."""
        return CrashCase(table.register(self.start(request, reaping=reaping)), kind, step, self.name)


HIVE_4 = CrashMetastore(
    "4.0.1 on Derby",
    "hive_4_metastore",
    "reaping_hive_4_metastore",
    FixtureName("4.0.1", "acid_abort"),
    FixtureName("4.0.1", "acid_part", "p=x/q=1"),
)
HIVE_4_ALPHA, HIVE_4_1, HIVE_4_2 = (
    CrashMetastore(
        f"{version} on PostgreSQL",
        f"{NAMES[version]}_metastore",
        f"reaping_{NAMES[version]}_metastore",
        HIVE_4.table,
        HIVE_4.partitioned,
    )
    for version in (hive_engine_program.HIVE_4_ALPHA, hive_engine_program.HIVE_4_1, hive_engine_program.HIVE_4_2)
)
THE_HIVE_4 = next(
    metastore for metastore in (HIVE_4_ALPHA, HIVE_4, HIVE_4_1, HIVE_4_2) if metastore.patient == f"{NAME}_metastore"
)
HIVE_3 = CrashMetastore(
    "3.1.3 on PostgreSQL",
    "hive_3_metastore",
    "reaping_hive_3_metastore",
    FixtureName("3.1.3", "a_abort"),
    FixtureName("3.1.3", "a_part", "ds=2024-01-01/h=0"),
)
HIVE_3_ON_MARIADB = CrashMetastore(
    "3.1.3 on MariaDB",
    "hive_3_metastore_on_mariadb",
    "reaping_hive_3_metastore_on_mariadb",
    HIVE_3.table,
    HIVE_3.partitioned,
)


def on_its_own_worker(metastore: CrashMetastore, *values: object, id: str = "", reaping: bool = False) -> pytest.param:  # type: ignore[valid-type]
    """A parameter set whose tests share one process, and so one server, where several processes run tests.

    :param reaping: whether that is the one which aborts silent transactions.
    """
    group = pytest.mark.xdist_group(f"{metastore.name}, reaping" if reaping else metastore.name)
    return pytest.param(metastore, *values, marks=group, id=f"{metastore.name}{id}")
