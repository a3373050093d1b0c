"""A package that adds two transforms and a source to derivlang by entry points."""
