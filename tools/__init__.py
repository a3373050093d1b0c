"""Programs for maintainers: what makes the models of the package, and the numbers of its pages. Not installed."""
