"""Sources: where a corpus lies, in which format, with which labels; named ones, paths, the hub, derived sets."""
