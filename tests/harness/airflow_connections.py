"""Airflow's connections to a metastore of the tests, as environment variables."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy.engine import make_url

from tests.harness.metastore_server import MetastoreServer


def connections_to(
    server: MetastoreServer, host: str | None = None, storage: Mapping[str, object] | None = None
) -> dict[str, str]:
    """``hive_acid_default``, and the one to the metastore's database where others can open that.

    :param host: where the metastore is not called by its own host and port.
    :param storage: options of storages.
    """
    place = {"host": host} if host else {"host": server.host, "port": server.port}
    extra: dict[str, object] = {**server.protection.extra, **({"storage": storage} if storage else {})}
    database = {}
    if server.database_url is not None:
        extra["metastore_db_conn_id"] = "metastore_db"
        database = {"AIRFLOW_CONN_METASTORE_DB": json.dumps(_to_database(server.database_url))}
    connection = {"conn_type": "hive_acid", **place, "extra": extra}
    return {"AIRFLOW_CONN_HIVE_ACID_DEFAULT": json.dumps(connection), **database}


def _to_database(url: str) -> dict[str, object]:
    parsed = make_url(url)
    return {
        "conn_type": "postgres" if parsed.get_backend_name() == "postgresql" else "mysql",
        "login": parsed.username,
        "password": parsed.password,
        "host": parsed.host,
        "port": parsed.port,
        "schema": parsed.database,
    }
