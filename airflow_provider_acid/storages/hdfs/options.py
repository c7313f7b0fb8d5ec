"""How storages are reached. Nothing here is secret: options travel to Spark's executors in plain JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.tickets import keytab_of_nobody

_ADDRESS = re.compile(r"(https?://)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}/?")
_UMASK = re.compile(r"[0-7]{3}")


@dataclass(frozen=True)
class HdfsOptions:
    """How one HDFS is reached, by WebHDFS, libhdfs or both.

    :param web_addresses: ``host:port`` (or ``http://host:port``) of the NameNodes' web servers, active and standby in
        any order; never of an observer, which answers with old listings, nor of HttpFS, which ignores whether a
        rename's target exists (it is found out, and refused). Not needed for ``webhdfs://host:port`` locations.
    :param authorities: what stands after ``hdfs://`` in the locations that lie on this HDFS (``ns1``,
        ``namenode:8020``). The hosts of ``web_addresses`` need not be named. Other locations are refused: the same
        path on another cluster is another table.
    :param user: who to be where there is no Kerberos; None for ``HADOOP_USER_NAME``, else the operating system's user.
    :param proxy_user: on whose behalf to act (``doas``), as a rule the tables' owner, like Hive's compactor does it.
    :param kerberos: authenticate by the delegation token that YARN gave the process, else by SPNEGO with a ticket.
    :param kerberos_keytab: file with the key of who needs a ticket; None for the tickets that the process has
        (``KRB5CCNAME``).
    :param kerberos_client_principal: whose key that is, or which of the tickets to use.
    :param tls: the web servers speak HTTPS.
    :param ca_file: PEM file with the certificates to trust; None for the usual ones.
    :param timeout_seconds: longest wait for a server's answer.
    :param umask: permission bits that new files and directories do not get (``fs.permissions.umask-mode``).
    :param libhdfs: read by libhdfs, which is several times faster than HTTP and comes with every Hadoop; it must be
        installed wherever a task or a Spark executor runs.
    """

    web_addresses: tuple[str, ...] = ()
    authorities: tuple[str, ...] = ()
    user: str | None = None
    proxy_user: str | None = None
    kerberos: bool = False
    kerberos_keytab: str | None = None
    kerberos_client_principal: str | None = None
    tls: bool = False
    ca_file: str | None = None
    timeout_seconds: float = 60.0
    umask: str = "022"
    libhdfs: bool = False

    def __post_init__(self) -> None:
        """Check the values.

        :raises ConfigurationError: one cannot be used.
        """
        for address in self.web_addresses:
            if not _ADDRESS.fullmatch(address):
                raise _wrong("web_addresses", "holds what is not host:port", "use namenode.example.com:9870")
        if self.kerberos and self.user is not None:
            raise _wrong("user", "cannot be chosen with Kerberos", "leave it out; the ticket says who it is")
        for name in ("kerberos_keytab", "kerberos_client_principal"):
            if getattr(self, name) is not None and not self.kerberos:
                raise _wrong(name, "is given, but not kerberos", "set kerberos to true, or leave it out")
        if self.kerberos_keytab is not None and self.kerberos_client_principal is None:
            raise ConfigurationError("HDFS options", *keytab_of_nobody("kerberos_keytab", "kerberos_client_principal"))
        if self.timeout_seconds <= 0:
            raise _wrong("timeout_seconds", f"is {self.timeout_seconds:g}", "use a number above 0")
        if not _UMASK.fullmatch(self.umask):
            raise _wrong("umask", "is not three octal digits", "use 022 or 077, for example")

    def to_json(self) -> dict[str, object]:
        """A JSON object; what has its default is left out."""
        defaults = asdict(HdfsOptions())
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> HdfsOptions:
        """Options from a JSON object, as :meth:`to_json` or a person writes them.

        :raises ConfigurationError: a name is unknown, or a value has the wrong type or cannot be used.
        """
        if unknown := sorted(set(data) - set(_KINDS)):
            raise _wrong(unknown[0], "is unknown", f"use {', '.join(sorted(_KINDS))}")
        for name, value in data.items():
            expected, is_right = _KINDS[name]
            if not is_right(value):
                raise _wrong(name, "has the wrong type", f"use {expected}")
        return cls(**{name: _plain(value) for name, value in data.items()})


def _plain(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _is_optional_text(value: object) -> bool:
    return value is None or isinstance(value, str)


_TEXTS = ("a list of strings", _is_texts)
_OPTIONAL_TEXT = ("a string", _is_optional_text)
_BOOLEAN = ("true or false", lambda value: isinstance(value, bool))
_KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "web_addresses": _TEXTS,
    "authorities": _TEXTS,
    "user": _OPTIONAL_TEXT,
    "proxy_user": _OPTIONAL_TEXT,
    "kerberos": _BOOLEAN,
    "kerberos_keytab": _OPTIONAL_TEXT,
    "kerberos_client_principal": _OPTIONAL_TEXT,
    "tls": _BOOLEAN,
    "libhdfs": _BOOLEAN,
    "ca_file": _OPTIONAL_TEXT,
    "timeout_seconds": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "umask": ("three octal digits in quotes", lambda value: isinstance(value, str)),
}


def _wrong(name: str, reason: str, remedy: str) -> ConfigurationError:
    """Without the value: somebody may have put a secret into the wrong place."""
    return ConfigurationError(f"HDFS option {name}", reason, remedy)
