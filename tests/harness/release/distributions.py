"""The wheel and the source distribution of a release: built, checked, and their checksums."""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.errors import ExceptionGroup
from packaging.metadata import Metadata

from tests.harness.release.tagged import RefusalError, Release
from tests.harness.wheel_environment import run

CHECKSUMS = "SHA256SUMS"
_RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)\s]+)\)")
"""A link or picture of Markdown to a file of the repository."""


def build(release: Release, work: Path, target: Path) -> tuple[Path, Path]:
    """Wheel and source distribution of a clean checkout of the tag, whose README is made fit for PyPI.

    The wheel is built from the source distribution, so that the one has all that the other needs.

    :param work: a folder for the checkout.
    :param target: an empty folder for the two.
    """
    checkout = work / "checkout"
    run("git", "clone", "--quiet", "--branch", release.version, release.repository, checkout, cwd=work)
    readme = checkout / "README.md"
    readme.write_text(with_absolute_links(readme.read_text(encoding="utf-8"), release), encoding="utf-8")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, cwd=checkout)
    (wheel,), (source,) = target.glob("*.whl"), target.glob("*.tar.gz")
    _check_files(release, source)
    for distribution in (wheel, source):
        _check_metadata(release, distribution)
    return wheel, source


def with_absolute_links(text: str, release: Release) -> str:
    """Markdown whose links and pictures lead to the files of the tag."""

    def absolute(found: re.Match[str]) -> str:
        picture, label, path = found.groups()
        return f"{picture}{label}({release.source}/{'raw' if picture else 'blob'}/{release.version}/{path})"

    return _RELATIVE.sub(absolute, text)


def write_checksums(*distributions: Path) -> Path:
    """Beside the distributions, in the form of ``sha256sum --check``."""
    path = distributions[0].with_name(CHECKSUMS)
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(distributions)]
    path.write_text("".join(lines))
    return path


def _check_files(release: Release, source: Path) -> None:
    """The source distribution has every file of the tag."""
    tagged = run("git", "ls-files", "-z", cwd=release.repository).split("\0")
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    if missing := sorted({name for name in tagged if name} - packed):
        raise RefusalError(f"{source.name} lacks files of the tag; add them to MANIFEST.in: {missing}")


def _check_metadata(release: Release, distribution: Path) -> None:
    """What PyPI asks for, and what its readers see.

    :raises RefusalError: something of it is missing or malformed.
    """
    raw = _metadata(distribution)
    try:
        metadata = Metadata.from_email(raw, validate=True)
    except ExceptionGroup as invalid:
        raise RefusalError(f"{distribution.name}: {[str(error) for error in invalid.exceptions]}") from invalid
    if str(metadata.version) != release.version:
        raise RefusalError(f"{distribution.name} has the version {metadata.version}")
    description = metadata.description or ""
    if not description or _RELATIVE.search(description):
        places = [place for _, _, place in _RELATIVE.findall(description)]
        raise RefusalError(f"{distribution.name} has no description, or one with links that lead nowhere: {places}")


def _metadata(distribution: Path) -> bytes:
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as archive:
            (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
            return archive.read(name)
    with tarfile.open(distribution) as archive:
        file = archive.extractfile(f"{distribution.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert file is not None
        return file.read()
