"""Adapters: each turns the records of one kind of source into task folders in memory, one after the other."""
