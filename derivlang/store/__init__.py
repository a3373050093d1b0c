"""Derived sets on disk: Parquet shards, records and the manifest; how they are written, read, verified and undone."""
