"""Two end one row at the same moment: the database lets one do it, and the other is told what became of the row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import pytest

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.exceptions import MetastoreError, OwnershipLostError
from airflow_provider_acid.metastore.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift_queue import ThriftCompactionQueue
from airflow_provider_acid.metastore.values import CompactionInfo, CompactionRow, CompactionState

ROW = CompactionRow(7, Entity("db", "t"), "major", CompactionState.WORKING, worker_id="pool@host")


@dataclass
class Server:
    """A metastore in which another ends the row just before.

    :param ended_as: what the other makes of it.
    """

    ended_as: CompactionState
    row: CompactionRow = ROW

    def compactions(self, **wanted: object) -> list[CompactionRow]:
        return [self.row]

    def mark_failed(self, info: CompactionInfo, message: str) -> None:
        self.row = replace(self.row, state=self.ended_as)
        raise MetastoreError("compaction 7", "duplicate key value", "look at the log")


def fail(server: Server) -> None:
    ThriftCompactionQueue(cast(AcidMetastoreClient, server)).fail(server.row, "an attempt died")


def test_who_comes_too_late_does_not_own_the_row() -> None:
    with pytest.raises(OwnershipLostError, match="the row is now refused"):
        fail(Server(CompactionState.REFUSED))


def test_what_another_did_already_is_done() -> None:
    server = Server(CompactionState.FAILED)
    fail(server)
    assert server.row.state is CompactionState.FAILED


def test_where_nobody_else_changed_the_row_the_servers_error_counts() -> None:
    with pytest.raises(MetastoreError, match="duplicate key"):
        fail(Server(CompactionState.WORKING))
