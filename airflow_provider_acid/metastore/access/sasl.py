"""A conversation inside SASL, by Thrift's framing of it."""

from __future__ import annotations

from typing import Protocol

from thrift.transport.TTransport import TTransportException
from thrift_sasl import TSaslClientTransport

from airflow_provider_acid.metastore.thrift.binary_protocol import UnusableConnectionError
from airflow_provider_acid.metastore.thrift.transport import CallSocket


class SaslMechanism(Protocol):
    """One client's side of a handshake, and of what is agreed there; by ``thrift_sasl``'s names.

    Each answer begins with whether it went well.
    """

    def start(self, mechanism: str) -> tuple[bool, str, bytes]:
        """The mechanism's name, and what to say first."""

    def step(self, challenge: bytes) -> tuple[bool, bytes]:
        """What to say to the server's challenge."""

    def encode(self, data: bytes) -> tuple[bool, bytes]:
        """What to send: frames with their lengths, or the very ``data`` where nothing is protected."""

    def decode(self, data: bytes) -> tuple[bool, bytes]:
        """What is in a frame with its length."""

    def getError(self) -> str:  # noqa: N802 - the library's name
        """What did not go well."""


class SaslCalls(TSaslClientTransport):  # type: ignore[misc]
    """What is sent and read goes through a mechanism; a flush sends a call.

    :param name: of the mechanism.
    :param setting: what of the connection asks for it.
    :param remedy: what to do where the server refuses the client.
    """

    def __init__(self, calls: CallSocket, name: str, mechanism: SaslMechanism, setting: str, remedy: str) -> None:
        super().__init__(lambda: mechanism, name, calls)
        self._calls = calls
        self._name = name
        self._setting = setting
        self._remedy = remedy

    def open(self) -> None:
        """Connect and shake hands.

        :raises TTransportException: the server cannot be reached; as :class:`UnusableConnectionError` where it is, but
            does not want this client, or something else than SASL.
        """
        self._calls.open()
        try:
            super().open()
        except UnusableConnectionError:
            raise
        except TTransportException as error:
            raise self._refusal(error) from error

    def flush(self) -> None:
        """Send a call, whose time begins now."""
        self._calls.begin_call()
        super().flush()

    def _refusal(self, error: TTransportException) -> UnusableConnectionError:
        if error.type == TTransportException.NOT_OPEN:
            return UnusableConnectionError(
                f"the server refuses this client's SASL with {self._name} ({error.message})",
                f"{self._remedy}; look at the metastore's log",
                is_final="nsupported mechanism" in str(error.message),
            )
        # Plain Thrift takes the handshake for the begin of a long name: it hangs up, or waits for the rest.
        return UnusableConnectionError(
            f"no answer to the SASL handshake ({error.message}), as from ports that speak plain Thrift",
            "look whether the metastore asks for SASL (metastore.sasl.enabled, metastore.authentication); if not, take "
            f"{self._setting} out of the connection",
            is_final=False,
        )
