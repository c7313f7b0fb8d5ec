"""Compactors that fall asleep with their whole process in the middle of their work, until they are taken for dead."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time

import psutil

from airflow_provider_acid.acid.entity import Entity
from airflow_provider_acid.compaction.steps import Step
from tests.harness.concurrency.stage import Actor, Stage

SLEEP_AFTER = (Step.CLAIMED, Step.RECORDED, Step.STAGED, Step.VERIFIED, Step.FENCED)
_SLEEPY = 0.4
_OVERTIME_SECONDS = 3.0


class Drowsiness:
    """A step listener that now and then stops its process."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def __call__(self, step: Step, _: Entity) -> None:
        if step in SLEEP_AFTER and self._chance.random() < _SLEEPY / len(SLEEP_AFTER):
            os.kill(os.getpid(), signal.SIGSTOP)


class Sandman(Actor):
    """Wakes a process that stopped itself, long after the metastore has aborted its transactions.

    :param pid: of the process.
    """

    def __init__(self, stage: Stage, pid: int) -> None:
        super().__init__(stage, f"sandman-of-{pid}")
        self._process = psutil.Process(pid)

    def act(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            while self._process.status() != psutil.STATUS_ZOMBIE:
                if self._process.status() == psutil.STATUS_STOPPED:
                    self.stage.pause(self.stage.timeout_seconds + _OVERTIME_SECONDS)
                    self._wake()
                time.sleep(0.1)

    def _wake(self) -> None:
        self.figures["compactors that overslept"] += 1
        self.stage.write_figures(self.name, self.figures)
        self._process.send_signal(signal.SIGCONT)
