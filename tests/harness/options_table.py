"""The table of docs/options.md; ``python -m tests.harness.options_table`` writes it anew."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_acid.option import REQUIRED, Option, Place
from airflow_provider_acid.options import OPTIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "options.md"

PLACES = {
    Place.CONFIG: "`[hive_acid]`",
    Place.SENSOR: "sensor",
    Place.TABLE_PLAN: "plan of one table",
    Place.COMPACTION: "compaction",
    Place.CLEANER: "cleaner",
    Place.HOUSEKEEPING: "housekeeping",
    Place.UNDO: "undo",
}


def options_table() -> str:
    """A row for each option."""
    rows = [
        f"| `{option.name}` | {option.kind.words} | {_default(option)} | {_places(option)} | "
        f"{f'`{option.hive}`' if option.hive else ''} | {option.description} |"
        for option in OPTIONS.values()
    ]
    return "\n".join(("| option | values | default | set in | in Hive | meaning |", "|---|---|---|---|---|---|", *rows))


def _default(option: Option) -> str:
    if option.default is REQUIRED:
        return "–"
    return f"`{option.default_text}`" if option.default_text else "none"


def _places(option: Option) -> str:
    return ", ".join(shown for place, shown in PLACES.items() if place in option.places)


if __name__ == "__main__":
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(text[: text.index("| option |")] + options_table() + "\n")
