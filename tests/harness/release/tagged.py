"""What may be released: a tag that says the version, of a tree that is exactly as tagged."""

from __future__ import annotations

import configparser
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


class RefusalError(Exception):
    """Nothing is released; the text says why, and what to do."""


@dataclass(frozen=True)
class Release:
    """What is to be released.

    :param repository: a work tree that is as its tag says.
    :param version: of the package, and the tag's name.
    :param source: the address of the repository, by which PyPI's readers find pictures and documents.
    """

    repository: Path
    version: str
    source: str


def release_of(repository: Path, tag: str) -> Release:
    """The release of a tag that is checked out.

    :raises RefusalError: it is not checked out, or tag, version, changelog and addresses do not fit together.
    """
    if changed := _git(repository, "status", "--porcelain"):
        raise RefusalError(f"the tree is not clean; commit or remove first:\n{changed}")
    commit = _git(repository, "rev-parse", "--quiet", "--verify", f"refs/tags/{tag}^{{commit}}")
    if not commit:
        raise RefusalError(f"there is no tag {tag}: git tag --annotate {tag}")
    if commit != _git(repository, "rev-parse", "HEAD"):
        raise RefusalError(f"{tag} is not what is checked out: git checkout {tag}")
    version = _version(repository)
    if tag != version:
        raise RefusalError(f"the tag {tag} is not the version {version} of airflow_provider_acid/__init__.py")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", _read(repository / "CHANGELOG.md"), re.M):
        raise RefusalError(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'; say there what is new")
    return Release(repository, version, _source(repository))


def _source(repository: Path) -> str:
    parser = configparser.ConfigParser()
    parser.read(repository / "setup.cfg")
    urls = parser.get("metadata", "project_urls", fallback="").splitlines()
    found = dict(re.split(r"\s*=\s*", line, maxsplit=1) for line in urls if line)
    # Airflow shows Documentation as the provider's documentation-url.
    for name in ("Source", "Documentation", "Changelog"):
        if not found.get(name, "").startswith("https://"):
            raise RefusalError(
                f"project_urls of setup.cfg names no {name}: say 'Source = https://…', where the project lives"
            )
    return found["Source"].rstrip("/")


def _version(repository: Path) -> str:
    found = re.search(r'^__version__ = "(.+)"$', _read(repository / "airflow_provider_acid" / "__init__.py"), re.M)
    return found[1] if found else "(none)"


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _git(repository: Path, *arguments: str) -> str:
    """What git answers; "" where it refuses."""
    answer = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else ""
