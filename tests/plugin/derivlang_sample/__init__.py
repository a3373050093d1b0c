"""A package that adds two transforms, a source and a parser to derivlang by entry points."""
