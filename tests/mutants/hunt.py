"""Which mutants are killed by their tests, and which live: the tests first on their own, then each on its mutants."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from tests.mutants.checkout import Checkout, TestRun
from tests.mutants.mutant import ROOT, Mutant

PLACE = ROOT / ".cache" / "mutants"
AT_A_TIME = 2

T = TypeVar("T")

Say = Callable[[str], None]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    :param run: of its test.
    """

    mutant: Mutant
    run: TestRun

    @property
    def is_alive(self) -> bool:
        """Whether nothing noticed it."""
        return not self.run.failed


class Hunt:
    """Runs tests in copies of the repository, some at a time.

    :param say: told of each test that was run.
    """

    def __init__(self, mutants: Sequence[Mutant], say: Say) -> None:
        self._mutants = mutants
        self._say = say
        self._saying = threading.Lock()
        self._free: queue.Queue[Checkout] = queue.Queue()
        for number in range(AT_A_TIME):
            self._free.put(Checkout(PLACE / str(number)))

    def check_imports(self) -> None:
        """Check that a process imports what is spoilt from its copy.

        :raises AssertionError: it imports something else.
        """
        with self._checkout() as checkout:
            files = sorted({mutant.file for mutant in self._mutants})
            imported = checkout.imported([_module_of(file) for file in files])
            assert [path.resolve() for path in imported] == [(checkout.place / file).resolve() for file in files]

    def broken_tests(self) -> list[str]:
        """What fails where nothing is spoilt, in each copy the first; a share of the tests is run in each."""
        tests = sorted({mutant.test for mutant in self._mutants})
        shares = [tests[number::AT_A_TIME] for number in range(AT_A_TIME)]
        runs = self._all([partial(self._run_unspoilt, share) for share in shares if share])
        return [str(run) for run in runs if not run.passed]

    def verdicts(self) -> list[Verdict]:
        """What became of all of them."""
        return self._all([partial(self._kill, mutant) for mutant in self._mutants])

    def _run_unspoilt(self, tests: Sequence[str]) -> TestRun:
        with self._checkout() as checkout:
            run = checkout.run(*tests, writes_bytecode=True)
        self._tell(f"{len(tests)} tests without a mutant: {'passed' if run.passed else run} in {run.seconds:.0f} s")
        return run

    def _kill(self, mutant: Mutant) -> Verdict:
        with self._checkout() as checkout, checkout.spoilt_by(mutant):
            verdict = Verdict(mutant, checkout.run(mutant.test))
        end = f"ALIVE ({verdict.run})" if verdict.is_alive else f"killed in {verdict.run.seconds:.0f} s"
        self._tell(f"{mutant.part}: {mutant.name}: {end}")
        return verdict

    def _tell(self, line: str) -> None:
        with self._saying:
            self._say(line)

    @contextmanager
    def _checkout(self) -> Iterator[Checkout]:
        checkout = self._free.get()
        try:
            yield checkout
        finally:
            self._free.put(checkout)

    def _all(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            return list(threads.map(lambda task: task(), tasks))


def _module_of(file: str) -> str:
    name = file.removesuffix(".py").replace("/", ".")
    return name if name.startswith("airflow_provider_acid.") else f"airflow_provider_acid.{name}"


def table(verdicts: Sequence[Verdict]) -> str:
    """What was broken, what noticed it, and in how many seconds."""
    lines = []
    part = None
    for verdict in verdicts:
        mutant = verdict.mutant
        if mutant.part != part:
            part = mutant.part
            lines += ["", part]
        fate = "ALIVE" if verdict.is_alive else f"{verdict.run.seconds:.0f} s"
        lines += [f"  {mutant.name} ({mutant.file})", f"    {fate:>5}  {mutant.test}"]
    alive = sum(verdict.is_alive for verdict in verdicts)
    return "\n".join([f"{len(verdicts)} mutants, {alive} alive", *lines, ""])
