"""Locations and keys of S3: plain text, nothing in them is percent-encoded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from airflow_provider_acid.exceptions import StorageError
from airflow_provider_acid.storages.paths import relative_parts

SCHEMES = frozenset({"s3", "s3a", "s3n"})
"""Hive writes ``s3a``, Amazon's EMR ``s3``, old tables have ``s3n``: the same buckets."""

FOLDER_SUFFIX = "_$folder$"
"""End of the keys by which EMR and the old ``s3n`` mark a directory; S3A and consoles write keys that end in ``/``."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,253}[a-z0-9]")


@dataclass(frozen=True)
class S3Location:
    """A bucket and a prefix of keys in it.

    :param uri: as the metastore has it.
    :param bucket: name of the bucket.
    :param prefix: begin of the keys, without a slash at the end; empty for the whole bucket.
    """

    uri: str
    bucket: str
    prefix: str

    @classmethod
    def parse(cls, uri: str) -> S3Location:
        """The parts of a location.

        :raises StorageError: it names no bucket, or goes up, or has an empty name in it.
        """
        _, _, rest = uri.partition("://")
        bucket, _, path = rest.partition("/")
        if "@" in bucket:
            # Not repeated: as Hadoop once allowed, it may hold a secret key.
            raise StorageError(
                f"s3a://…@{bucket.rpartition('@')[2]}/{path}",
                "holds credentials",
                "take them out of the location, and change the key, for all who may see the table have seen it",
            )
        if not _BUCKET.fullmatch(bucket):
            raise StorageError(
                uri, f"names no bucket ({bucket!r})", "check the location in the metastore; it is s3a://BUCKET/PATH"
            )
        prefix = path.rstrip("/")
        if prefix and any(part in ("", ".", "..") for part in prefix.split("/")):
            # A key may hold such names, but Hadoop's paths do not reach it.
            raise StorageError(uri, "holds an empty name, . or ..", "check the location in the metastore")
        return cls(uri, bucket, prefix)

    def key(self, path: str) -> str:
        """The key of a path below the location, without a slash at the end.

        :raises StorageError: the path leaves the location.
        """
        return "/".join((*([self.prefix] if self.prefix else []), *relative_parts(self.uri, path)))

    def name(self, key: str) -> str:
        """A key's URI, as errors say it."""
        scheme = self.uri.partition("://")[0]
        return f"{scheme}://{self.bucket}/{key}"


def below(key: str) -> str:
    """Begin of the keys below a directory's."""
    return f"{key}/" if key else ""


def is_marker(key: str, size_bytes: int) -> bool:
    """Whether an object only says that there is a directory."""
    return key.endswith("/") or (key.endswith(FOLDER_SUFFIX) and size_bytes == 0)


def is_hidden(key: str) -> bool:
    """Whether readers pass over an object for its own name."""
    return key.rpartition("/")[2].startswith(("_", "."))
