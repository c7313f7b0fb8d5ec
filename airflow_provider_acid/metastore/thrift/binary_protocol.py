"""Thrift's binary protocol with limits, and what a server that speaks another one says instead."""

from __future__ import annotations

from typing import Final

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TTransportBase, TTransportException

MAX_TEXT_BYTES = 16 * 2**20
"""Of one text or binary field; the longest are texts of views and statistics in parameters, of some MB at most."""

MAX_ITEMS = 2_000_000
"""Of one list or map, for which Thrift makes room before it has seen one; above what an answer's bytes allow for of
anything with 32 bytes."""

_VERSION_1 = b"\x80\x01\x00"


class UnusableConnectionError(TTransportException):  # type: ignore[misc]
    """Somebody listens, but does not talk in the way that was tried, or is not to be talked to.

    :param remedy: what to change.
    :param is_final: whether another try ends the same way unless somebody changes something.
    :param was_sent: whether a call may have reached whoever carries it out.
    """

    def __init__(self, reason: str, remedy: str, *, is_final: bool = True, was_sent: bool = True) -> None:
        super().__init__(TTransportException.INVALID_CLIENT_TYPE, reason)
        self.remedy = remedy
        self.is_final = is_final
        self.was_sent = was_sent


_PLAIN_PORT = "name the port of a metastore that speaks plain Thrift"
SPEAKS_TLS: Final = (
    "this port speaks TLS",
    f"set tls in the connection's extra, or {_PLAIN_PORT} (metastore.use.SSL=false)",
)
_HTTP: Final = (
    "this port speaks HTTP",
    "where it is a metastore's (metastore.server.thrift.transport.mode=http), set http in the connection's extra, else "
    f"{_PLAIN_PORT} (9083 by default)",
)
_SASL: Final = (
    "this port asks for SASL (Kerberos, LDAP or a password)",
    "for Kerberos set kerberos_principal in the connection's extra, for LDAP its login and password; else "
    f"{_PLAIN_PORT} (metastore.sasl.enabled=false, metastore.authentication=NOSASL)",
)
_SILENT: Final = (
    "the server hung up without an answer (read 0 bytes), as ports do that ask for SASL (Kerberos, LDAP) or TLS",
    "look at the metastore's log; where it has Kerberos, set kerberos_principal in the connection's extra, "
    "where it has TLS, tls; where it asks for a password, the connection's login and password",
)


class AnswerProtocol(TBinaryProtocolAccelerated):  # type: ignore[misc]
    """Refuses answers without the protocol's version, and sizes over the limits.

    :param transport: where the bytes come from; counts them and the time.
    """

    def __init__(self, transport: TTransportBase) -> None:
        super().__init__(transport, string_length_limit=MAX_TEXT_BYTES, container_length_limit=MAX_ITEMS)
        self._was_answered = False

    def readMessageBegin(self) -> tuple[str, int, int]:  # noqa: N802 - Thrift's name
        """Name, type and sequence id of the answer that comes next.

        :raises UnusableConnectionError: it begins as no answer of a metastore does.
        """
        try:
            first = self.trans.readAll(4)
        except TTransportException as error:
            hung_up = error.type == TTransportException.END_OF_FILE or isinstance(error.inner, ConnectionResetError)
            if hung_up and not self._was_answered:
                raise UnusableConnectionError(*_SILENT, is_final=False) from error
            raise
        if not first.startswith(_VERSION_1):
            raise _speaker(first)
        self._was_answered = True
        return self.readString(), first[3], self.readI32()


def _speaker(first: bytes) -> UnusableConnectionError:
    """Who answers with these four bytes, and what to do then."""
    if first.startswith(b"\x15\x03"):
        return UnusableConnectionError(*SPEAKS_TLS)
    if first == b"HTTP":
        return UnusableConnectionError(*_HTTP)
    # A status from 1 to 5, and the length of a message that has none or a few hundred bytes.
    if 1 <= first[0] <= 5 and first[1:3] == b"\0\0":
        return UnusableConnectionError(*_SASL)
    reason = f"the answer begins with {first!r}, as none of a metastore does"
    return UnusableConnectionError(reason, _PLAIN_PORT, is_final=False)
