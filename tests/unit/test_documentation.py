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
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARSE_DAG_FILES = Path(__file__).with_name("parse_dag_files.py")
NOT_EXECUTABLE = {"text", "json", "ini", "yaml", "mermaid", "sql"}

TESTED_ELSEWHERE = {
    "airflow-acid compact thrift://metastore.example.com:9083 sales.orders "
    "--spark-submit 'spark-submit --master yarn'": "tests/integration/test_compact_command.py",
    "airflow-acid doctor thrift://metastore.example.com:9083": "tests/integration/test_doctor.py",
    "airflow-acid doctor thrift://metastore.example.com:9083 --tables 'sales.*' --exclude 'sales.tmp_*' --json": (
        "tests/integration/test_doctor.py"
    ),
    "airflow-acid undo thrift://metastore.example.com:9083 sales.orders --dry-run": (
        "tests/integration/test_table_commands.py"
    ),
    "./benchmark": "tests/integration/test_benchmark.py",
    "./benchmark --quick": "tests/integration/test_benchmark.py",
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


@dataclass(frozen=True)
class Parsed:
    """What Airflow found in a DAG file: tasks by DAG, and the error or nothing."""

    dags: dict[str, list[str]]
    error: str


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


def section_of(name: str, title: str) -> str:
    """What stands below a heading, up to the next of the same or a higher rank."""
    section = rf"^(#+) {re.escape(title)}\n(.*?)(?=^(?!\1#)#+ |\Z)"
    found = re.search(section, (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{name} has no section {title}"
    return found[2]


BLOCKS = [block for path in documents() for block in blocks_of(str(path.relative_to(ROOT)), path.read_text())]


def environment(folder: Path) -> dict[str, str]:
    without_connections = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_CONN_")}
    return {**without_connections, "AIRFLOW_HOME": str(folder), "HOME": str(folder), "PYTHONPATH": str(ROOT)}


def parse(dag_files: Iterable[Path], folder: Path) -> dict[Path, Parsed]:
    """What Airflow finds in each file."""
    command = [sys.executable, str(PARSE_DAG_FILES), *map(str, dag_files)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment(folder))
    found = json.loads(answer.stdout.splitlines()[-1])
    return {Path(name): Parsed(**content) for name, content in found.items()}


def write_blocks(codes: dict[str, str], folder: Path) -> dict[str, Path]:
    files = {name: folder / f"block_{number}.py" for number, name in enumerate(codes)}
    for name, file in files.items():
        file.write_text(codes[name])
    return files


SHOWN = {block.place: block.code for block in BLOCKS if block.language == "python"}
INSTALLED = {path.name: path for path in sorted((ROOT / "dags").glob("[!_]*.py"))}

DAG = "from airflow.providers.common.compat.sdk import DAG\n"
DAG += "from airflow.providers.standard.operators.empty import EmptyOperator\n"
DAG += 'with DAG("documented", schedule=None):\n    EmptyOperator(task_id="nothing")\n'
CODES = {
    "good": DAG,
    "no module": DAG + "import no_such_module\n",
    "network": DAG + "import socket; socket.create_connection(('127.0.0.1', 9))\n",
    "name lookup": DAG + "import socket; socket.getaddrinfo('localhost', 9)\n",
    "database": DAG + "from airflow.settings import engine; engine.connect()\n",
    "variable": DAG + "from airflow.providers.common.compat.sdk import Variable; Variable.get('x')\n",
    "no dag": "x = 1\n",
    "what makes dags": "from airflow_provider_acid.installed_dags import acid_compaction_dag\n",
}
"""DAG files that do what they must not, and three that do not."""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Parsed]:
    """All DAG files that are parsed here, by their names; in one process, because starting Airflow takes seconds."""
    folder = tmp_path_factory.mktemp("dags")
    # The installed ones first: each brings its own DAG alone, also where no other has been made before.
    files = {**INSTALLED, **write_blocks({**CODES, **SHOWN}, folder)}
    found = parse(files.values(), folder)
    return {name: found[file] for name, file in files.items()}


def commands_of(block: Block) -> list[str]:
    lines = block.code.replace("\\\n", " ").splitlines()
    return [line for line in (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines) if line]


def run_shell(block: Block, folder: Path) -> None:
    """Run the commands of a block as the reader would, unless another test does.

    :raises subprocess.CalledProcessError: one of them fails.
    """
    if not set(commands_of(block)) <= TESTED_ELSEWHERE.keys():
        command = ["bash", "-euo", "pipefail", "-c", block.code]
        subprocess.run(command, check=True, cwd=folder, env=environment(folder), timeout=60, stdin=subprocess.DEVNULL)


def nobody_runs(block: Block) -> bool:
    return block.language not in {"python", "bash"} | NOT_EXECUTABLE


def test_every_block_is_of_a_language_that_is_run_or_cannot_be() -> None:
    assert [block.place for block in BLOCKS if nobody_runs(block)] == []


def test_every_dag_of_the_documents_and_of_the_package_parses_without_network_database_or_connections(
    parsed: dict[str, Parsed],
) -> None:
    names = SHOWN.keys() | INSTALLED.keys()
    assert {name: parsed[name].error for name in names if parsed[name].error} == {}
    assert [name for name in names if not parsed[name].dags] == []
    tasks = ["clean", "compact", "done", "find_due_partitions"]
    assert parsed["acid_compaction.py"].dags == {"acid_compaction": tasks}
    tasks = ["clean", "compact", "done", "plan"]
    assert parsed["acid_compact_table.py"].dags == {"acid_compact_table": tasks}
    assert parsed["acid_doctor.py"].dags == {"acid_doctor": ["look"]}
    assert parsed["acid_housekeeping.py"].dags == {"acid_housekeeping": ["clean_forgotten", "keep_house"]}
    assert parsed["acid_undo.py"].dags == {"acid_undo": ["undo"]}


def test_every_command_of_the_documents_works(tmp_path: Path) -> None:
    for number, block in enumerate(block for block in BLOCKS if block.language == "bash"):
        folder = tmp_path / str(number)
        folder.mkdir()
        run_shell(block, folder)


def test_the_commands_that_are_tested_elsewhere_are_tested_there() -> None:
    shown = {command for block in BLOCKS if block.language == "bash" for command in commands_of(block)}
    for command in shown & TESTED_ELSEWHERE.keys():
        assert (ROOT / TESTED_ELSEWHERE[command]).is_file(), command


# The mechanism itself


def test_blocks_are_found_with_their_language_and_line() -> None:
    text = "a\n```bash\necho 1\n```\n- item\n  ```python title\n  x = 1\n  ```\n````text\n```\n````\n"
    assert blocks_of("README.md", text) == [
        Block("README.md:2", "bash", "echo 1\n"),
        Block("README.md:6", "python", "x = 1\n"),
        Block("README.md:9", "text", "```\n"),
    ]


def test_a_dag_file_that_does_what_it_must_not_is_noticed(parsed: dict[str, Parsed]) -> None:
    assert parsed["good"] == Parsed({"documented": ["nothing"]}, "")
    assert parsed["no dag"] == parsed["what makes dags"] == Parsed({}, "")
    assert {name for name in CODES if parsed[name].error} == CODES.keys() - {"good", "no dag", "what makes dags"}
    assert "must not touch the network" in parsed["network"].error
    assert "unable to open database file" in parsed["database"].error


def test_a_failing_command_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_shell(Block("README.md:1", "bash", "./run-tests\nfalse\n"), tmp_path)


@pytest.mark.parametrize("language", ["sh", "console", "py", ""])
def test_a_language_that_nobody_runs_is_noticed(language: str) -> None:
    assert nobody_runs(Block("README.md:1", language, "rm -rf x\n"))
