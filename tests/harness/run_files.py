"""The files of a run directory as its operator writes them, made by hand, and what its application wrote."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_provider_acid.acid.sealing import KEY_BYTES, RunKey
from airflow_provider_acid.plan import exchange
from airflow_provider_acid.plan.plan import FORMAT_VERSION, CompactionPlan
from airflow_provider_acid.plan.result import CompactionResult

SECRET = bytes(range(KEY_BYTES))


class RunFiles:
    """A run directory whose key is :data:`SECRET`.

    :param folder: it, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = RunKey(folder.name, SECRET)

    def put_batch(self, partitions: int, idle_timeout_seconds: float = 60, version: int = FORMAT_VERSION) -> None:
        """Write ``batch.json``."""
        self.put(
            exchange.BATCH_FILE,
            json.dumps(
                {"format_version": version, "partitions": partitions, "idle_timeout_seconds": idle_timeout_seconds}
            ).encode(),
        )

    def put_plan(self, item: int, plan: CompactionPlan | bytes) -> None:
        """Hand out a plan, or what is none."""
        content = plan if isinstance(plan, bytes) else plan.to_json().encode()
        self.put(exchange.item_file(item, exchange.PLAN), content)

    def put_skip(self, item: int) -> None:
        """Say that there is nothing to merge."""
        seal = self.key.seal_of(exchange.item_file(item, exchange.SKIP))
        (self.folder / exchange.item_file(item, exchange.skip_kind(seal))).touch()

    def put_result(self, item: int, result: CompactionResult | bytes) -> None:
        """Answer in the application's place, or write what is no answer."""
        content = result if isinstance(result, bytes) else result.to_json().encode()
        self.put(exchange.item_file(item, exchange.RESULT), content)

    def put(self, name: str, content: bytes) -> None:
        """Write a sealed file, whole or not at all."""
        partial = self.folder / f"_{name}"
        partial.write_bytes(self.key.sealed(name, content))
        partial.rename(self.folder / name)

    def result(self, item: int) -> CompactionResult:
        """What the application says of an item."""
        name = exchange.item_file(item, exchange.RESULT)
        document = (self.folder / name).read_bytes()
        return CompactionResult.from_json(self.key.opened(name, name, document))

    def plan(self, item: int) -> CompactionPlan:
        """What was handed out."""
        name = exchange.item_file(item, exchange.PLAN)
        return CompactionPlan.from_json(self.key.opened(name, name, (self.folder / name).read_bytes()))

    def put_key_file(self, folder: Path) -> Path:
        """A file that holds the key, for the application's ``--key-file``."""
        path = folder / "run.key"
        path.write_bytes(SECRET)
        return path
