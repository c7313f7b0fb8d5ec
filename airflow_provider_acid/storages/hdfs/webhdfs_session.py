"""The border to fsspec and requests, which come without types: one request in, one answer or one error out.

fsspec's WebHDFS class does what differs from site to site (tokens, TLS, on whose behalf); the calls are not its own,
because it drops the kind of an error, follows redirects itself, knows no time-out and renames unchecked.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from airflow_provider_acid.exceptions import ConfigurationError
from airflow_provider_acid.storages.hdfs.delegation import given_token
from airflow_provider_acid.storages.hdfs.options import HdfsOptions
from airflow_provider_acid.storages.hdfs.spnego import spnego
from airflow_provider_acid.tickets import TicketError, TicketSource

_TOKEN = "delegation"
CONNECT_SECONDS = 10.0
"""Longest wait for a connection; a NameNode that is off the network must not hold up its standby."""


@dataclass(frozen=True)
class Answer:
    """What a server answered; redirects are not followed."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class NoAnswerError(Exception):
    """A server could not be asked, or its answer did not arrive; in the latter case the call may have been done.

    :param remedy: what can be done about it.
    :param is_final: asking again is of no use.
    """

    def __init__(self, url: str, reason: str, remedy: str, is_final: bool = False) -> None:
        super().__init__(f"{server_of(url)}: {reason}")
        self.remedy = remedy
        self.is_final = is_final


