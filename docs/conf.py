"""Sphinx's settings: ``./docs-site`` builds the site, without network; a broken link or an unknown name is an error."""

from __future__ import annotations

from airflow_provider_acid import __version__

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
