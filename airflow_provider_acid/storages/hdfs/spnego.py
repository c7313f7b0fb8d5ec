"""Kerberos over HTTP (SPNEGO): a NameNode asks for a ticket once, and gives a cookie for the calls that follow."""

from __future__ import annotations

from typing import Any

from airflow_provider_acid.tickets import TICKET_LOCK, TicketError, TicketSource, kerberos_errors


def spnego(tickets: TicketSource) -> Any:
    """How a session of ``requests`` answers servers that ask: by a ticket that is valid then, or by a `TicketError`.

    That the server is the right one is TLS's to show: the answers to a cookie say nothing of it.

    :raises ImportError: the library is not installed.
    """
    from requests_gssapi import HTTPSPNEGOAuth
    from requests_gssapi.exceptions import SPNEGOExchangeError

    class Spnego(HTTPSPNEGOAuth):  # type: ignore[misc]
        def generate_request_header(self, response: Any, host: str, is_preemptive: bool = False) -> str:
            try:
                with kerberos_errors(f"HTTP/{host}"), TICKET_LOCK:
                    self.creds = tickets.credentials()
                    return str(super().generate_request_header(response, host, is_preemptive))
            except SPNEGOExchangeError as error:
                raise TicketError(f"Kerberos fails for the server HTTP/{host} ({error})", is_final=False) from error

    return Spnego()
