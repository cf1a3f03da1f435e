"""Known faults, put into copies of sound tasks and attempts by text alone: nothing of a task is run."""