class WebHdfsSession:
    """Connections to one NameNode and to the DataNodes it names; for one thread at a time.

    :param url: ``http://host:port`` of the NameNode.
    :raises ConfigurationError: a package is missing.
    """

    def __init__(self, url: str, options: HdfsOptions) -> None:
        file_system = _file_system(url, options, _token(url, options) if options.kerberos else None)
        self._url: str = file_system.url
        self._parameters: dict[str, str] = file_system.pars
        self._session = file_system.session
        if options.kerberos and _TOKEN not in self._parameters:
            self._session.auth = _spnego(url, options)
        # The length of an answer is checked, so it must be that of the file's bytes.
        self._session.headers["Accept-Encoding"] = "identity"
        self._options = options
        self._settings: dict[str, Mapping[str, Any]] = {}
        self._timeouts = (min(CONNECT_SECONDS, options.timeout_seconds), options.timeout_seconds)

    def call(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        """Ask the NameNode something about a path.

        :raises NoAnswerError: no whole answer came.
        """
        return self.send(method, f"{self._url}{quote(path)}?{urlencode({**parameters, **self._parameters})}", None)

    def send(self, method: str, url: str, body: bytes | Iterator[bytes] | None) -> Answer:
        """Send a request as it is, for example where a NameNode pointed to.

        :raises NoAnswerError: no whole answer came.
        """
        import requests

        try:
            answer = self._session.send(
                self._prepared(method, url, body),
                allow_redirects=False,
                timeout=self._timeouts,
                **self._settings_of(server_of(url)),
            )
        # Below it Python's reads as many bytes as a server says, be it less than none.
        except (requests.RequestException, ValueError, OverflowError) as error:
            # The library's own words hold the whole URL, with the token in it.
            raise _no_answer(url, error) from None
        except TicketError as error:
            remedy = error.remedy or f"{_tickets(self._options).remedy} in the HDFS options"
            raise NoAnswerError(url, error.reason, remedy, error.is_final) from error
        return Answer(answer.status_code, answer.headers, answer.content)

    def _prepared(self, method: str, url: str, body: bytes | Iterator[bytes] | None) -> Any:
        """A request of ours as the library would prepare it, which takes it longer than to send it.

        URLs are ours or a server's, so that nothing in them needs quoting, and nobody's ``.netrc`` is asked.
        """
        from requests import PreparedRequest

        request = PreparedRequest()
        request.method, request.url, request.hooks = method, url, {"response": []}
        request.headers = self._session.headers.copy()
        if body is not None:
            request.headers["Content-Type"] = "application/octet-stream"
        request.prepare_cookies(self._session.cookies)
        request.prepare_body(body, None)
        if self._session.auth is not None:
            request.prepare_auth(self._session.auth)
        return request

    def _settings_of(self, server: str) -> Mapping[str, Any]:
        """What the environment says of a server (proxies, certificates to trust); looked up once."""
        if server not in self._settings:
            # Of a session's own the library thinks less than of REQUESTS_CA_BUNDLE in the environment.
            verify = self._options.ca_file
            self._settings[server] = self._session.merge_environment_settings(server, {}, None, verify, None)
        return self._settings[server]

    def close(self) -> None:
        """Close the connections."""
        self._session.close()


def server_of(url: str) -> str:
    """``http://host:port`` of a URL; what follows may hold a token."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _file_system(url: str, options: HdfsOptions, token: str | None) -> Any:
    parts = urlsplit(url)
    try:
        from fsspec.implementations.webhdfs import WebHDFS

        return WebHDFS(
            f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname,
            port=parts.port,
            token=token,
            user=None if options.kerberos else options.user or _own_name(),
            proxy_to=None if token else options.proxy_user,
            use_https=parts.scheme == "https",
            skip_instance_cache=True,
        )
    except ImportError as error:
        raise _missing_package(url, error, "hdfs") from error


def _token(url: str, options: HdfsOptions) -> str | None:
    """What YARN gave this process for the HDFS, where it gave anything.

    :raises ConfigurationError: it is none for this HDFS, or somebody else's than we act for.
    """
    hosts = {urlsplit(f"//{name}").hostname or "" for name in options.authorities} | {urlsplit(url).hostname or ""}
    token = given_token(hosts, options.authorities)
    # A NameNode heeds no doas beside a token, and says nothing.
    if token is not None and options.proxy_user not in (None, token.user):
        raise ConfigurationError(
            url,
            f"is to be worked on as {options.proxy_user}, but the delegation token is {token.user}'s",
            f"submit the Spark application as {options.proxy_user} (proxy user), or leave proxy_user out",
        )
    return None if token is None else token.url_form


def _tickets(options: HdfsOptions) -> TicketSource:
    return TicketSource(options.kerberos_keytab, options.kerberos_client_principal)


def _spnego(url: str, options: HdfsOptions) -> Any:
    try:
        return spnego(_tickets(options))
    except ImportError as error:
        raise _missing_package(url, error, "hdfs,kerberos") from error


def _missing_package(url: str, error: ImportError, extra: str) -> ConfigurationError:
    reason = f"cannot be reached without the package {error.name}"
    return ConfigurationError(url, reason, f"pip install airflow-provider-acid[{extra}]")


def _own_name() -> str:
    """As every client of Hadoop; without a name the NameNode would take us for ``dr.who``."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def _no_answer(url: str, error: Exception) -> NoAnswerError:
    import requests
    from urllib3.exceptions import NameResolutionError, NewConnectionError

    cause = getattr(error.args[0], "reason", error.args[0]) if error.args else error
    if isinstance(error, requests.exceptions.SSLError):
        remedy = "set tls and ca_file of the HDFS options as the servers' certificates need it"
        return NoAnswerError(url, f"TLS fails ({cause})", remedy, is_final=True)
    if isinstance(cause, NameResolutionError):
        return NoAnswerError(url, "its host name is unknown here", "correct web_addresses, or the name service")
    if isinstance(error, requests.ConnectTimeout):
        return NoAnswerError(url, "does not take connections in time", "see whether it runs and a firewall lets us in")
    if isinstance(cause, NewConnectionError):
        return NoAnswerError(url, "refuses connections", "see whether it runs, and that web_addresses name its port")
    if isinstance(error, requests.Timeout):
        return NoAnswerError(url, "does not answer in time", "see how it is, or raise timeout_seconds")
    return NoAnswerError(
        url, f"the connection broke ({_short(cause)})", "see the server's log, and whether tls is set as it needs"
    )


def _short(cause: object) -> str:
    return str(cause)[:200]
