"""A connection to a metastore inside TLS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from thrift.transport.TTransport import TTransportException

from airflow_provider_acid.metastore.thrift.binary_protocol import UnusableConnectionError
from airflow_provider_acid.metastore.thrift.transport import CallSocket, MetastoreAddress

_NAME_MISMATCH = (62, 64)
"""OpenSSL's numbers for a certificate that is for other host names, or other addresses."""

_ITS_CERTIFICATE = (
    "where it asks for a client's certificate, set tls_certificate_file and tls_key_file in the connection's extra"
)

_NO_PASSWORD = ""
"""Without one OpenSSL would ask the terminal for it."""


@dataclass(frozen=True)
class Tls:
    """Whom a client trusts, and what it shows of itself. The server's name is always checked.

    The files are read anew for each connection, so that renewed certificates count at once.

    :param ca_file: PEM file with the certificates of authorities to trust; None for those of the operating system.
    :param certificate_file: PEM file with the client's own certificate, for a server that asks for one.
    :param key_file: PEM file with its key, without a password; None where it is in ``certificate_file``.
    """

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None

    def context(self) -> ssl.SSLContext:
        """What Python needs to know of it.

        :raises UnusableConnectionError: a file cannot be read, or holds something else.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise _unusable_file("tls_ca_file", self.ca_file, error, "a PEM file with certificates") from error
        if self.certificate_file is not None:
            try:
                context.load_cert_chain(self.certificate_file, self.key_file, _NO_PASSWORD)
            except OSError as error:
                files = f"{self.certificate_file} with tls_key_file {self.key_file}"
                content = "PEM files with a certificate and its key, which has no password"
                raise _unusable_file("tls_certificate_file", files, error, content) from error
        return context


class TlsSocket(CallSocket):
    """A socket inside TLS, with the same limits for a call.

    :param tls: whom to trust.
    """

    def __init__(self, address: MetastoreAddress, timeout_seconds: float, tls: Tls) -> None:
        super().__init__(address, timeout_seconds)
        self._tls = tls
        self._was_answered = False

    def open(self) -> None:
        """Connect, shake hands, and look whether it is the right server.

        :raises TTransportException: the server cannot be reached; as :class:`UnusableConnectionError` where it is, but
            is none to be talked to in this way.
        """
        context = self._tls.context()
        super().open()
        try:
            self.setHandle(context.wrap_socket(self.handle, server_hostname=self.host))
        except TimeoutError as error:
            raise self._too_late() from error
        except OSError as error:
            raise _failed_handshake(error) from error

    def isOpen(self) -> bool:  # noqa: N802 - Thrift's name
        """Whether the connection still stands; between two calls the server has nothing to say."""
        if self.handle is None:
            return False
        self.handle.settimeout(0)
        try:
            self.handle.recv(1)
        except ssl.SSLWantReadError:
            return True
        except OSError:
            return False
        return False

    def read(self, size: int) -> bytes:
        """See :meth:`CallSocket.read`; since TLS 1.3 a server refuses a client's certificate only now."""
        try:
            data = super().read(size)
        except TTransportException as error:
            raise self._refusal(error) or error from error
        self._was_answered = True
        return data

    def write(self, data: bytes) -> None:
        """See :meth:`CallSocket.write`, and :meth:`read`."""
        try:
            super().write(data)
        except TTransportException as error:
            raise self._refusal(error) or error from error

    def _refusal(self, error: TTransportException) -> UnusableConnectionError | None:
        cause = error.inner
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError):
            return _failed_handshake(cause)
        if self._was_answered or error.type == TTransportException.TIMED_OUT:
            return None
        return UnusableConnectionError(
            f"the server hung up without an answer inside TLS ({cause or error})",
            f"look at the metastore's log; {_ITS_CERTIFICATE}; where it has Kerberos, set kerberos_principal there",
            is_final=False,
        )


def _failed_handshake(error: OSError) -> UnusableConnectionError:
    """What the server does instead of proving who it is."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _NAME_MISMATCH:
            return UnusableConnectionError(
                f"the certificate is another host's ({error.verify_message})",
                "call the metastore by a name that its certificate has",
            )
        return UnusableConnectionError(
            f"the certificate is not trusted ({error.verify_message})",
            "set tls_ca_file in the connection's extra to a PEM file with the certificate of the authority that signed "
            "it, or renew the certificate",
        )
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        if "ALERT" in (error.reason or ""):
            return UnusableConnectionError(
                f"the server refuses this client's TLS ({error.reason})",
                f"look at the metastore's log; {_ITS_CERTIFICATE}",
            )
        return UnusableConnectionError(
            f"this port does not speak TLS ({error.reason})",
            "name the port of a metastore that does, or take tls out of the connection's extra",
        )
    # A server that is just being stopped does the same.
    return UnusableConnectionError(
        f"the server hung up instead of speaking TLS ({error}), as ports do that speak plain Thrift",
        "take tls out of the connection's extra where the metastore has none (metastore.use.SSL=false); else look at "
        "its log",
        is_final=False,
    )


def _unusable_file(setting: str, path: str | None, error: OSError, content: str) -> UnusableConnectionError:
    reason = error.strerror or str(error)
    return UnusableConnectionError(
        f"{setting} {path} cannot be used ({reason})", f"give {content}, which Airflow's user may read"
    )
