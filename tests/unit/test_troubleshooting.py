"""Messages that the documents quote are those of the code, so that a reader's search finds them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"


def texts_of(source: str) -> list[str]:
    """The constant texts of a module; those of an f-string without its fields, each piece for itself."""
    return [
        node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant) and type(node.value) is str
    ]


def quoted(page: str) -> list[str]:
    """What stands as code in the first column of the tables of messages."""
    tables = re.findall(r"^\| message \|.*?(?=^$|\Z)", page, re.MULTILINE | re.DOTALL)
    return [match for table in tables for match in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)]


def test_every_quoted_message_is_one_of_the_codes() -> None:
    sources = [*(ROOT / "airflow_provider_acid").rglob("*.py"), *(ROOT / "spark_jobs").glob("*.py")]
    texts = "\n".join(text for path in sources for text in texts_of(path.read_text()))
    messages = quoted(PAGE.read_text())
    assert len(messages) > 30
    assert [message for message in messages if not all(part in texts for part in message.split(" … "))] == []


def test_a_table_of_messages_is_read() -> None:
    page = "| message | what |\n|---|---|\n| `one` | x `y` |\n| `two` | x |\n\n| symptom |\n|---|\n| `three` |\n"
    assert quoted(page) == ["one", "two"]
