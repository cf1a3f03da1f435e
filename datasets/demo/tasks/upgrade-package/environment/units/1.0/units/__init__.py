"""Conversion of lengths."""


def miles_to_km(miles):
    """Return kilometres."""
    return miles * 1.6
