"""Agents that a model drives."""
