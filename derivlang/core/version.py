"""The version of the package, with its commit: the build writes it to `derivlang/_version.py` (pyproject.toml).

0.4.0                       the commit with the tag v0.4.0, or built without git
0.4.0+g1a2b3c4              any other commit
0+unknown                   a checkout that was never installed
"""

import re

try:
    from derivlang._version import __version__ as __version__
except ImportError:  # a checkout that was never installed
    __version__ = "0+unknown"


def with_commit(version: str) -> str:
    """Return a version for people: `0.4.0+g1a2b3c4`  ->  `0.4.0 (commit 1a2b3c4)`."""
    match = re.fullmatch(r"(.+)\+g([0-9a-f]+)(.*)", version)
    return f"{match[1]} (commit {match[2]}{', changed' if match[3] else ''})" if match else version
