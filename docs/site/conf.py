"""Settings of Sphinx for the documentation site. ``make docs`` builds it from the pages in ``docs``."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))  # for the extension in this folder

PAGES_OF_FILES = {"../README.md": "install.md", "../CHANGELOG.md": "changelog.md"}
"""The pages of the site to which links to these files lead."""

project = "Covey"
author = "the authors of Covey"
root_doc = "index"
extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design", "openapi_reference"]
exclude_patterns = ["site", "examples"]
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # examples are shortened with …, which no lexer knows
openapi_document = Path(__file__).parents[2] / "openapi.json"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # links to headings work as on a code host

html_theme = "furo"
html_title = "Covey"
html_static_path = ["static"]
html_css_files = ["covey.css"]
html_copy_source = False
html_show_copyright = False
pygments_style = "tango"
pygments_dark_style = "monokai"


def link_to_pages(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace links to files outside ``docs`` by links to pages of the site."""
    up = "../" * docname.count("/")
    for file, page in PAGES_OF_FILES.items():
        source[0] = source[0].replace(f"]({up}{file})", f"]({up}{page})")


def setup(app: Sphinx) -> None:
    """Register what is special about this site."""
    app.connect("source-read", link_to_pages)
