"""Every block of code in README.md and docs/ works.

A ``python`` block is a whole DAG file and is parsed without network and database. A ``bash`` block is run in an empty
folder, unless each of its commands is one that another test runs (``TESTED_ELSEWHERE``). Any other language that can
be executed is refused, so that no block slips through; ``text``, ``json``, ``ini`` and the like are only read.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARSE_DAG_FILE = Path(__file__).with_name("parse_dag_file.py")
NOT_EXECUTABLE = {"text", "json", "ini", "yaml", "mermaid", "sql"}

TESTED_ELSEWHERE = {
    "./quickstart": "tests/integration/test_quickstart.py",
    "./quickstart --ui": "tests/integration/test_quickstart.py",
    "./run-tests": ".ci/run",
    "./run-tests unit": ".ci/run",
    "pip install airflow-provider-acid": "tests/integration/test_wheel.py",
    "pip install 'airflow-provider-acid[spark]'": "tests/integration/test_wheel.py",
}
"""Commands that the documents may show because the named file runs them."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a document."""

    place: str
    language: str
    code: str


def blocks_of(name: str, text: str) -> list[Block]:
    """The fenced blocks of a document, indented ones included."""
    blocks = []
    for match in re.finditer(r"^( *)(```+)(\S*)[^\n]*\n(.*?)^\1\2 *$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 1
        indent, _, language, code = match.groups()
        blocks.append(Block(f"{name}:{line}", language, re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)))
    return blocks


def documents() -> list[Path]:
    return [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))] if path.is_file()]


BLOCKS = [block for path in documents() for block in blocks_of(str(path.relative_to(ROOT)), path.read_text())]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "AIRFLOW_HOME": str(folder), "HOME": str(folder), "PYTHONPATH": str(ROOT)}


def parse(dag_file: Path, folder: Path) -> dict[str, list[str]]:
    """The DAGs of a file and their tasks.

    :raises subprocess.CalledProcessError: the file cannot be parsed, or touches network or database.
    """
    command = [sys.executable, str(PARSE_DAG_FILE), str(dag_file)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment(folder))
    dags: dict[str, list[str]] = json.loads(answer.stdout.splitlines()[-1])
    return dags


def commands_of(block: Block) -> list[str]:
    lines = block.code.replace("\\\n", " ").splitlines()
    return [line for line in (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines) if line]


def check(block: Block, folder: Path) -> None:
    """Run a block as the reader would.

    :raises AssertionError: it is in a language that nobody runs, or is no DAG file.
    :raises subprocess.CalledProcessError: it fails.
    """
    if block.language == "python":
        dag_file = folder / "documented_dag.py"
        dag_file.write_text(block.code)
        assert parse(dag_file, folder), f"{block.place}: the block defines no DAG"
    elif block.language == "bash":
        if not set(commands_of(block)) <= TESTED_ELSEWHERE.keys():
            command = ["bash", "-euo", "pipefail", "-c", block.code]
            subprocess.run(
                command, check=True, cwd=folder, env=environment(folder), timeout=60, stdin=subprocess.DEVNULL
            )
    else:
        assert block.language in NOT_EXECUTABLE, f"{block.place}: nobody runs a block of {block.language!r}"


@pytest.mark.parametrize("block", BLOCKS, ids=[block.place for block in BLOCKS])
def test_every_block_of_the_documents_works(block: Block, tmp_path: Path) -> None:
    check(block, tmp_path)


def test_the_commands_that_are_tested_elsewhere_are_tested_there() -> None:
    shown = {command for block in BLOCKS if block.language == "bash" for command in commands_of(block)}
    for command in shown & TESTED_ELSEWHERE.keys():
        assert (ROOT / TESTED_ELSEWHERE[command]).is_file(), command


@pytest.mark.parametrize("dag_file", sorted((ROOT / "dags").glob("[!_]*.py")), ids=lambda path: path.name)
def test_an_installed_dag_file_parses_without_network_and_database(dag_file: Path, tmp_path: Path) -> None:
    assert parse(dag_file, tmp_path)


# The mechanism itself

DAG = "from airflow.sdk import DAG\nfrom airflow.providers.standard.operators.empty import EmptyOperator\n"
DAG += 'with DAG("documented", schedule=None):\n    EmptyOperator(task_id="nothing")\n'


def test_blocks_are_found_with_their_language_and_line() -> None:
    text = "a\n```bash\necho 1\n```\n- item\n  ```python title\n  x = 1\n  ```\n````text\n```\n````\n"
    assert blocks_of("README.md", text) == [
        Block("README.md:2", "bash", "echo 1\n"),
        Block("README.md:6", "python", "x = 1\n"),
        Block("README.md:9", "text", "```\n"),
    ]


def test_a_dag_file_in_a_document_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "dag.py").write_text(DAG)
    assert parse(tmp_path / "dag.py", tmp_path) == {"documented": ["nothing"]}


@pytest.mark.parametrize(
    "line",
    [
        "import no_such_module",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "from airflow.settings import engine; engine.connect()",
        "from airflow.sdk import Variable; Variable.get('x')",
    ],
)
def test_a_dag_file_that_does_what_it_must_not_is_noticed(line: str, tmp_path: Path) -> None:
    (tmp_path / "dag.py").write_text(DAG + line + "\n")
    with pytest.raises(subprocess.CalledProcessError):
        parse(tmp_path / "dag.py", tmp_path)


def test_a_python_block_without_a_dag_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="defines no DAG"):
        check(Block("README.md:1", "python", "x = 1\n"), tmp_path)


def test_a_failing_command_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        check(Block("README.md:1", "bash", "./run-tests\nfalse\n"), tmp_path)


@pytest.mark.parametrize("language", ["sh", "console", "py", ""])
def test_a_language_that_nobody_runs_is_noticed(language: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nobody runs"):
        check(Block("README.md:1", language, "rm -rf x\n"), tmp_path)
