"""What all actors of a run share: its description, its stop sign, its failures, its figures."""

from __future__ import annotations

import json
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airflow_provider_acid.metastore.database.database import MetastoreDatabase
from airflow_provider_acid.metastore.thrift.client import AcidMetastoreClient
from airflow_provider_acid.metastore.thrift.transport import MetastoreAddress
from tests.harness.concurrency.ledger import Ledger
from tests.harness.concurrency.places import Place, RunTable
from tests.harness.concurrency.session import Session

EVENTS_SHOWN, EVENT_LENGTH = 40, 400


class RunFailedError(Exception):
    """An actor saw what must not be; the message says all that is known about it."""


@dataclass(frozen=True)
class Stage:
    """A run.

    :param database_url: of the metastore's database.
    :param folder: of the ledger, the figures and the reports of failures.
    :param seed: all actors' decisions are drawn from it.
    :param end_monotonic: when the actors stop, by the machine's monotonic clock, in seconds.
    :param timeout_seconds: the metastore aborts transactions that were silent for so long.
    """

    host: str
    port: int
    database_url: str
    tables: tuple[RunTable, ...]
    folder: Path
    seed: int
    end_monotonic: float
    timeout_seconds: float

    @property
    def places(self) -> tuple[Place, ...]:
        """All partitions of all tables."""
        return tuple(place for table in self.tables for place in table.places)

    @property
    def ledger_file(self) -> Path:
        """See :mod:`ledger`."""
        return self.folder / "ledger.jsonl"

    @property
    def is_over(self) -> bool:
        """Whether the actors have to come to an end."""
        return time.monotonic() > self.end_monotonic or self._stop_sign.exists()

    def pause(self, seconds: float) -> None:
        """Sleeps, but not beyond the run's end."""
        until = time.monotonic() + seconds
        while not self.is_over and time.monotonic() < until:
            time.sleep(min(0.1, max(until - time.monotonic(), 0.0)))

    def session(self) -> Session:
        """A connection to the metastore."""
        return Session(self.host, self.port)

    def client(self) -> AcidMetastoreClient:
        """The package's own connection to the metastore."""
        return AcidMetastoreClient([MetastoreAddress(self.host, self.port)], user="compactor", timeout_seconds=30)

    def hive_database(self) -> MetastoreDatabase:
        """The metastore's database."""
        return MetastoreDatabase(self.database_url)

    def fail(self, actor: str, error: BaseException) -> None:
        """Records why the run has failed, and beside it what lies on disk, and stops all others."""
        listing = [f"{place}: {name}" for place in self.places for name in place.listing()]
        (self.folder / f"listing-{actor}.txt").write_text("\n".join(listing))
        trace = "".join(traceback.format_exception(error))
        events = [event[:EVENT_LENGTH] for event in self.ledger_file.read_text().splitlines()[-EVENTS_SHOWN:]]
        report = "\n".join([f"{actor}: {trace}", "the latest events:", *events])
        (self.folder / f"failure-{actor}.txt").write_text(report)
        self.stop()

    def failures(self) -> list[Path]:
        """The reports of failures, the first one first."""
        return sorted(self.folder.glob("failure-*.txt"), key=lambda file: file.stat().st_mtime)

    def figures(self) -> Counter[str]:
        """What all actors did, added up; the greatest of each ``longest``."""
        total: Counter[str] = Counter()
        for file in self.folder.glob("figures-*.json"):
            for name, count in json.loads(file.read_text()).items():
                total[name] = max(total[name], count) if name.startswith("longest") else total[name] + count
        return total

    def write_figures(self, actor: str, figures: Counter[str]) -> None:
        """Tells what an actor did."""
        whole = self.folder / f"new-{actor}.json"
        whole.write_text(json.dumps(figures))
        whole.replace(self.folder / f"figures-{actor}.json")

    def stop(self) -> None:
        """Ends the run."""
        self._stop_sign.touch()

    def go_on(self) -> None:
        """Lets another actor act after the end."""
        self._stop_sign.unlink(missing_ok=True)

    @property
    def _stop_sign(self) -> Path:
        return self.folder / "stop"


class Actor:
    """One thread of a run.

    :param name: unique in the run.
    """

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.random = random.Random(f"{stage.seed}/{name}")
        self.ledger = Ledger(stage.ledger_file)
        self.figures: Counter[str] = Counter()

    def run(self) -> None:
        """Acts until the run is over; an error of any kind fails the run."""
        try:
            self.act()
        except BaseException as error:  # whatever it is: a thread must not end unnoticed
            self.stage.fail(self.name, error)
        finally:
            self.stage.write_figures(self.name, self.figures)
            self.ledger.close()

    def pause(self, seconds: float) -> None:
        """Rests, but not beyond the run's end, and tells what was done so far."""
        self.stage.write_figures(self.name, self.figures)
        self.stage.pause(seconds)

    def overslept_since(self, begun_monotonic: float) -> bool:
        """Whether the metastore may have aborted what began then, because this process stood still."""
        return time.monotonic() - begun_monotonic > self.stage.timeout_seconds

    def act(self) -> None:
        """What this kind of actor does."""
        raise NotImplementedError


ActorFactory = Callable[[Stage, str], Actor]
