"""The documentation site: sphinx-build -W docs docs/_build (all pages are built and executed; nothing is fetched)."""

from __future__ import annotations

import inspect
import os
import re
import runpy
import shutil
from copy import copy
from pathlib import Path
from typing import Any

from myst_nb.core import render
from myst_nb.core.utils import coalesce_streams as _coalesce_streams

import derivlang

HERE = Path(__file__).parent

project = "derivlang"
author = "The derivlang authors"
version = release = derivlang.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build", "design", "last-run.md"]  # for those who read or change the code
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # types of signatures: other packages, and classes without an entry
default_role = "literal"  # docstrings write `name`, as the pages do
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# Pages with {code-cell} blocks and the notebooks of examples/ are executed, each in an empty folder.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"  # a page shows no bars
os.environ.pop("DERIVLANG_DATA", None)
nb_execution_mode = "force"  # while writing: sphinx-build -D nb_execution_mode=off
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_ipywidgets_js = {}  # no page loads a script from another machine
(HERE / "examples").mkdir(exist_ok=True)
for notebook in (HERE.parent / "examples").glob("*.ipynb"):
    shutil.copy(notebook, HERE / "examples")
for writer in ("errors", "options", "specs"):  # pages of reference that follow from the package
    (HERE / "reference" / f"{writer}.md").write_text(runpy.run_path(str(HERE / f"{writer}.py"))["page"](), "utf-8")

autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = "derivlang"
html_static_path = ["_static", "../derivlang/display/letters"]  # the second: fonts of the letters that scripts write
html_css_files = ["letters.css", "site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    """Connect what the configuration adds to Sphinx."""
    app.connect("autodoc-process-docstring", _bold_parameters)
    render.coalesce_streams = _as_written


def _as_written(outputs: list[Any]) -> list[Any]:
    """Join the parts of each stream as they were written, then let myst_nb do the rest.

    myst_nb ends each part with a line end, but a part ends wherever the kernel's buffer was full:
    ["one li", "ne\\n"] is "one line", not two.
    """
    streams: dict[str, Any] = {}
    joined = []
    for output in outputs:
        name = output["name"] if output["output_type"] == "stream" else None
        if name in streams:
            streams[name]["text"] += output["text"]
            continue
        joined.append(copy(output))
        if name is not None:
            streams[name] = joined[-1]
    return _coalesce_streams(joined)


def _bold_parameters(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Set the parameters that a docstring describes as `name: what it is.` in bold."""
    try:
        names = "|".join(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return
    if names:
        lines[:] = [
            line if ">>>" in line else re.sub(rf"(^|[.,] )({names}):(?= )", r"\1**\2**:", line) for line in lines
        ]
