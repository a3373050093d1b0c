"""A package that adds two transforms, three sources, a format, a layer and a parser to derivlang by entry points."""
