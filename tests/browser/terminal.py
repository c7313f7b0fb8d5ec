"""Commands as somebody types them into a terminal, and what the terminal looks like then."""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 118


@dataclass(frozen=True)
class Shown:
    """What a command came to.

    :param code: its exit code.
    :param colored: what it printed, with a terminal's colors.
    """

    command: str
    code: int
    colored: str

    @property
    def text(self) -> str:
        """What it printed, in words with one space between them."""
        plain = Text.from_ansi(self.colored).plain
        return " ".join(plain.replace("│", " ").split())

    def keep(self, file: Path, title: str, places: Mapping[Path, str]) -> None:
        """Keep a picture of the terminal, as SVG.

        :param places: what stands in it for directories of this machine, as a site has them.
        """
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        console.print(Text(_elsewhere(f"$ {self.command}", places), "bold"))
        for line in self.colored.rstrip().splitlines():
            console.print(Text.from_ansi(_elsewhere(line, places)))
        drawn = console.export_svg(title=title, unique_id=file.stem)
        # Whoever looks at the documents is not sent to somebody else's server for a font.
        file.write_text(re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL))


def _elsewhere(line: str, places: Mapping[Path, str]) -> str:
    """A line with other places in it, and a table's edge where it was."""
    width = len(line)
    for place, shown in places.items():
        line = line.replace(str(place), shown)
    text, edge, rest = line.rpartition("│")
    return f"{text}{' ' * (width - len(line))}{edge}{rest}" if edge else line


def type_in(programs: Path, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Shown:
    """Run a command and wait for its end.

    :param programs: the folder of the commands that are found first.
    """
    path = f"{programs}{os.pathsep}{environment.get('PATH', os.environ['PATH'])}"
    done = subprocess.run(
        [str(programs / command[0]), *command[1:]],
        cwd=folder,
        env={**environment, "PATH": path, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Shown(" ".join(command), done.returncode, done.stdout + (done.stderr if done.returncode > 1 else ""))
