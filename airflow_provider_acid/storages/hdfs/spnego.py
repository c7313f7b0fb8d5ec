"""Kerberos over HTTP (SPNEGO): a NameNode asks for a ticket once, and gives a cookie for the calls that follow."""

from __future__ import annotations

from typing import Any

from requests_gssapi import HTTPSPNEGOAuth
from requests_gssapi.exceptions import SPNEGOExchangeError

from airflow_provider_acid.tickets import TICKET_LOCK, TicketError, TicketSource, kerberos_errors


class Spnego(HTTPSPNEGOAuth):  # type: ignore[misc]
    """The library's, with a ticket that is valid when the server asks, and errors that are raised.

    :param tickets: where tickets come from.
    """

    def __init__(self, tickets: TicketSource) -> None:
        # That the server is the right one is TLS's to show: the cookie's answers say nothing of it.
        super().__init__()
        self._tickets = tickets

    def generate_request_header(self, response: Any, host: str, is_preemptive: bool = False) -> str:
        """What to answer a server that asks.

        :raises TicketError: there is no ticket for it.
        """
        try:
            with kerberos_errors(f"HTTP/{host}"), TICKET_LOCK:
                self.creds = self._tickets.credentials()
                return str(super().generate_request_header(response, host, is_preemptive))
        except SPNEGOExchangeError as error:
            raise TicketError(f"Kerberos fails for the server HTTP/{host} ({error})", is_final=False) from error
