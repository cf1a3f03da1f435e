"""Shared dependencies of agents and verifiers: made once, cached, read-only for every trial."""
