"""A package that adds to derivlang by entry points: see its `pyproject.toml`."""
