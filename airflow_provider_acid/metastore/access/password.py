"""A name and a password, as SASL's mechanism PLAIN (RFC 4616), for metastores that ask LDAP or a list of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

MECHANISM = "PLAIN"
INSTALL = "pip install airflow-provider-acid[ldap]"
REMEDY = "correct login and password of the connection, or see whether the metastore reaches its directory"


@dataclass(frozen=True)
class Password:
    """Who the client is, and how it proves that; a :class:`~.sasl.SaslMechanism` without any protection of its own.

    :param user: its name.
    :param password: is shown nowhere.
    """

    user: str
    password: str = field(repr=False)

    def start(self, mechanism: str) -> tuple[bool, str, bytes]:
        """See :meth:`.sasl.SaslMechanism.start`: nothing else has to be said."""
        return True, mechanism, f"\0{self.user}\0{self.password}".encode()

    def step(self, challenge: bytes) -> tuple[bool, bytes]:
        """See :meth:`.sasl.SaslMechanism.step`."""
        return True, b""

    def encode(self, data: bytes) -> tuple[bool, bytes]:
        """See :meth:`.sasl.SaslMechanism.encode`."""
        return True, data

    def decode(self, data: bytes) -> tuple[bool, bytes]:
        """See :meth:`.sasl.SaslMechanism.decode`; not used where nothing is encoded."""
        return True, data

    def getError(self) -> str:  # noqa: N802 - the library's name
        """Nothing fails here."""
        return ""
