"""Proposes how a task's test script can do without what the agent may have changed."""
