"""What a small partition asks of a store, from its claim to its commit and at its cleaning: each request, counted."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from airflow_provider_acid.compaction.clean.cleaning import CleaningState
from airflow_provider_acid.compaction.outcomes import OutcomeState
from airflow_provider_acid.filesystem import Storages
from airflow_provider_acid.merge.app.bucket_tasks import Refusal, RunItem, begin_task
from airflow_provider_acid.merge.app.partition_job import carry_out
from airflow_provider_acid.merge.files.answers import Merged
from airflow_provider_acid.merge.stitch.stitch_slices import SlicedRows
from airflow_provider_acid.plan.plan import CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.webhdfs_session import WebHdfsSession
from airflow_provider_acid.storages.s3.options import S3Options
from tests.harness.compaction_chain import Chain
from tests.harness.fault_proxy import FaultProxy
from tests.harness.hdfs_server import HdfsServer
from tests.harness.metastore_server import MetastoreServer
from tests.harness.s3_server import S3Server
from tests.storage.hdfs_stores import Administrator
from tests.storage.remote_tables import RemotePlace
from tests.storage.s3_tables import KeyedStorages, chain_of, place_on, table_on

FIXTURE = ("4.0.1", "acid_part")
DIRECTORIES = 5
"""Deltas of its first partition, each with one file of rows or deletes."""

FILES = 4
"""In each of them, with its marker file and two of checksums."""

READ = DIRECTORIES + 1
"""Each source, and what was written, once."""

WRITTEN = 5
"""The plan, the data file, its two marker files, and the result."""


@pytest.fixture
def server(hive_4_metastore_on_postgres: MetastoreServer) -> MetastoreServer:
    """A metastore of Hive 4."""
    return hive_4_metastore_on_postgres


def merged_by_tasks(storages: Storages, plan: CompactionPlan) -> CompactionResult:
    """A plan carried out as Spark's driver and tasks do, but in this process."""
    item = RunItem(storages, plan.location, 0)

    def merge_buckets() -> list[Merged]:
        merged: list[Merged] = []
        for place in range(len(plan.buckets)):
            begun = begin_task(plan.to_json(), place, item)
            assert not isinstance(begun, Refusal | SlicedRows), begun
            merged += begun
        return merged

    return carry_out(storages, plan, merge_buckets)


def compact(chain: Chain) -> None:
    """What operator, driver and tasks do of one partition."""
    compacted = chain.compact(job=lambda plan: merged_by_tasks(chain.settings.storages, plan))
    assert compacted.outcome.state is OutcomeState.COMPACTED, compacted


def clean(chain: Chain) -> None:
    """What the cleaner does about it."""
    [cleaning] = chain.clean()
    assert cleaning.state is CleaningState.CLEANED, cleaning


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The requests of WebHDFS that this process makes."""
    made: Counter[str] = Counter()
    send = WebHdfsSession.send

    def noting(self: WebHdfsSession, method: str, url: str, body: Any) -> Any:
        query = parse_qs(urlsplit(url).query)
        made[query["op"][0] + (" data" if "namenoderpcaddress" in query else "")] += 1
        return send(self, method, url, body)

    monkeypatch.setattr(WebHdfsSession, "send", noting)
    return made


class MadeFirst(RemotePlace):
    """A place where a table's directory has to be made before anything is put there."""

    def put(self, folder: Path, uri: str) -> None:
        """See :meth:`RemotePlace.put`."""
        self.storages.open(self.uri).make_directory(uri.removeprefix(f"{self.uri}/"))
        super().put(folder, uri)


def kind(method: str, target: str) -> str:
    """What a request of S3's protocol is, by the query that says so."""
    query = parse_qs(urlsplit(target).query, keep_blank_values=True)
    named = [name for name in ("list-type", "uploads", "partNumber", "uploadId", "delete") if name in query]
    return " ".join([method, *named[:1]])


def test_what_webhdfs_is_asked(server: MetastoreServer, hdfs: HdfsServer, tmp_path: Path, asked: Counter[str]) -> None:
    path = f"/chains/{uuid.uuid4().hex}"
    Administrator(hdfs, path).make_directory("")
    place = MadeFirst(Storages((HdfsOptions((hdfs.web_address,), user=hdfs.superuser),)), f"{hdfs.uri}{path}")
    table = table_on(server, place, tmp_path, FIXTURE)
    chain = chain_of(table, table.entities[0])
    asked.clear()
    compact(chain)
    compacting = Counter(asked)
    asked.clear()
    clean(chain)
    cleaning = Counter(asked)
    assert table.read() == table.expected
    assert compacting == {
        # By names alone for what dead attempts left; the whole partition before it is planned and before the result is
        # published; the staging directory before anything is made of it, and the result in it once more.
        "LISTSTATUS": 1 + 2 * (1 + DIRECTORIES) + 3 + 1,
        # Of all files that are written and read; around the two directories that are made; before the two renames;
        # whether the plan is still there; and of the directory of all runs, once a batch.
        "GETFILESTATUS": WRITTEN + READ + 4 + 2 + 1 + 1,
        "GETHOMEDIRECTORY": 1,
        # Whether a result may be put there, before anything is claimed.
        "CHECKACCESS": 1,
        "OPEN": READ,
        "OPEN data": READ,
        "CREATE": WRITTEN,
        "CREATE data": WRITTEN,
        "RENAME": WRITTEN + 2,
        "MKDIRS": 2,
        "DELETE": 1,
    }
    assert (cleaning["RENAME"], cleaning["MKDIRS"], cleaning["DELETE"]) == (DIRECTORIES, 1, 1)
    # All of it, with the result, before and after it was made sure that nothing aborted is there; by names alone for
    # that, of what is deleted, and of what is left.
    assert cleaning["LISTSTATUS"] == 2 * (1 + DIRECTORIES + 1) + 5


def test_what_s3_is_asked(server: MetastoreServer, s3: S3Server, tmp_path: Path) -> None:
    place = place_on(s3)
    table = table_on(server, place, tmp_path, FIXTURE)
    assert isinstance(place.storages, KeyedStorages)
    options = place.storages.of(S3Options)
    with FaultProxy(s3.endpoint) as proxy:
        storages = place.storages.using(replace(options, endpoint=proxy.addresses[s3.endpoint]))
        # Whether the store looks at conditions is tried once.
        storages.open(place.uri).write_new("_tried", b"")
        chain = chain_of(table, table.entities[0])
        chain = replace(chain, settings=replace(chain.settings, storages=storages))

        def asked() -> Counter[str]:
            made = Counter(kind(one.method, one.target) for one in proxy.exchanges)
            proxy.exchanges.clear()
            return made

        asked()
        compact(chain)
        compacting = asked()
        clean(chain)
        cleaning = asked()
    assert table.read() == table.expected
    assert compacting == {
        "PUT": WRITTEN + 1,  # The journal.
        "GET": READ,
        # Before each reading, between the signing of each copy and its request, and whether three names are there.
        "HEAD": READ + 3 + 3,
        "GET list-type": 10,
        # The data file and two marker files.
        "POST uploads": 3,
        "PUT partNumber": 3,
        "POST uploadId": 3,
        "POST delete": 1,
    }
    assert cleaning == {
        "PUT": 1,
        "DELETE": FILES * DIRECTORIES,
        # The anchor, once for all that has rows and once for all that deletes some.
        "HEAD": 2,
        "GET list-type": 9,
        "POST delete": 1,
    }
