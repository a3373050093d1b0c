"""Studies: grids of runs in a TOML file, from data to report (docs/studies/writing.md)."""
