"""Sphinx's settings: ``./docs-site`` builds the site, without network; a broken link or an unknown name is an error."""

from __future__ import annotations

from sphinx.application import Sphinx

from airflow_provider_acid import __version__
from airflow_provider_acid.options import OPTIONS

project = "Airflow Hive ACID compaction"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]

html_theme = "furo"
html_title = project
html_copy_source = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_class_signature = "mixed"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False

OPTIONS_MARK = ".. options of hive_acid"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", put_options_table)


def put_options_table(app: Sphinx, page: str, content: list[str]) -> None:
    """The reference asks for the table of options by a comment."""
    content[0] = content[0].replace(OPTIONS_MARK, options_table())


def options_table() -> str:
    """All options of ``[hive_acid]``, with type, default and meaning."""
    rows = [("option", "type", "default", "meaning")]
    for option in OPTIONS:
        default = f"``{option.default}``" if option.default else "-"
        rows.append((f"``{option.name}``", option.type, default, option.description.replace("*", r"\*")))
    lines = [f"   {'*' if place == 0 else ' '} - {cell}" for row in rows for place, cell in enumerate(row)]
    return "\n".join([".. list-table::", "   :header-rows: 1", "", *lines])
