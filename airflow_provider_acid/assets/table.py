"""An ACID table as an asset: ``hive-acid://<metastore host>:<port>/<database>/<table>``.

The scheme ``hive`` belongs to Airflow's own Hive provider. Hive takes no notice of the case of names, so URIs are in
lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.metastore.thrift.transport import DEFAULT_PORT

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import Dataset
    from airflow.providers.common.compat.sdk import Asset
    from pydantic import JsonValue

SCHEME = "hive-acid"
PATH_PARTS = 2


@dataclass(frozen=True)
class TableName:
    """What the URI of an asset says.

    :param metastore: ``host:port``.
    """

    metastore: str
    database: str
    table: str

    @classmethod
    def of_uri(cls, uri: str) -> TableName | None:
        """The table of a URI; None where it has another scheme.

        :raises ConfigurationError: a URI of this scheme that names no table.
        """
        parts = urlsplit(uri)
        if parts.scheme.lower() != SCHEME:
            return None
        path = [unquote(part).lower() for part in parts.path.strip("/").split("/") if part]
        if len(path) != PATH_PARTS or not parts.netloc:
            raise ConfigurationError(f"asset {uri}", "names no table", f"write {SCHEME}://host:port/database/table")
        has_port = parts.netloc.rpartition("]")[2].rpartition(":")[1]
        metastore = parts.netloc if has_port else f"{parts.netloc}:{DEFAULT_PORT}"
        return cls(metastore.lower(), *path)

    @property
    def uri(self) -> str:
        """The one URI of this table."""
        return f"{SCHEME}://{self.metastore}/{quote(self.database)}/{quote(self.table)}"


def acid_table(
    host: str, database: str, table: str, *, port: int = DEFAULT_PORT, extra: Mapping[str, JsonValue] | None = None
) -> Asset:
    """The asset of a table, for ``outlets`` of the compaction operator and for schedules.

    :param host: the metastore's host, always the same one of several.
    """
    # Not at the top: the package's pure part is checked to import without Airflow.
    from airflow.providers.common.compat.sdk import Asset

    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    uri = TableName(address.lower(), database.lower(), table.lower()).uri
    return Asset(uri=uri, extra=dict(extra or {}))


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Airflow's hook for URIs of this scheme: one spelling for each table.

    :raises ValueError: the URI names no table, as Airflow wants it to be told.
    """
    try:
        name = TableName.of_uri(uri.geturl())
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    return uri if name is None else urlsplit(name.uri)


def to_openlineage(asset: Asset, lineage_context: object) -> Dataset:
    """Airflow's hook for lineage: the name that OpenLineage gives to tables of Hive."""
    from airflow.providers.common.compat.openlineage.facet import Dataset

    name = TableName.of_uri(asset.uri)
    if name is None:
        raise ValueError(asset.uri)
    return Dataset(namespace=f"hive://{name.metastore}", name=f"{name.database}.{name.table}")
