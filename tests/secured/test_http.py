"""Metastores, 4.0.1 and with TLS 4.2.1, that speak HTTP and ask for a JWT: the chain, and tokens that do not do."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from airflow_provider_acid.acid.hive import Hive
from airflow_provider_acid.exceptions import MetastoreAccessError, MetastoreUnavailableError
from airflow_provider_acid.hooks.metastore import AcidMetastoreHook
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.http import Http
from tests.harness.airflow_connections import connections_to
from tests.harness.certificates import CertificateAuthority
from tests.harness.hive_engine_program import HIVE_4
from tests.harness.metastore_server import MetastoreServer, Protection
from tests.harness.token_issuer import OVER_HTTP, TokenIssuer, http_jars
from tests.secured.conftest import HOST, ClientOf
from tests.secured.sites import end_the_chain, run_the_chain, site_over
from tests.storage.airflow_tasks import LOG_FILE, run_tasks
from tests.storage.canaries import RUN_KEY, CanaryWatch

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NO_OBJECTS = SimpleNamespace(list_objects_v2=lambda **_: {})
"""A store that nothing is written to."""


def test_a_partition_is_compacted_and_cleaned_over_http(
    http_metastore: MetastoreServer, issuer: TokenIssuer, client_of: ClientOf, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = issuer.token()
    client = client_of(http_metastore, password=token, http=True)
    with site_over(client, http_metastore) as site:
        assert client.probe() == Hive(4, "4.0.1")
        run_the_chain(site)
    is_good, message = AcidMetastoreHook().test_connection()
    assert (is_good, message.partition(". Warning")[0]) == (True, "Hive metastore 4.0.1 answers and can be used")
    assert token not in caplog.text


def test_the_tasks_of_a_chain_over_https_leave_the_token_nowhere(
    https_metastore: MetastoreServer, issuer: TokenIssuer, client_of: ClientOf, tmp_path: Path
) -> None:
    token = issuer.token()
    connection = json.loads(connections_to(https_metastore)["AIRFLOW_CONN_HIVE_ACID_DEFAULT"])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {
        "AIRFLOW_CONN_HIVE_ACID_DEFAULT": json.dumps({**connection, "password": token}),
        "AIRFLOW__HIVE_ACID__HEALTH_LOCATION": f"file:{tmp_path}/health",
        "HOME": str(tmp_path),
        "TMPDIR": str(temporary),
    }
    client = client_of(https_metastore, password=token, **https_metastore.protection.extra)
    with site_over(client, https_metastore) as site:
        table = site.table(partitions=["p=1"])
        for value in (1, 2, 3):
            table.insert(value, partition="p=1")
        with CanaryWatch({"token": token}, tmp_path, cast("S3Client", NO_OBJECTS), "none") as watch:
            name = f"{site.database}.{table.name}"
            [compacted], [cleaned] = run_tasks(https_metastore, name, {}, environment, tmp_path / "airflow")
        assert (compacted["state"], cleaned["state"]) == ("compacted", "cleaned")
        assert [name[:5] for name in table.directories("p=1")] == ["base_"]
        assert table.values() == [1, 2, 3]
    assert {canary for canary, _ in watch.found} == {RUN_KEY}
    for left in (".plan.json", ".result.json", f"/{LOG_FILE}", "/health/", "SparkSubmit", "--run-directory"):
        assert [seen for seen in watch.seen if left in seen], left


def test_a_compaction_outlives_its_token_where_the_file_is_renewed(
    http_metastore: MetastoreServer, issuer: TokenIssuer, client_of: ClientOf, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{issuer.token()}\n")
    client = client_of(http_metastore, http=True, jwt_file=str(file))
    with site_over(client, http_metastore) as site:
        table = site.table()
        for value in (1, 2):
            table.insert(value)
        active = site.begin(table.entity())
        file.write_text(issuer.token(seconds=-1))
        with pytest.raises(
            MetastoreUnavailableError, match=rf"JWT in jwt_file {file}, which ended at 20.* UTC\).*Remedy: renew it"
        ) as told:
            client.heartbeat(active.transaction.txn_id)
        assert not told.value.is_permanent, "whoever renews the token may be late"
        file.write_text(issuer.token())
        client.heartbeat(active.transaction.txn_id)
        end_the_chain(table, active, [1, 2])


def test_wrong_tokens_and_paths_are_told_without_the_token(
    http_metastore: MetastoreServer, issuer: TokenIssuer, client_of: ClientOf
) -> None:
    strangers, ended = TokenIssuer().token(), issuer.token(seconds=-60)
    unsigned = f"{issuer.token().rpartition('.')[0]}.AAAA"
    for password, extra, told in (
        ("", {}, r"wants a JWT \(HTTP status 401\).*Remedy: enter one as the connection's password, or name a file"),
        (ended, {}, r"refuses the JWT in the connection's password, which ended at 20.* UTC\).*Remedy: renew it"),
        (
            strangers,
            {},
            r"refuses the JWT in the connection's password, which ends at .*Remedy: give one that a key at",
        ),
        (unsigned, {}, r"refuses the JWT in the connection's password, which ends at .*Remedy: give one that a key at"),
        ("sesame", {}, r"the connection's password is no JWT.*Remedy: give one, as HEADER.PAYLOAD.SIGNATURE"),
        (issuer.token(), {"http_path": "hive"}, r"no metastore at /hive \(HTTP status 405\).*Remedy: set http_path to"),
    ):
        with (
            client_of(http_metastore, password=password, http=True, **extra) as client,
            pytest.raises(MetastoreAccessError, match=told) as refused,
        ):
            client.open_compaction_txn()
        assert f"localhost:{http_metastore.port}" in str(refused.value)
        assert "whether the metastore carried the call out" not in str(refused.value)
        assert not password or password not in str(refused.value)


def test_who_speaks_in_another_way_than_the_server_is_told_so(
    http_metastore: MetastoreServer,
    https_metastore: MetastoreServer,
    hive_4_metastore: MetastoreServer,
    authority: CertificateAuthority,
    client_of: ClientOf,
    issuer: TokenIssuer,
) -> None:
    tls: dict[str, object] = {"tls": True, "tls_ca_file": str(authority.file)}
    for server, extra, told in (
        (
            http_metastore,
            {},
            r"this port speaks HTTP\).*Remedy: where it is a metastore's .* set http in the connection",
        ),
        (https_metastore, tls, r"this port speaks HTTP\)"),
        (https_metastore, {"http": True}, r"this port speaks TLS\).*Remedy: set tls in the connection's extra"),
        (http_metastore, {"http": True, **tls}, r"does not speak TLS"),
        (
            hive_4_metastore,
            {"http": True},
            r"hung up instead of speaking HTTP.*Remedy: take http out of the connection's",
        ),
    ):
        password = issuer.token() if "http" in extra else ""
        with (
            client_of(server, password=password, **extra) as client,
            pytest.raises(MetastoreUnavailableError, match=told) as refused,
        ):
            client.probe()
        assert f"localhost:{server.port}" in str(refused.value)
        assert not password or password not in str(refused.value)


def test_a_metastore_that_asks_for_no_token_is_told_the_user(client_of: ClientOf, tmp_path: Path) -> None:
    protection = Protection(OVER_HTTP, MetastoreAccess(http=Http(user="admin")), jars=http_jars(HIVE_4))
    with (
        MetastoreServer(tmp_path, reaper=False, protection=protection, host=HOST) as server,
        client_of(server, http=True, user="somebody") as client,
    ):
        client.abort(client.open_compaction_txn())
        assert "remote user for: somebody" in server.log_file.read_text()
