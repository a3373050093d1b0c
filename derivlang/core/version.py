"""The version of the package, that of the commit: the build writes it to `derivlang/_version.py` (pyproject.toml)."""

try:
    from derivlang._version import __version__ as __version__
except ImportError:  # a checkout that was never installed
    __version__ = "0+unknown"
