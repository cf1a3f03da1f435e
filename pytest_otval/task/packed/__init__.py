"""Datasets whose tasks are packed into files: Parquet, tar or squashfs.

A module a form reads names and one task's entries; ``unpack`` alone writes them.
"""
