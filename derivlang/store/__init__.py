"""Derived sets on disk: Parquet shards, manifest and journal; how they are written, read, verified and undone."""
