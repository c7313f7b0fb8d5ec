"""A spark-submit that runs nothing."""

from __future__ import annotations

import stat
from pathlib import Path
from shlex import quote


class FakeSpark:
    """A program named spark-submit that notes its arguments and ends with a code."""

    def __init__(self, folder: Path) -> None:
        self._arguments, self._archives = folder / "arguments", folder / "archives"
        self._environment, self._keys = folder / "environment", folder / "keys"
        self._program = folder / "bin" / "spark-submit"
        self._program.parent.mkdir()
        self.ends_with(0)

    @property
    def folder(self) -> Path:
        return self._program.parent

    def ends_with(self, code: int, says: str = "") -> None:
        self._program.write_text(
            f"""#!/bin/sh
printf '%s\\n' "$@" === >> {self._arguments}
env >> {self._environment}
for argument in "$@"; do
  case $argument in *.zip) ls "${{argument##*,}}" >> {self._archives} ;; esac
  case $argument in
    /*.key) stat -c %a "$argument" "${{argument%/*}}" > {self._keys}.modes; cp "$argument" {self._keys} ;;
  esac
done
echo {quote(says)}
exit {code}
"""
        )
        self._program.chmod(self._program.stat().st_mode | stat.S_IXUSR)

    def archives(self) -> list[str]:
        """The archives that were there while the program ran."""
        return self._archives.read_text().split()

    def calls(self) -> list[list[str]]:
        if not self._arguments.exists():
            return []
        return [call.split("\n")[:-1] for call in self._arguments.read_text().split("===\n")[:-1]]

    def option(self, name: str) -> list[str]:
        """The values of an option in all calls."""
        return [call[call.index(name) + 1] for call in self.calls()]

    def environment(self) -> str:
        """The environment of all calls."""
        return self._environment.read_text()

    def kept(self, key_file: str) -> tuple[str, str, bytes]:
        """Of the last key file while the program ran: its mode, its directory's, and what it held."""
        assert self.calls()[-1].count(key_file) >= 1
        mode, directory = (self._keys.parent / "keys.modes").read_text().split()
        return mode, directory, self._keys.read_bytes()
