"""Training objectives: one file each, by name in `registry.py`."""
