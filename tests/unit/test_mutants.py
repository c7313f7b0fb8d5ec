"""The mutants that ``./run-tests soak`` hunts are what they say: one line that stands in the code, and a test."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.mutant import ROOT, Mutant, all_mutants

FEWEST = 40
each_mutant = pytest.mark.parametrize("mutant", all_mutants(), ids=lambda mutant: mutant.name)


def functions_of(test_file: Path) -> set[str]:
    """Names of a module's functions, those of a class behind the class's."""
    found = set()
    for statement in ast.parse(test_file.read_text()).body:
        if isinstance(statement, ast.FunctionDef):
            found.add(statement.name)
        elif isinstance(statement, ast.ClassDef):
            methods = (inner.name for inner in statement.body if isinstance(inner, ast.FunctionDef))
            found |= {f"{statement.name}::{name}" for name in methods}
    return found


def test_there_are_enough_of_them_and_no_two_are_the_same() -> None:
    mutants = all_mutants()
    assert len(mutants) >= FEWEST
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    assert len({(mutant.file, mutant.before, mutant.after) for mutant in mutants}) == len(mutants)


@each_mutant
def test_it_is_another_program_by_one_line_that_stands_there_once(mutant: Mutant) -> None:
    source = (ROOT / mutant.file).read_text()
    spoilt = mutant.applied_to(source)
    assert ast.dump(ast.parse(spoilt)) != ast.dump(ast.parse(source))


def test_each_knows_all_names_that_it_uses(tmp_path: Path) -> None:
    """An error about a name is no kill, but would be known only when it is hunted."""
    names = {f"mutant_{number}.py": mutant for number, mutant in enumerate(all_mutants())}
    for name, mutant in names.items():
        (tmp_path / name).write_text(mutant.applied_to((ROOT / mutant.file).read_text()))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F821", "--output-format=concise", "."]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, [names[line.partition(":")[0]].name for line in found.stdout.splitlines()[:-1]]


@each_mutant
def test_its_test_exists(mutant: Mutant) -> None:
    file, _, name = mutant.test.partition("::")
    assert name.partition("[")[0] in functions_of(ROOT / file)


ONE_LINE = "def one() -> None:\n    a_line()\n    a_line()\n    last()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    no_such_line()", "    pass"),
        ("    a_line()", "    pass"),
        ("    last()", "    last()"),
        ("    a_line()\n    last()", "    pass\n    pass"),
        ("    last()", "    last()\n    last()"),
    ],
    ids=["is not there", "stands there twice", "changes nothing", "changes two lines", "adds a line"],
)
def test_one_that_is_described_wrongly_is_refused(before: str, after: str) -> None:
    with pytest.raises(ValueError, match="'wrong': stands"):
        Mutant("fence", "wrong", "any.py", before, after, "any.py::test").applied_to(ONE_LINE)


def test_a_line_may_stand_elsewhere() -> None:
    mutant = Mutant("order", "the end first", "any.py", "    a_line()\n    last()", "    last()\n    a_line()", "")
    assert mutant.applied_to(ONE_LINE) == "def one() -> None:\n    a_line()\n    last()\n    a_line()\n"
