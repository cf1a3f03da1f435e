"""Scripts that solve nothing and want to be paid all the same."""
