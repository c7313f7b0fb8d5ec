"""Makes docs/crash-matrix.log, and of it the table in docs/reliability.md, from the records of the crash matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.harness.crash_case import PAIR_STEPS
from tests.harness.crash_record import PASSED, CrashRecord, Successor, load

DOCS = Path(__file__).parents[2] / "docs"
LOG = DOCS / "crash-matrix.log"
PAGE = DOCS / "reliability.md"
BEGIN = "<!-- crash table: made by tools/crash-table -->"
END = "<!-- end of the crash table -->"

_SEPARATOR = " | "
_SUCCESSORS = [successor.value for successor in Successor]


def log_text(records: Iterable[CrashRecord]) -> str:
    """One line per case, in an order that does not change from run to run."""
    lines = (_SEPARATOR.join(vars(record).values()) for record in sorted(records, key=_place))
    return "".join(f"{line}\n" for line in lines)


def parse_log(text: str) -> list[CrashRecord]:
    """What :func:`log_text` wrote."""
    return [CrashRecord(*line.split(_SEPARATOR)) for line in text.splitlines()]


def table(records: Sequence[CrashRecord]) -> str:
    """A Markdown table for each version of Hive: per step what was found, what was done, how many cases there were."""
    versions = sorted({_version(record) for record in records}, reverse=True)
    parts = []
    for version in versions:
        of_version = [record for record in records if _version(record) == version]
        databases = sorted({record.metastore.partition(" on ")[2] for record in of_version})
        heading = f"Hive {version} (metastore on {' and '.join(databases)}), {_count(of_version)}:"
        parts.append("\n".join((heading, "", *_table_of(of_version))))
    return "\n\n".join(parts)


def put_into(page: str, text: str, begin: str = BEGIN, end: str = END) -> str:
    """A page with what lies between the markers replaced."""
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    assert found_begin, f"the page lacks {begin}"
    assert found_end, f"the page lacks {end}"
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def main() -> None:
    """Write both files."""
    records = load()
    LOG.write_text(log_text(records), encoding="utf-8")
    PAGE.write_text(put_into(PAGE.read_text(encoding="utf-8"), table(records)), encoding="utf-8")
    print(f"{LOG} and {PAGE}: {_count(records)}")


def _table_of(records: Sequence[CrashRecord]) -> list[str]:
    lines = ["| Killed after | Kind | Who comes next finds | and | Cases |", "| --- | --- | --- | --- | --- |"]
    for step in PAIR_STEPS:
        of_step = [record for record in records if record.step == step]
        kinds: dict[tuple[str, str], list[CrashRecord]] = {}
        for kind in sorted({record.kind for record in of_step}):
            of_kind = [record for record in of_step if record.kind == kind]
            kinds.setdefault((_found(of_kind), _done(of_kind)), []).extend(of_kind)
        for (found, done), alike in kinds.items():
            names = "; ".join(sorted({record.kind for record in alike}))
            lines.append(f"| `{step}` | {names} | {found} | {done} | {_count(alike)} |")
    return lines


def _found(records: Sequence[CrashRecord]) -> str:
    """As it is right after the death; later the metastore aborts the transaction."""
    at_once = (Successor.NEXT_TRY.value, Successor.ANOTHER_RUN.value)
    found = sorted({record.found for record in records if record.successor in at_once})
    return "; or ".join(found or sorted({record.found for record in records}))


def _done(records: Sequence[CrashRecord]) -> str:
    deeds: dict[str, list[str]] = {}
    for record in sorted(records, key=_place):
        successors = deeds.setdefault(record.did, [])
        if record.successor not in successors:
            successors.append(record.successor)
    if len(deeds) == 1:
        return next(iter(deeds))
    return "; ".join(f"{', '.join(successors)}: {did}" for did, successors in deeds.items())


def _count(records: Sequence[CrashRecord]) -> str:
    passed = sum(record.result == PASSED for record in records)
    return f"{passed} of {len(records)} right"


def _version(record: CrashRecord) -> str:
    return record.metastore.partition(" ")[0]


def _place(record: CrashRecord) -> tuple[object, ...]:
    step, successor = PAIR_STEPS.index(record.step), _SUCCESSORS.index(record.successor)
    return record.metastore, record.table, record.kind, step, successor


if __name__ == "__main__":
    main()
