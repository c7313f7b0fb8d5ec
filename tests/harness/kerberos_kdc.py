"""A Kerberos KDC, Debian's ``krb5-kdc``, on a loopback port, with tickets that live for seconds."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_acid.exceptions import ConfigurationError
from tests.harness.ports import HOST, free_port
from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.startable import Startable

REALM = "TEST.LOCAL"
START_SECONDS = 20
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class KerberosKdc(Startable):
    """The KDC of :data:`REALM`. Its principals' keys are random; only keytabs hold them.

    :param folder: an existing one for all that belongs to it.
    :param ticket_seconds: how long tickets are valid.
    """

    def __init__(self, folder: Path, *, ticket_seconds: int) -> None:
        self._folder = folder
        self._ticket_seconds = ticket_seconds
        self._port = free_port()
        self._group: ProcessGroup | None = None
        self.config_file = folder / "krb5.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """By which programs and libraries find this KDC and no other."""
        return {"KRB5_CONFIG": str(self.config_file), "KRB5_KDC_PROFILE": str(self._folder / "kdc.conf")}

    def start(self) -> None:
        """Makes the realm where it is missing, starts the server, and waits until its port is open."""
        if not self.config_file.exists():
            self._write_settings()
            self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", secrets.token_hex(16))
        command = [_program("krb5kdc"), "-n", "-r", REALM]
        with (self._folder / "kdc.log").open("wb") as log:
            self._group = start_group(command, self._folder, stdout=log, environment=self.environment)
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            if time.monotonic() > deadline or self._group.leader.poll() is not None:
                self.stop()
                raise RuntimeError(f"the KDC does not listen: {(self._folder / 'kdc.log').read_text()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends the server."""
        group, self._group = self._group, None
        if group is not None:
            group.end(signal.SIGTERM)

    def restart(self) -> None:
        """Starts it again with the same principals."""
        self.stop()
        self.start()

    def keytab(self, principal: str) -> Path:
        """A new keytab with the key of a principal, which is made where it is missing."""
        file = self._folder / f"{principal.replace('/', '_')}.keytab"
        if not file.exists():
            self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
            self._run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {file} {principal}")
        return file

    def ticket_cache(self, principal: str) -> Path:
        """A file with a ticket of a principal, as ``kinit`` gets it from the keytab."""
        file = self._folder / f"{principal.replace('/', '_')}.cache"
        self._run("kinit", "-k", "-t", str(self.keytab(principal)), "-c", str(file), f"{principal}@{REALM}")
        return file

    @contextmanager
    def renewed_ticket_cache(self, principal: str) -> Iterator[Path]:
        """The same file, with a new ticket three times in a ticket's life, as long as the block runs."""
        done = threading.Event()

        def renew() -> None:
            while not done.wait(self._ticket_seconds / 3):
                self.ticket_cache(principal)

        file = self.ticket_cache(principal)
        with ThreadPoolExecutor(1) as pool:
            renewing = pool.submit(renew)
            try:
                yield file
            finally:
                done.set()
                renewing.result()

    def _write_settings(self) -> None:
        (self._folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = {HOST}:{self._port}\n kdc_tcp_listen = {HOST}:{self._port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self._folder}/principal\n"
            f"  key_stash_file = {self._folder}/stash\n  acl_file = {self._folder}/acl\n"
            f"  max_life = {self._ticket_seconds}s\n  max_renewable_life = {self._ticket_seconds}s\n }}\n"
            f"[logging]\n kdc = STDERR\n"
        )
        # Nothing is looked up in a name service, and TCP alone is used: a lost datagram is asked again after a second.
        self.config_file.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = {HOST}:{self._port}\n }}\n"
            f"[domain_realm]\n localhost = {REALM}\n"
        )

    def _run(self, program: str, *arguments: str) -> None:
        environment = {**os.environ, **self.environment}
        answer = subprocess.run(
            [_program(program), *arguments], capture_output=True, text=True, check=False, env=environment
        )
        if answer.returncode != 0:
            raise RuntimeError(f"{program} failed: {answer.stdout}{answer.stderr}")

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self._port)) == 0


def _program(name: str) -> str:
    found = shutil.which(name, path=_PLACES)
    if found is None:
        raise ConfigurationError(name, "is missing", "run tools/setup-kerberos, or install krb5-kdc and krb5-user")
    return found
