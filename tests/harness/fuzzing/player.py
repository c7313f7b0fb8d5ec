"""Plays the cases of a subject in a process of their own, since a crash or a hang is one of the things looked for."""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import sys
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from airflow_provider_acid.exceptions import AcidError
from tests.harness.fuzzing.mutation import case_bytes
from tests.harness.fuzzing.subject import Subject, subject_at

MOST_SECONDS = 5.0
"""One case that takes longer hangs."""

_START_SECONDS = 120.0
_WARM_UP_CASES = 20


class FuzzError(Exception):
    """A case that ended otherwise than by an answer or by one of the project's errors."""


@dataclass(frozen=True)
class _Begun:
    case: str


@dataclass(frozen=True)
class _Found:
    case: str
    what: str


def play_cases(path: str, cases: range, corpus: Path) -> Counter[str]:
    """Play the corpus of a subject and then some of its cases.

    :param path: the dotted path of the subject.
    :param corpus: the folder with a folder for each subject.
    :returns: how many were read, and how many were refused by which error.
    :raises FuzzError: the first case that crashed, hung, took too much memory, raised anything else than the project's
        errors or gave something wrong.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_play, args=(path, cases, corpus, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        return _watched(path, ours)
    finally:
        process.kill()
        process.join()
        ours.close()


def _watched(path: str, reports: Connection) -> Counter[str]:
    case, seconds = "the start", _START_SECONDS
    while reports.poll(seconds):
        try:
            report = reports.recv()
        except EOFError:
            raise FuzzError(f"{path}: the process died at {case}") from None
        if isinstance(report, Counter):
            return report
        if isinstance(report, _Found):
            raise FuzzError(f"{path}: {report.case}: {report.what}")
        assert isinstance(report, _Begun)
        case, seconds = report.case, MOST_SECONDS
    raise FuzzError(f"{path}: {case} hangs: no end after {seconds:g} s")


def _play(path: str, cases: range, corpus: Path, reports: Connection) -> None:
    faulthandler.enable()
    subject = subject_at(path)
    seeds = subject.seeds()
    figures: Counter[str] = Counter()
    # What is imported and cached at the first uses is nobody's fault.
    for seed in list(seeds) * (_WARM_UP_CASES // len(seeds) + 1):
        subject.read(seed)
    for file in sorted((corpus / subject.name).glob("*")):
        reports.send(_Begun(f"corpus {file.name}"))
        _play_one(subject, f"corpus {file.name}", file.read_bytes(), figures, reports)
    for number in cases:
        reports.send(_Begun(f"case {number}"))
        _play_one(subject, f"case {number}", case_bytes(subject.name, number, seeds), figures, reports)
    reports.send(figures)


def _play_one(subject: Subject, case: str, document: bytes, figures: Counter[str], reports: Connection) -> None:
    before = _resident_bytes()
    try:
        subject.read(document)
        figures["read"] += 1
    except AcidError as error:
        figures[type(error).__name__] += 1
    except AssertionError as error:
        reports.send(_Found(case, f"wrong: {error}"))
        raise
    except BaseException as error:
        reports.send(_Found(case, f"{type(error).__name__}, which is none of the project's errors: {error}"))
        raise
    grown = _status_bytes("VmHWM") - before
    if grown > subject.most_bytes:
        reports.send(_Found(case, f"took {grown:,} bytes; {subject.most_bytes:,} are allowed"))
        sys.exit(1)


def _resident_bytes() -> int:
    """The process's memory now; its peak, ``VmHWM``, is measured anew from here."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status_bytes("VmRSS")


def _status_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) * 1024
