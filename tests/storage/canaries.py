"""Secrets that are found wherever they turn up: looked for in all that a chain of tasks leaves, while it runs."""

from __future__ import annotations

import stat
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from typing_extensions import Self

from airflow_provider_acid.compaction.run.application import KEY_FILE

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PAUSE_SECONDS = 0.25
RUN_KEY = "key of the run"


class CanaryWatch:
    """Looks at command lines, files and objects until its block ends, and once more then.

    The key of a run is a canary, too, from the moment at which its file is found.

    :param canaries: secrets by what they are.
    :param folder: of files; each is looked at whenever it has changed.
    :param bucket: of objects; each is looked at whenever it has changed.
    :ivar found: which canary was seen where.
    :ivar seen: the names of all that was looked at: files and objects, and command lines as a whole.
    :ivar modes: of the files.
    """

    def __init__(self, canaries: Mapping[str, str], folder: Path, client: S3Client, bucket: str) -> None:
        self.found: set[tuple[str, str]] = set()
        self.seen: set[str] = set()
        self.modes: dict[str, int] = {}
        self._canaries = {name: secret.encode() for name, secret in canaries.items()}
        self._folder = folder
        self._client = client
        self._bucket = bucket
        self._versions: dict[str, object] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._thread.join()
        self._look()

    def look_at(self, where: str, content: bytes) -> None:
        """Remember which canaries are there."""
        self.seen.add(where)
        self.found |= {(name, where) for name, secret in self._canaries.items() if secret in content}

    def _watch(self) -> None:
        while not self._ends.wait(PAUSE_SECONDS):
            self._look()

    def _look(self) -> None:
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                line = process.read_bytes()
                self.look_at(line.replace(b"\0", b" ").decode(errors="replace"), line)
        for path in self._folder.rglob("*"):
            with suppress(OSError):
                self._look_at_file(path)
        for entry in self._client.list_objects_v2(Bucket=self._bucket).get("Contents", ()):
            if self._is_new(entry["Key"], entry["ETag"]):
                with suppress(ClientError):
                    self.look_at(
                        entry["Key"], self._client.get_object(Bucket=self._bucket, Key=entry["Key"])["Body"].read()
                    )

    def _look_at_file(self, path: Path) -> None:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode) and self._is_new(str(path), (status.st_mtime_ns, status.st_size)):
            self.modes[str(path)] = stat.S_IMODE(status.st_mode)
            content = path.read_bytes()
            if path.name == KEY_FILE and content.strip():
                self._canaries[RUN_KEY] = content.strip()
            self.look_at(str(path), content)

    def _is_new(self, name: str, version: object) -> bool:
        is_new = self._versions.get(name) != version
        self._versions[name] = version
        return is_new
