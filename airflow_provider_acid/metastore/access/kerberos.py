"""Kerberos, as SASL's mechanism GSSAPI (RFC 4752); the library ``gssapi`` is imported when it is needed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from airflow_provider_acid.metastore.thrift.binary_protocol import UnusableConnectionError
from airflow_provider_acid.tickets import (
    INSTALL,
    TICKET_LOCK,
    TicketError,
    TicketSource,
    gssapi_library,
    kerberos_errors,
)

MECHANISM = "GSSAPI"

_AUTH, _AUTH_INT, _AUTH_CONF = 1, 2, 4
"""What a server offers: to be sure of each other only, to notice changes besides, to encrypt besides."""

_MOST_BYTES = 2**24 - 1
"""Of one frame of the server's, which the handshake has three bytes for."""


@dataclass(frozen=True)
class Kerberos:
    """Who the server is, and who the client is.

    :param principal: the server's, as ``hive.metastore.kerberos.principal`` has it; ``_HOST`` stands for its host.
    :param keytab: file with the client's key, from which tickets are got anew whenever one is needed; None for the
        tickets that the process has (``KRB5CCNAME``).
    :param client_principal: who the client is; None for whom the tickets are of.
    """

    principal: str
    keytab: str | None = None
    client_principal: str | None = None

    def server(self, host: str) -> str:
        """The principal of the server on a host."""
        return self.principal.replace("_HOST", host.lower())

    def conversation(self, host: str) -> KerberosConversation:
        """One with the server on a host.

        :raises UnusableConnectionError: there is no ticket to be had.
        """
        try:
            import thrift_sasl  # noqa: F401
        except ImportError as error:
            raise UnusableConnectionError(f"Kerberos needs packages that are missing ({error})", INSTALL) from error
        server = self.server(host)
        with _told(server, self.remedy), TICKET_LOCK:
            gssapi = gssapi_library()
            flags = gssapi.RequirementFlag
            context = gssapi.SecurityContext(
                name=gssapi.Name(server, gssapi.NameType.kerberos_principal),
                creds=self._tickets.credentials(),
                mech=gssapi.MechType.kerberos,
                flags=(
                    *(flags.mutual_authentication, flags.integrity, flags.confidentiality),
                    *(flags.replay_detection, flags.out_of_sequence_detection),
                ),
                usage="initiate",
            )
            return KerberosConversation(context, context.step() or b"", server, self.remedy)

    @property
    def remedy(self) -> str:
        """What to do where there is no ticket, or it is not believed."""
        return self._tickets.remedy

    @property
    def _tickets(self) -> TicketSource:
        return TicketSource(self.keytab, self.client_principal)


class KerberosConversation:
    """One connection's handshake and protection; a :class:`~.sasl.SaslMechanism`.

    The strongest protection that the server offers is taken: which it is, is settled there (``hadoop.rpc.protection``).

    :param context: GSSAPI's.
    :param first: token that the client begins with.
    """

    def __init__(self, context: Any, first: bytes, server: str, remedy: str) -> None:
        self._context = context
        self._first = first
        self._server = server
        self._remedy = remedy
        self._protection = _AUTH
        self._part_bytes = _MOST_BYTES

    def start(self, mechanism: str) -> tuple[bool, str, bytes]:
        """See :meth:`.sasl.SaslMechanism.start`."""
        return True, mechanism, self._first

    def step(self, challenge: bytes) -> tuple[bool, bytes]:
        """See :meth:`.sasl.SaslMechanism.step`: GSSAPI's tokens first, then the protection.

        :raises UnusableConnectionError: the server is not the one that it should be.
        """
        with _told(self._server, self._remedy):
            if not self._context.complete:
                return True, self._context.step(challenge or None) or b""
            return True, self._choose(self._context.unwrap(challenge).message)

    def _choose(self, offer: bytes) -> bytes:
        offered, most_bytes = offer[0], int.from_bytes(offer[1:4], "big")
        self._protection = next((one for one in (_AUTH_CONF, _AUTH_INT, _AUTH) if offered & one), 0)
        if not self._protection:
            raise UnusableConnectionError(f"the server offers no protection that is known ({offered})", "set its qop")
        if self._protection != _AUTH:
            self._part_bytes = self._context.get_wrap_size_limit(most_bytes, self._is_private)
        return bytes(self._context.wrap(struct.pack("!I", self._protection << 24 | _MOST_BYTES), False).message)

    @property
    def _is_private(self) -> bool:
        return self._protection == _AUTH_CONF

    def encode(self, data: bytes) -> tuple[bool, bytes]:
        """See :meth:`.sasl.SaslMechanism.encode`; in frames of no more bytes than the server takes."""
        if self._protection == _AUTH:
            return True, data
        parts = [data[start : start + self._part_bytes] for start in range(0, len(data), self._part_bytes)]
        frames = [self._context.wrap(part, self._is_private).message for part in parts]
        return True, b"".join(struct.pack("!I", len(frame)) + frame for frame in frames)

    def decode(self, data: bytes) -> tuple[bool, bytes]:
        """See :meth:`.sasl.SaslMechanism.decode`.

        :raises UnusableConnectionError: the frame was changed on its way, or is not encrypted as agreed.
        """
        with _told(self._server, "look who is between Airflow and the metastore"):
            unwrapped = self._context.unwrap(data[4:])
        if self._is_private and not unwrapped.encrypted:
            raise UnusableConnectionError("an answer is not encrypted", "look who is between Airflow and the metastore")
        return True, unwrapped.message

    def getError(self) -> str:  # noqa: N802 - the library's name
        """Errors are raised."""
        return ""


@contextmanager
def _told(server: str, remedy: str) -> Iterator[None]:
    """Errors of Kerberos in the words of connections."""
    try:
        with kerberos_errors(server):
            yield
    except TicketError as error:
        said = f"{remedy}; the server's name comes from kerberos_principal and the host"
        raise UnusableConnectionError(error.reason, error.remedy or said, is_final=error.is_final) from error
