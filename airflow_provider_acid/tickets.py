"""Kerberos tickets of this process, by the library ``gssapi``, which is imported when it is needed."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

INSTALL = "pip install airflow-provider-acid[kerberos]"

_KRB5 = 2_529_638_912
"""Where MIT's error numbers begin."""

_FINAL = {_KRB5 + number for number in (6, 7, 24, 141, 195)}
"""Client not known, server not known, wrong key, no such ticket, no file of tickets: nothing that passes by itself. All
else may: an expired ticket is renewed by others, a KDC that does not answer is started."""

TICKET_LOCK = threading.Lock()
"""While one thread has a ticket renewed, the cache that it shares with others is empty for a moment."""


def keytab_of_nobody(keytab: str, principal: str) -> tuple[str, str]:
    """Reason and remedy where somebody names a keytab, and not whose key is in it.

    :param keytab: how the setting with the file is called.
    :param principal: how the one with the name is.
    """
    return f"has {keytab}, but not {principal}", f"say in {principal} whose key is in it"


class TicketError(Exception):
    """Kerberos has no ticket for us, or does not believe the one that we have.

    :param remedy: None where it depends on whom the ticket is for.
    :param is_final: asking again is of no use.
    """

    def __init__(self, reason: str, remedy: str | None = None, *, is_final: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
        self.is_final = is_final


@dataclass(frozen=True)
class TicketSource:
    """Whose tickets are used, and where they come from.

    :param keytab: file with the client's key, from which tickets are got anew whenever one is needed; None for the
        tickets that the process has (``KRB5CCNAME``).
    :param client_principal: who the client is; None for whom the tickets are of.
    """

    keytab: str | None = None
    client_principal: str | None = None

    @property
    def remedy(self) -> str:
        """What to do where there is no ticket, or it is not believed."""
        if self.keytab is not None:
            return "look whether kerberos_keytab and kerberos_client_principal fit together, and the KDC answers"
        return "get a ticket for this process's user (kinit), or set kerberos_keytab and kerberos_client_principal"

    def credentials(self) -> Any:
        """GSSAPI's, with a ticket that is valid now; :data:`TICKET_LOCK` must be held.

        :raises TicketError: the keytab cannot be read.
        """
        gssapi = gssapi_library()
        who = None
        if self.client_principal is not None:
            who = gssapi.Name(self.client_principal, gssapi.NameType.kerberos_principal)
        if self.keytab is None:
            return gssapi.Credentials(name=who, usage="initiate")
        if not os.access(self.keytab, os.R_OK):
            raise TicketError(
                f"kerberos_keytab {self.keytab} cannot be read", "give a keytab that Airflow's user may read"
            )
        # The library gets a new ticket into the cache when the old one has less than half of its time.
        cache = f"MEMORY:hive_acid_{zlib.crc32(f'{self.keytab} {self.client_principal}'.encode()):08x}"
        return gssapi.Credentials(name=who, usage="initiate", store={"client_keytab": self.keytab, "ccache": cache})


def gssapi_library() -> Any:
    """The library.

    :raises TicketError: it is not installed.
    """
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise TicketError(f"Kerberos needs packages that are missing ({error})", INSTALL) from error
    return gssapi


@contextmanager
def kerberos_errors(server: str) -> Iterator[None]:
    """What GSSAPI raises, in words.

    :param server: whom the tickets are for.
    :raises TicketError: in place of its own errors, or the library is not installed.
    """
    gss_error = gssapi_library().exceptions.GSSError
    try:
        yield
    except gss_error as error:
        words = error.get_all_statuses(error.min_code, False) or error.get_all_statuses(error.maj_code, True)
        reason = f"Kerberos fails for the server {server} ({'; '.join(words)})"
        raise TicketError(reason, is_final=error.min_code in _FINAL) from error
