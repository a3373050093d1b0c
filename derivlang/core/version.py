"""The version of the package, that of the commit: the build writes it to `derivlang/_version.py` (pyproject.toml).

0.2.0                       the commit with the tag v0.2.0
0.2.1.dev3+g1a2b3c4         three commits after it
0.1.0.dev0                  built without git, 0+unknown: a checkout that was never installed
"""

import re

try:
    from derivlang._version import __version__ as __version__
except ImportError:  # a checkout that was never installed
    __version__ = "0+unknown"


def with_commit(version: str) -> str:
    """Return a version for people, with the commit that it is of: `0.2.0 (tag v0.2.0)`, `… (commit 1a2b3c4)`."""
    found = re.search(r"\+g([0-9a-f]+)", version)
    if found:
        return f"{version} (commit {found[1]})"
    return f"{version} (tag v{version})" if re.fullmatch(r"[0-9.]+((a|b|rc|\.post)[0-9]+)?", version) else version
