"""``./release`` refuses what is not fit to be released, and builds what is fit for PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_acid import __version__
from tests.harness.release.distributions import CHECKSUMS, build, with_absolute_links, write_checksums
from tests.harness.release.tagged import RefusalError, Release, release_of
from tests.harness.wheel_environment import ROOT, run

SOURCE = "https://git.example.com/acid"
URLS = f"Source = {SOURCE}\nDocumentation = {SOURCE}/docs\nChangelog = {SOURCE}/log"
GIT = {f"GIT_{who}_{what}": "tester@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(repository: Path, *arguments: str) -> None:
    run("git", *arguments, cwd=repository, environment={**os.environ, **GIT})


def write(repository: Path, name: str, text: str) -> None:
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_text(text)


def commit(repository: Path, tag: str) -> None:
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "as it is released")
    git(repository, "tag", tag)


def setup_cfg_with(urls: str) -> str:
    return "[metadata]\nproject_urls =\n" + re.sub("^", "    ", urls, flags=re.M) + "\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One that may be released as 1.2.0, but for its tag."""
    git(tmp_path, "init", "--quiet")
    write(tmp_path, "airflow_provider_acid/__init__.py", '__version__ = "1.2.0"\n')
    write(tmp_path, "CHANGELOG.md", "## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n")
    write(tmp_path, "setup.cfg", setup_cfg_with(URLS))
    return tmp_path


def test_a_clean_tree_whose_tag_says_its_version_may_be_released(repository: Path) -> None:
    commit(repository, "1.2.0")
    assert release_of(repository, "1.2.0") == Release(repository, "1.2.0", SOURCE)


def changed(repository: Path) -> None:
    write(repository, "setup.cfg", "")


def new(repository: Path) -> None:
    write(repository, "airflow_provider_acid/new.py", "")


def committed_since(repository: Path) -> None:
    commit(repository, "later")


@pytest.mark.parametrize(
    ("then", "tag", "reason"),
    [
        (changed, "1.2.0", "the tree is not clean"),
        (new, "1.2.0", "airflow_provider_acid/new.py"),
        (committed_since, "1.2.0", "1.2.0 is not what is checked out"),
        (committed_since, "later", "the tag later is not the version 1.2.0"),
        (committed_since, "1.3.0", "there is no tag 1.3.0"),
    ],
)
def test_a_tree_that_is_not_the_tagged_version_is_refused(
    repository: Path, then: Callable[[Path], None], tag: str, reason: str
) -> None:
    commit(repository, "1.2.0")
    then(repository)
    with pytest.raises(RefusalError, match=re.escape(reason)):
        release_of(repository, tag)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("CHANGELOG.md", "## [Unreleased]\n\n## [1.1.0] - 2026-11-01\n", "no heading '## [1.2.0]"),
        ("CHANGELOG.md", "## [1.2.0]\n", "no heading '## [1.2.0]"),
        ("setup.cfg", "[metadata]\nname = acid\n", "names no Source"),
        ("setup.cfg", setup_cfg_with(f"Source = {SOURCE}"), "names no Documentation"),
        ("setup.cfg", setup_cfg_with(URLS.replace("https", "http")), "names no Source"),
    ],
)
def test_what_its_readers_would_miss_is_refused(repository: Path, name: str, text: str, reason: str) -> None:
    write(repository, name, text)
    commit(repository, "1.2.0")
    with pytest.raises(RefusalError, match=re.escape(reason)):
        release_of(repository, "1.2.0")


def test_the_command_says_why_it_refuses() -> None:
    answer = subprocess.run(["./release", "no-such-tag"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 1
    assert answer.stderr.startswith("release: ")
    assert "no-such-tag" in answer.stderr or "not clean" in answer.stderr


def tag_this_tree(repository: Path) -> None:
    """A repository of this tree as one would tag it, with addresses."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    for name in names:
        if name and (ROOT / name).is_file():
            (repository / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, repository / name)
    setup = (repository / "setup.cfg").read_text()
    write(repository, "setup.cfg", setup.replace("[metadata]\n", setup_cfg_with(URLS), 1))
    changelog = (repository / "CHANGELOG.md").read_text()
    write(repository, "CHANGELOG.md", changelog.replace("[Unreleased]", f"[{__version__}] - 2026-12-01", 1))
    git(repository, "init", "--quiet")
    commit(repository, __version__)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    repository = tmp_path_factory.mktemp("tagged")
    tag_this_tree(repository)
    return release_of(repository, __version__)


@pytest.fixture(scope="module")
def built(release: Release, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(release, tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("built"))


def test_wheel_and_source_distribution_are_built_and_named_by_the_version(built: tuple[Path, Path]) -> None:
    wheel, source = built
    assert wheel.name == f"airflow_provider_acid-{__version__}-py3-none-any.whl"
    assert source.name == f"airflow_provider_acid-{__version__}.tar.gz"


def test_the_source_distribution_can_be_tested_and_documented(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    assert {"run-tests", "docs/index.md", "tests/unit/test_release.py", "tools/setup-venv", ".importlinter"} <= set(
        members
    )
    assert members["run-tests"].mode & 0o111
    assert [name for name in members if name.startswith((".git/", ".venv", ".cache", "dist/"))] == []


@pytest.mark.parametrize(
    ("manifest", "metadata", "reason"),
    [
        ("", "version = 1.2.0", "lacks files of the tag; add them to MANIFEST.in: ['CHANGELOG.md', 'docs/page.md']"),
        ("graft docs", "version = 1.2.0\nlong_description = file: docs/page.md", "['x.svg']"),
        ("graft docs", "version = 1.3.0\nlong_description = file: README.md", "has the version 1.3.0"),
    ],
)
def test_what_is_built_must_be_whole_and_fit_for_its_readers(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, manifest: str, metadata: str, reason: str
) -> None:
    write(repository, "pyproject.toml", '[build-system]\nrequires = ["setuptools"]\n')
    write(
        repository, "setup.cfg", f"[metadata]\nname = acid\n{metadata}\n[options]\npackages = airflow_provider_acid\n"
    )
    write(repository, "MANIFEST.in", f"{manifest}\n{manifest and 'include CHANGELOG.md'}\n")
    write(repository, "README.md", "![x](docs/x.svg)")
    write(repository, "docs/page.md", "![x](x.svg)")
    commit(repository, "1.2.0")
    work = tmp_path_factory.mktemp("work")
    with pytest.raises(RefusalError, match=re.escape(reason)):
        build(Release(repository, "1.2.0", SOURCE), work, work / "built")


def test_pictures_and_links_lead_to_the_tag() -> None:
    text = "![a picture](docs/a.svg) [a page](docs/a.md#part), [here](#part), [there](https://example.com/x)"
    assert with_absolute_links(text, Release(Path(), "1.2.0", SOURCE)) == (
        f"![a picture]({SOURCE}/raw/1.2.0/docs/a.svg) [a page]({SOURCE}/blob/1.2.0/docs/a.md#part), "
        "[here](#part), [there](https://example.com/x)"
    )


def test_checksums_are_those_that_the_usual_program_checks(built: tuple[Path, Path]) -> None:
    sums = write_checksums(*built)
    assert sums.name == CHECKSUMS
    assert len(run("sha256sum", "--check", sums.name, cwd=sums.parent).splitlines()) == len(built)
