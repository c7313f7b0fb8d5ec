"""``./quickstart``: shows the provider at work on a metastore and tables of its own, and leaves nothing running."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from types import FrameType

from airflow_provider_acid.exceptions import AcidError
from tests.harness.quickstart.demonstration import QuickstartError, demonstrate, serve_ui, stage
from tests.harness.quickstart.display import Display
from tests.harness.quickstart.table_state import WrongRowsError
from tests.harness.quickstart.work_folder import work_folder

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Ended(BaseException):
    """A signal asks to end; what runs is ended on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> int:
    """Runs the demonstration; the exit code is 0 only where it showed what it has to show."""
    parser = argparse.ArgumentParser(prog="./quickstart", description=__doc__)
    parser.add_argument("--ui", action="store_true", help="keep Airflow and the metastore up, and print the address")
    arguments = parser.parse_args()
    for number in _ENDING_SIGNALS:
        signal.signal(number, _end)
    display = Display()
    with work_folder() as folder:
        try:
            return _run(folder, display, ui=arguments.ui)
        except (QuickstartError, WrongRowsError, AcidError) as error:
            return _fail(folder, str(error))
        except _Ended as ended:
            return 0 if arguments.ui and ended.number == signal.SIGINT else 128 + ended.number


def _run(folder: Path, display: Display, *, ui: bool) -> int:
    with stage(folder, display) as ready:
        if ui:
            serve_ui(ready, display)
        figures = demonstrate(ready, display)
    display.say(f"Every row is as it was. Logs and tables stay in {folder} until the next run.")
    print(json.dumps(figures), flush=True)
    return 0


def _fail(folder: Path, reason: str) -> int:
    print(f"quickstart: {reason}", file=sys.stderr)
    print(f"quickstart: the logs are in {folder} (airflow.log, metastore/metastore.log)", file=sys.stderr)
    return 1


def _end(number: int, frame: FrameType | None) -> None:
    """Once; what follows is the ending itself, which nothing may break off."""
    for ending in _ENDING_SIGNALS:
        signal.signal(ending, signal.SIG_IGN)
    raise _Ended(number)


if __name__ == "__main__":
    sys.exit(main())
