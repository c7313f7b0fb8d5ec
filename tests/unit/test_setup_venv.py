"""What ./quickstart and ./run-tests do where the machine's Java lacks a module that Spark asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

SETUP = Path(__file__).parents[2] / "tools" / "setup-venv"


def test_the_wrapped_java_gets_every_option_but_the_one_for_the_missing_module(tmp_path: Path) -> None:
    (tmp_path / "show").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "show").chmod(0o755)
    functions = f"source <(sed -n '/^vector_module=/,/^}}/p' {SETUP}); wrap_java {tmp_path}/show"
    subprocess.run(["bash", "-c", functions], cwd=tmp_path, check=True)
    options = ["-Dname=a b", "--add-modules=jdk.incubator.vector", "", "-cp", "$HOME/*.jar", "Main"]
    answer = subprocess.run([tmp_path / ".venv/java/bin/java", *options], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["-Dname=a b", "", "-cp", "$HOME/*.jar", "Main"]
