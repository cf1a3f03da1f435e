"""Language models: how they are asked, the agents that they drive, and what their attempts say about a task."""
