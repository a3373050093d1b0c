"""Training objectives, one file each; `registry.py` finds them by name."""
