"""The files of a run directory as its operator writes them, made by hand, and what its application wrote."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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

    def put_batch(self, idle_timeout_seconds: float = 60, version: int = FORMAT_VERSION) -> None:
        """Write ``batch.json``."""
        batch = {"format_version": version, "idle_timeout_seconds": idle_timeout_seconds}
        self.put(exchange.BATCH_FILE, json.dumps(batch).encode())

    def put_plan(self, item: int, plan: CompactionPlan | bytes) -> None:
        """Hand out a plan, or what is none."""
        content = plan if isinstance(plan, bytes) else plan.to_json().encode()
        self.put(exchange.item_file(item, exchange.PLAN), content)

    def put_end(self) -> None:
        """Say that nobody waits for anything more."""
        self.put(exchange.END_FILE, b"")

    @contextmanager
    def ending_when_answered(self, *items: int) -> Iterator[None]:
        """In the operator's place, say that it is over as soon as these have results."""
        names = [exchange.item_file(item, exchange.RESULT) for item in items]
        is_over = threading.Event()

        def wait() -> None:
            while not is_over.wait(0.01):
                if all((self.folder / name).exists() for name in names):
                    self.put_end()
                    return

        operator = threading.Thread(target=wait)
        operator.start()
        try:
            yield
        finally:
            is_over.set()
            operator.join()

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
