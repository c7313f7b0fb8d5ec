"""A bucket with one table in it, for what is particular to S3."""

from __future__ import annotations

import json
from collections.abc import Callable

from airflow_provider_acid.storages.s3.options import S3Credentials, S3Options
from airflow_provider_acid.storages.s3.storage import S3Storage
from tests.harness.s3_server import S3Server

LARGE = b"0123456789abcdef" * (6 << 16)  # 6 MiB, above Amazon's and Arrow's least part
TABLE = "warehouse/sales.db/orders"


class Site:
    """A bucket with one table's location in it, and the means to look at its keys.

    :param endpoint: where storages reach the server; its own as a rule.
    """

    def __init__(self, server: S3Server, endpoint: str = "") -> None:
        self.server = server
        self.bucket = server.bucket()
        self.client = server.client()
        self.options = S3Options(endpoint=endpoint or server.endpoint, region=server.region, timeout_seconds=20)
        self.credentials = S3Credentials(server.key.access_key, server.key.secret_key)

    @property
    def location(self) -> str:
        """As the metastore would keep it."""
        return f"s3a://{self.bucket}/{TABLE}"

    def storage(self, on_copy: Callable[[str], None] = lambda key: None) -> S3Storage:
        """A storage at the location."""
        return S3Storage(self.location, self.options, self.credentials, on_copy)

    def put(self, path: str, data: bytes = b"x") -> None:
        """Makes an object, a marker too, below the location."""
        self.client.put_object(Bucket=self.bucket, Key=f"{TABLE}/{path}", Body=data)

    def names(self) -> list[str]:
        """The keys below the location."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=TABLE)
        return [found["Key"][len(TABLE) + 1 :] for page in pages for found in page.get("Contents", ())]

    def get(self, path: str) -> bytes:
        """The bytes of an object."""
        return self.client.get_object(Bucket=self.bucket, Key=f"{TABLE}/{path}")["Body"].read()

    def uploads(self) -> list[str]:
        """The keys of uploads that were neither completed nor aborted."""
        return [found["Key"] for found in self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", ())]


def staged_result(site: Site, files: int) -> None:
    """What a compaction's tasks leave for publication."""
    for number in range(files):
        site.put(f"_staging/output/bucket_{number:05d}", f"rows {number}".encode())
    site.put("_staging/output/_orc_acid_version", b"2")
    site.put("_staging/output/_metadata_acid", b"{}")


def temporary(site: Site, *actions: str) -> S3Credentials:
    """Temporary credentials that may do just this."""
    statement = {"Effect": "Allow", "Action": actions, "Resource": ["arn:aws:s3:::*"]}
    key = site.server.temporary_key(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    return S3Credentials(key.access_key, key.secret_key, key.session_token)
