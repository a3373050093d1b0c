"""Measures of pre-trained models that need no fine-tuning, one file each; `registry.py` finds them by name."""
