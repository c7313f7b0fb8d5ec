"""All subjects, by their dotted paths."""

from __future__ import annotations

from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"

SUBJECTS = (
    "tests.fuzz.health_files.FIGURES",
    "tests.fuzz.health_files.HISTORY",
    "tests.fuzz.http_answers.SUBJECT",
    "tests.fuzz.names.SUBJECT",
    "tests.fuzz.orc_tails.STRIPE_FOOTERS",
    "tests.fuzz.orc_tails.TAILS",
    "tests.fuzz.plans.SUBJECT",
    "tests.fuzz.replies.SUBJECT",
    "tests.fuzz.results.SUBJECT",
    "tests.fuzz.sealed_files.SUBJECT",
    "tests.fuzz.side_files.FLUSH_LENGTHS",
    "tests.fuzz.side_files.JOURNALS",
    "tests.fuzz.side_files.METADATA",
    "tests.fuzz.side_files.REPLACED",
    "tests.fuzz.webhdfs_answers.SUBJECT",
)
