"""An object store that speaks Amazon's S3 protocol: MinIO, built from the Go module proxy, or moto where Go is missing.

MinIO checks signatures, expiry and permissions as Amazon does; moto believes everybody.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from airflow_provider_acid.exceptions import ConfigurationError
from tests.harness.ports import HOST, free_port
from tests.harness.process_group import ProcessGroup, start_group
from tests.harness.startable import Startable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MINIO_MODULE = "github.com/minio/minio"
MINIO_VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
"""The newest of 2026-02; ``go list -m github.com/minio/minio@latest`` names newer ones."""

REGION = "us-east-1"
START_SECONDS = 60
BUILD_SECONDS = 1800


@dataclass(frozen=True)
class S3Key:
    """An access key of the server.

    :param access_key: its public part.
    :param secret_key: its secret part.
    :param session_token: of a temporary key.
    """

    access_key: str
    secret_key: str
    session_token: str | None = None


class S3Server(Startable):
    """One server on a free port of the loopback interface; it never outlives this Python process.

    :param folder: of everything that belongs to it; made where it is missing.
    :param minio: the MinIO program; None for moto.
    """

    def __init__(self, folder: Path, minio: Path | None) -> None:
        self.folder = folder.resolve()
        self.port = free_port()
        self.region = REGION
        self.key = S3Key("test" + secrets.token_hex(6), secrets.token_hex(16))
        self._minio = minio
        self._group: ProcessGroup | None = None
        self._buckets = 0

    @property
    def endpoint(self) -> str:
        """``http://host:port``."""
        return f"http://{HOST}:{self.port}"

    @property
    def checks_signatures(self) -> bool:
        """Whether a wrong key or an expired request is refused, as Amazon does."""
        return self._minio is not None

    def client(self, key: S3Key | None = None) -> S3Client:
        """A boto3 client with the server's own key, which may do everything, or another one."""
        import boto3
        from botocore.config import Config

        used = key or self.key
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=used.access_key,
            aws_secret_access_key=used.secret_key,
            aws_session_token=used.session_token,
            config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}),
        )
        return cast("S3Client", client)

    def temporary_key(self, policy: str) -> S3Key:
        """A key for an hour.

        :param policy: the JSON of a policy that says what it may do.
        """
        import boto3

        service = boto3.client(
            "sts",
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.key.access_key,
            aws_secret_access_key=self.key.secret_key,
        )
        role = "arn:aws:iam::123456789012:role/any"
        made = service.assume_role(RoleArn=role, RoleSessionName="tests", Policy=policy)["Credentials"]
        return S3Key(made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])

    def bucket(self) -> str:
        """A fresh, empty bucket's name."""
        self._buckets += 1
        name = f"bucket-{self._buckets:04d}"
        self.client().create_bucket(Bucket=name)
        return name

    def start(self) -> None:
        """Starts the server and waits until it answers.

        :raises RuntimeError: it ended, or does not answer within ``START_SECONDS``; nothing is left running.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {
            "MINIO_ROOT_USER": self.key.access_key,
            "MINIO_ROOT_PASSWORD": self.key.secret_key,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "HOME": str(self.folder),
        }
        with self.log_file.open("ab") as log:
            self._group = start_group(self._command(), self.folder, stdout=log, environment=environment)
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the server; nothing happens where it does not run."""
        group, self._group = self._group, None
        if group is not None:
            group.end(signal.SIGTERM)

    def suspend(self) -> None:
        """Stops it without ending it: it takes connections and says nothing."""
        assert self._group is not None
        os.killpg(self._group.leader.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on."""
        assert self._group is not None
        os.killpg(self._group.leader.pid, signal.SIGCONT)

    @property
    def log_file(self) -> Path:
        """What the server wrote."""
        return self.folder / "server.log"

    def _command(self) -> Sequence[str]:
        if self._minio is None:
            return [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(self.port)]
        address, console = f"{HOST}:{self.port}", f"{HOST}:{free_port()}"
        data = str(self.folder / "data")
        return [str(self._minio), "server", "--quiet", "--address", address, "--console-address", console, data]

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            ended = self._group is None or self._group.leader.poll() is not None
            if ended or time.monotonic() > deadline:
                tail = " | ".join(self.log_file.read_text(errors="replace").splitlines()[-5:])
                raise RuntimeError(f"the S3 server does not answer on port {self.port}: {tail}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        path = "/minio/health/ready" if self._minio else "/"
        try:
            with urllib.request.urlopen(self.endpoint + path, timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def has_minio() -> bool:
    """Whether MinIO is cached or can be built; moto takes its place where not."""
    return _cached_program().exists() or shutil.which("go") is not None


def minio_program() -> Path | None:
    """The MinIO program, built into a cache where it is not there yet; None where Go is not installed.

    Go's own caches are thrown away after it: they take 3 GB, the program 100 MB. It takes some minutes.

    :raises RuntimeError: it cannot be built.
    """
    program = _cached_program()
    go = shutil.which("go")
    if program.exists():
        return program
    if go is None:
        _check_moto()
        return None
    program.parent.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent.parent, prefix=".build-") as temporary:
        _build_minio(go, Path(temporary))
        program.parent.mkdir(exist_ok=True)
        os.replace(Path(temporary, "bin", "minio"), program)
    return program


def _cached_program() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "airflow-provider-acid" / f"minio-{MINIO_VERSION}" / "minio"


def _build_minio(go: str, folder: Path) -> None:
    environment = {
        **os.environ,
        "GOPATH": str(folder / "path"),
        "GOCACHE": str(folder / "cache"),
        "GOBIN": str(folder / "bin"),
        "GOFLAGS": "-modcacherw",
        "CGO_ENABLED": "0",
    }
    command = [go, "install", "-trimpath", "-ldflags=-s -w", f"{MINIO_MODULE}@{MINIO_VERSION}"]
    done = subprocess.run(
        command,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} fails with {done.returncode}: {done.stderr[-1000:]}")


def _check_moto() -> None:
    if importlib.util.find_spec("moto") is None:
        raise ConfigurationError("the S3 server of the tests", "has neither Go nor moto", "pip install .[dev]")
