"""The documentation site: sphinx-build -W docs docs/_build (all pages are built and executed; nothing is fetched)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import derivlang

HERE = Path(__file__).parent

project = "derivlang"
author = "The derivlang authors"
version = release = derivlang.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types of signatures: other packages, and classes without an entry
default_role = "literal"  # docstrings write `name`, as the pages do
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# Pages with {code-cell} blocks and the notebooks of examples/ are executed, each in an empty folder.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("DERIVLANG_DATA", None)
nb_execution_mode = "force"  # while writing: sphinx-build -D nb_execution_mode=off
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_ipywidgets_js = {}  # no page loads a script from another machine
if (HERE.parent / "examples").is_dir():
    shutil.copytree(HERE.parent / "examples", HERE / "examples", dirs_exist_ok=True)

autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = "derivlang"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
