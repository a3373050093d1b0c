"""Making sets: options, events, job and tasks, plan, engines, manifest; `make` and `parse`."""
