"""What stands in the extra of a connection to a metastore, and what it says of access."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.hooks.connection_form import FIELDS
from airflow_provider_acid.metastore.access.access import MetastoreAccess
from airflow_provider_acid.metastore.access.http import DEFAULT_PATH, Http
from airflow_provider_acid.metastore.access.jwt import Jwt
from airflow_provider_acid.metastore.access.kerberos import Kerberos
from airflow_provider_acid.metastore.access.password import Password
from airflow_provider_acid.metastore.access.tls import Tls
from airflow_provider_acid.tickets import keytab_of_nobody

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

_PRINCIPAL = re.compile(r"[^/@\s]+/[^/@\s]+(@[^/@\s]+)?")
_VISIBLE = re.compile(r"[!-~]+")
"""What may stand in the lines of HTTP."""


@dataclass(frozen=True)
class ConnectionExtra:
    """The fields of a connection's extra, and who the client is.

    :param subject: the connection, for errors.
    :param values: by name.
    :param password: with its user, from the connection's own fields.
    :param jwt: from the connection's password, where the metastore speaks HTTP.
    """

    subject: str
    values: Mapping[str, object]
    password: Password | None = None
    jwt: Jwt | None = None

    @classmethod
    def of(cls, connection: Connection) -> ConnectionExtra:
        """That of a connection of type ``hive_acid``; errors as for :meth:`checked`.

        :raises ConfigurationError: there is one of login and password.
        """
        login, password = connection.login, connection.password
        known = Password(login, password) if login and password else None
        extra = cls.checked(f"connection {connection.conn_id}", connection.extra_dejson, known)
        if password and extra.flag("http"):
            return replace(extra, jwt=Jwt(password))
        if known is None and (login or password):
            present, missing = ("login", "password") if login else ("password", "login")
            raise extra.wrong(f"has a {present}, but no {missing}", "enter both, or neither")
        return extra

    @classmethod
    def checked(cls, subject: str, values: Mapping[str, object], password: Password | None = None) -> ConnectionExtra:
        """Fields that somebody wrote.

        :raises ConfigurationError: a name there is none of the form's: misspelt it would change nothing, and nobody
            would know.
        """
        extra = cls(subject, values, password)
        for name in values:
            if name not in FIELDS:
                nearest = get_close_matches(name, FIELDS, n=1)
                remedy = f"write {nearest[0]}, or take it out" if nearest else f"take it out; {', '.join(FIELDS)} are"
                raise extra.wrong(f"{name} in its extra is no field", remedy)
        return extra

    def wrong(self, reason: str, remedy: str) -> ConfigurationError:
        """The error that says so of the connection."""
        return ConfigurationError(self.subject, reason, remedy)

    def text(self, name: str) -> str | None:
        """A field's text; None where it is missing or empty."""
        value = self.values.get(name)
        return None if value in (None, "") else str(value)

    def flag(self, name: str) -> bool:
        """A field that is true or false; false where it is missing or empty.

        :raises ConfigurationError: it is neither.
        """
        value = self.values.get(name)
        words = {"": False, "none": False, "false": False, "true": True}
        flag = words.get(str(value).strip().lower())
        if flag is None:
            raise self.wrong(f"{name} is {value!r}", "give true or false")
        return flag

    def access(self) -> MetastoreAccess:
        """How the metastore is to be talked to.

        :raises ConfigurationError: fields do not fit together.
        """
        kerberos = self._kerberos()
        if kerberos is not None and self.password is not None:
            raise self.wrong(
                "has both kerberos_principal and a password", "leave out what the metastore does not ask for"
            )
        http = self._http()
        if http is not None and kerberos is not None:
            raise self.wrong("has both http and kerberos_principal", "leave out what the metastore does not ask for")
        if http is not None and self.password is not None:
            raise self.wrong("has http and a login", "leave the login empty: it is in the JWT, the password")
        return MetastoreAccess(self._tls(), kerberos, self.password, http)

    def _http(self) -> Http | None:
        file, path, user = self.text("jwt_file"), self.text("http_path"), self.text("user")
        if not self.flag("http"):
            if file is not None or path is not None:
                unused = "http_path" if file is None else "jwt_file"
                raise self.wrong(f"has {unused}, but not http", "set http to true, or take it out")
            return None
        if file is not None and self.jwt is not None:
            raise self.wrong("has both jwt_file and a password", "leave one of them out")
        for name, value in (("http_path", path), ("user", user)):
            if value is not None and not _VISIBLE.fullmatch(value):
                raise self.wrong(f"{name} is {value!r}", "HTTP takes visible characters of ASCII only")
        return Http(path or DEFAULT_PATH, self.jwt if file is None else Jwt(file=file), user)

    def _tls(self) -> Tls | None:
        files = {name: self.text(f"tls_{name}") for name in ("ca_file", "certificate_file", "key_file")}
        if not self.flag("tls"):
            unused = [f"tls_{name}" for name, file in files.items() if file is not None]
            if unused:
                raise self.wrong(f"has {unused[0]}, but not tls", "set tls to true, or take it out")
            return None
        if files["key_file"] is not None and files["certificate_file"] is None:
            raise self.wrong("has tls_key_file, but not tls_certificate_file", "give both, or neither")
        return Tls(**files)

    def _kerberos(self) -> Kerberos | None:
        principal = self.text("kerberos_principal")
        keytab, client = self.text("kerberos_keytab"), self.text("kerberos_client_principal")
        if principal is None:
            unused = "kerberos_keytab" if keytab is not None else "kerberos_client_principal"
            if keytab is not None or client is not None:
                raise self.wrong(
                    f"has {unused}, but not kerberos_principal", "set that of the metastore, or take it out"
                )
            return None
        if not _PRINCIPAL.fullmatch(principal):
            raise self.wrong(f"kerberos_principal is {principal!r}", "write it like hive/_HOST@EXAMPLE.ORG")
        if keytab is not None and client is None:
            raise self.wrong(*keytab_of_nobody("kerberos_keytab", "kerberos_client_principal"))
        return Kerberos(principal, keytab, client)
