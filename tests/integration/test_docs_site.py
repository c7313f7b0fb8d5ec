"""The documentation builds as a site, and what it must not say is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "--builder", "html", "--fail-on-warning", "--keep-going", "--quiet"]
    return subprocess.run([*command, docs, site], capture_output=True, text=True, cwd=ROOT, timeout=300)


@pytest.fixture(scope="module")
def site() -> Path:
    built = subprocess.run(["./docs-site"], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / ".cache" / "site"


def test_every_page_is_there(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for kind in ("md", "rst") for path in (ROOT / "docs").rglob(f"*.{kind}")]
    pages = {path.with_suffix(".html") for path in sources}
    assert {page for page in pages if not (site / page).is_file()} == set()


def test_the_reference_is_made_from_the_docstrings(site: Path) -> None:
    reference = (site / "reference.html").read_text()
    assert "<strong>max_active_partitions</strong> – partitions in work at the same time" in reference
    assert "NameTakenError" in reference
    assert "cleaner_lock_timeout_action" in (site / "options.html").read_text()


def test_the_readme_is_the_first_page_and_its_links_lead_to_pages(site: Path) -> None:
    start = (site / "index.html").read_text()
    assert "No row is ever lost, doubled, hidden or brought back" in start
    assert 'href="deploy.html"' in start


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[there](concepts.md#concepts)", ""),
        ("[gone](no-such-page.md)", "no-such-page.md"),
        ("[gone](concepts.md#no-such-heading)", "no-such-heading"),
        (":::{no-such-directive}\n:::", "no-such-directive"),
    ],
)
def test_a_link_or_name_that_leads_nowhere_fails_the_build(tmp_path: Path, text: str, complaint: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(ROOT / "docs" / "conf.py", docs)
    (docs / "index.md").write_text(f"# Start\n\n{text}\n")
    (docs / "concepts.md").write_text("---\norphan: true\n---\n\n# Concepts\n")
    built = build(docs, tmp_path / "site")
    assert (built.returncode == 0) is (complaint == "")
    assert complaint in built.stderr
