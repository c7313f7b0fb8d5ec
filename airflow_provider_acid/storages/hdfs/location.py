"""Where on which HDFS a location lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from airflow_provider_acid.exceptions import ConfigurationError, StorageError
from airflow_provider_acid.storages.hdfs.options import HdfsOptions

HDFS_SCHEMES = frozenset({"hdfs", "webhdfs", "swebhdfs"})

_AUTHORITY = r"[A-Za-z0-9._-]+(?::[0-9]+)?|\[[0-9A-Fa-f:.]+\]:[0-9]+"
_LOCATION = re.compile(rf"([A-Za-z]+):(?://({_AUTHORITY})?(?![^/])|(?!//))(/.*)?", re.DOTALL)


@dataclass(frozen=True)
class HdfsLocation:
    """A location, taken apart.

    :param authority: host and port, or nameservice; empty for the default file system.
    :param path: absolute, as it is called on the NameNode: nothing in it is escaped, so that ``%2F`` is part of a name.
    """

    location: str
    scheme: str
    authority: str
    path: str

    @classmethod
    def of(cls, location: str) -> HdfsLocation:
        """Take a location apart.

        Not by the rules of URIs: Hive writes paths as they are, also with ``#`` and ``?``.

        :raises StorageError: it is not an absolute path on an HDFS.
        """
        found = _LOCATION.fullmatch(location)
        if found is None or found[1].lower() not in HDFS_SCHEMES:
            raise StorageError(location, "is not on HDFS", "use hdfs://nameservice/path")
        names = [name for name in (found[3] or "").split("/") if name not in ("", ".")]
        if not names:
            raise StorageError(location, "names no directory", "use hdfs://nameservice/path")
        if ".." in names:
            raise StorageError(location, "holds '..'", "write the path of the directory itself")
        return cls(location, found[1].lower(), found[2] or "", "/" + "/".join(names))

    def below(self, parts: tuple[str, ...]) -> str:
        """The absolute path of what lies below."""
        return "/".join((self.path, *parts))

    def beside(self, path: str) -> str:
        """The location of an absolute path on the same HDFS."""
        return f"{self.scheme}://{self.authority}{path}"

    def web_addresses(self, options: HdfsOptions) -> tuple[str, ...]:
        """URLs of the NameNodes' web servers that serve the location.

        :raises StorageError: the options are those of another HDFS.
        :raises ConfigurationError: no address is known.
        """
        own = self.authority if self.scheme != "hdfs" and ":" in self.authority else None
        addresses = options.web_addresses or ((own,) if own else ())
        if not addresses:
            raise ConfigurationError(
                self.location,
                "is on an HDFS whose web address is not known",
                "set web_addresses of the HDFS options to the NameNodes' dfs.namenode.http-address",
            )
        tls = options.tls or self.scheme == "swebhdfs"
        urls = tuple(_url(address, tls) for address in addresses)
        hosts = {urlsplit(url).hostname for url in urls}
        host = urlsplit(f"//{self.authority}").hostname
        if self.authority and self.authority not in options.authorities and host not in hosts:
            raise StorageError(
                self.location,
                f"is on {self.authority}, which is not configured",
                f"add {self.authority} to authorities of the HDFS options, if {', '.join(addresses)} serves it",
            )
        return urls


def _url(address: str, tls: bool) -> str:
    url = address if "://" in address else f"{'https' if tls else 'http'}://{address}"
    return url.rstrip("/")
