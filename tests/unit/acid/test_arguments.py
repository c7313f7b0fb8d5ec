"""What the operator tells the application arrives, whatever YARN and bash make of a command line."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_acid.acid.arguments import as_argument, from_argument

UNHARMED = re.compile(r'[A-Za-z0-9%_.~ "+,/:=@\[\]-]*')

HOSTILE = [
    '{"hdfs": {"web_addresses": ["namenode:9870"]}}',
    "hdfs://ns1/warehouse/a{{HOME}}b}}}c/_acid_runs/1",
    "<LOG_DIR>:<CPS>:<JAVA_HOME>",
    "$HOME ${HOME} $(id) `id`",
    r"a\b\\c\"d",
    "it's",
    'say "x"',
    "äöü €",
    "a%2Fb c%20d +",
    "line\nbreak\ttab",
    "*?[a-z]!#;&|<>(){}~^",
    "~/x",
    "",
    " first and last ",
]


def through_yarn(arguments: Sequence[str]) -> list[str]:
    """Hands arguments over as Spark's client and YARN's NodeManager do in cluster mode."""
    escapes = {"$": "\\$", '"': '\\"', "'": "'\\''"}
    quoted = ("'" + "".join(escapes.get(letter, letter) for letter in argument) + "'" for argument in arguments)
    command = " ".join(["printf", "'%s\\0'", *quoted])
    for marker, value in (("<LOG_DIR>", "/logs"), ("<CPS>", ":"), ("{{", "$"), ("}}", "")):
        command = command.replace(marker, value)
    script = f'exec /bin/bash -c "{command}"'
    output = subprocess.run(["/bin/bash", "-c", script], capture_output=True, env={"LC_ALL": "C"}, check=False).stdout
    return output.decode(errors="replace").split("\0")[:-1]


def test_every_text_arrives_as_it_was() -> None:
    assert list(map(from_argument, through_yarn([as_argument(text) for text in HOSTILE]))) == HOSTILE


@pytest.mark.parametrize("text", HOSTILE[:5])
def test_a_text_as_it_is_would_not_arrive(text: str) -> None:
    assert through_yarn([text]) != [text]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_has_anything_that_is_replaced_on_its_way(text: str) -> None:
    argument = as_argument(text)
    assert UNHARMED.fullmatch(argument)
    assert from_argument(argument) == text
