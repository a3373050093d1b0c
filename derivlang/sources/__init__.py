"""Sources: where a corpus is, in which format, with which labels. Named ones, paths, the hub, derived sets."""
