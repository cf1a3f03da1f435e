"""A contract fixes a run: tasks by their content, stages, settings, images, runtimes, and what is expected."""
