"""The same HDFS with Kerberos, over HTTPS alone: whoever has no ticket and no delegation token is sent away."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import requests

from airflow_provider_acid.storages.hdfs.spnego import spnego
from airflow_provider_acid.tickets import TicketSource
from tests.harness.certificates import KEYSTORE_PASSWORD, CertificateAuthority
from tests.harness.hdfs_server import HOST, START_SECONDS, HdfsServer, write_settings
from tests.harness.java import find_java
from tests.harness.kerberos_kdc import REALM, KerberosKdc

SUPERUSER = "hdfs"

_FETCHER = "org.apache.hadoop.hdfs.tools.DelegationTokenFetcher"


class KerberosHdfs(HdfsServer):
    """Its superuser is :data:`SUPERUSER`, who may act for any other.

    :param kdc: whose tickets are believed.
    :param authority: signed the certificate of the web servers.
    :param actors: others who may act for any other.
    :param renewal_seconds: so long a delegation token is good, until its renewer renews it.
    """

    def __init__(
        self,
        folder: Path,
        kdc: KerberosKdc,
        authority: CertificateAuthority,
        *,
        actors: Sequence[str],
        renewal_seconds: int,
    ) -> None:
        super().__init__(folder)
        self._kdc = kdc
        self._authority = authority
        self._actors = actors
        self._renewal_seconds = renewal_seconds
        self.superuser = SUPERUSER

    @property
    def web_address(self) -> str:
        """``https://host:port`` of the NameNode."""
        return f"https://{HOST}:{self.web_port}"

    @property
    def client_settings(self) -> dict[str, dict[str, str]]:
        """Of clients in Java, by the name of their file."""
        settings = super().client_settings
        kerberos = {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            # Default 60: tickets of the tests live for seconds.
            "hadoop.kerberos.min.seconds.before.relogin": "1",
        }
        names = {"dfs.namenode.kerberos.principal": _principal(SUPERUSER), "dfs.data.transfer.protection": "integrity"}
        return {
            "core-site": {**settings["core-site"], **kerberos},
            "hdfs-site": {**settings["hdfs-site"], **names, "dfs.block.access.token.enable": "true"},
        }

    def _core_settings(self) -> dict[str, str]:
        return {
            **super()._core_settings(),
            **self._acting,
            "hadoop.http.filter.initializers": "org.apache.hadoop.hdfs.web.AuthFilterInitializer",
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": _principal("HTTP"),
            "hadoop.http.authentication.kerberos.keytab": self._keytab("HTTP"),
        }

    def _hdfs_settings(self) -> dict[str, str]:
        return {
            **super()._hdfs_settings(),
            **self.client_settings["hdfs-site"],
            "dfs.namenode.keytab.file": self._keytab(SUPERUSER),
            "dfs.datanode.kerberos.principal": _principal(SUPERUSER),
            "dfs.datanode.keytab.file": self._keytab(SUPERUSER),
            "dfs.web.authentication.kerberos.principal": _principal("HTTP"),
            "dfs.web.authentication.kerberos.keytab": self._keytab("HTTP"),
            "dfs.namenode.delegation.token.renew-interval": str(self._renewal_seconds * 1000),
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.namenode.https-address": f"{HOST}:{self.web_port}",
            "dfs.datanode.https.address": self.datanode_web_address.removeprefix("http://"),
            # Else a DataNode wants ports that only root may open, or TLS.
            "ignore.secure.ports.for.testing": "true",
        }

    def yarn_settings(self) -> dict[str, str]:
        """Of a YARN beside it, whose servers have tickets, too."""
        own = {"principal": _principal("yarn"), "keytab": self._keytab("yarn")}
        servers = {f"yarn.{server}.{name}": own[name] for server in ("resourcemanager", "nodemanager") for name in own}
        return {**servers, **self._acting}

    @property
    def _acting(self) -> dict[str, str]:
        return {f"hadoop.proxyuser.{actor}.{what}": "*" for actor in self._actors for what in ("hosts", "users")}

    def _write_settings(self) -> None:
        super()._write_settings()
        keystore = {
            "ssl.server.keystore.location": str(self._authority.keystore(HOST)),
            "ssl.server.keystore.password": KEYSTORE_PASSWORD,
            "ssl.server.keystore.keypassword": KEYSTORE_PASSWORD,
        }
        write_settings(self._server_configuration, {"ssl-server": keystore}, "INFO")

    def _keytab(self, service: str) -> str:
        return str(self._kdc.keytab(f"{service}/{HOST}"))

    @property
    def java_options(self) -> list[str]:
        """Of each program of Hadoop that is to work with this HDFS."""
        return [f"-Djava.security.krb5.conf={self._kdc.config_file}"]

    def fetch_token(self, user: str, file: Path) -> None:
        """Writes the file of tokens that a container of the user's application would have."""
        self._run_fetcher(user, "--renewer", f"{user}@{REALM}", str(file))

    def cancel_tokens(self, user: str, file: Path) -> None:
        """Ends the tokens in a file, which are the user's or renewed by him, as their last day would."""
        self._run_fetcher(user, "--cancel", str(file))

    def _run_fetcher(self, user: str, *arguments: str) -> None:
        environment = {**os.environ, **self._kdc.environment, "KRB5CCNAME": str(self._kdc.ticket_cache(user))}
        command = [str(find_java()), *self.java_options, "-cp", self.class_path, _FETCHER, *arguments]
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)

    def make_directory(self, uri: str, owner: str) -> None:
        """Makes a directory of a user's, its parents too."""
        place = f"{self.web_address}/webhdfs/v1{uri.removeprefix(self.uri)}"
        self._ask("PUT", f"{place}?op=MKDIRS")
        self._ask("PUT", f"{place}?op=SETOWNER&owner={owner}")

    def _get(self, url: str) -> bytes:
        return self._ask("GET", url)

    def _ask(self, method: str, url: str) -> bytes:
        tickets = TicketSource(str(self._kdc.keytab(SUPERUSER)), f"{SUPERUSER}@{REALM}")
        answer = requests.request(
            method,
            url,
            auth=spnego(tickets),
            timeout=START_SECONDS,
            allow_redirects=False,
            verify=str(self._authority.file),
        )
        answer.raise_for_status()
        return answer.content


def _principal(service: str) -> str:
    return f"{service}/{HOST}@{REALM}"
