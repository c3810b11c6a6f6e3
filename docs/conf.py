"""Sphinx's settings: `sphinx-build -W -b html docs <out>` builds the site, offline, with warnings as errors."""

from __future__ import annotations

import re
from typing import Any

import rota

project = "rota"
author = "The rota authors"
project_copyright = author
release = version = rota.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"rota {release}"
html_static_path = ["_static"]
html_css_files = ["rota.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
default_role = "code"  # docstrings write `name` for code
python_use_unqualified_type_names = True

_VALUE = re.compile(r"= (\w+)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")


def setup(app: Any) -> None:  # noqa: ANN401  # Sphinx gives its application
    """Connects what follows."""
    app.connect("autodoc-process-signature", _shortened)


def _shortened(*given: Any) -> tuple[str, str] | None:
    """A signature whose defaults are whole values, such as a machine with all its facts, names them only."""
    signature, returned = given[-2:]
    return (_VALUE.sub(r"= \1(...)", signature), returned) if signature else None
