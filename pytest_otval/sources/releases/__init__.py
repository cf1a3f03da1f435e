"""Tasks from pairs of releases of one package: what differs between them, and which tests tell."""
