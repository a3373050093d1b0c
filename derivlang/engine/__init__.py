"""Making a derived set: a plan of shard tasks, engines that run it, and the run from source to manifest."""
