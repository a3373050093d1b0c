"""Derived sets on disk: Parquet shards, a manifest, a journal; written, read, verified, undone."""
