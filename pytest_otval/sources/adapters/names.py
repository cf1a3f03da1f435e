"""Names of records as names of tasks, and back: what cannot stand in a node id is written as ``_xHH``."""

from __future__ import annotations

import re

MAX_NAME = 200
"""Of a task's name; file systems allow 255 for a folder, and temporary names are longer than the folder's own."""

_ESCAPE = re.compile(r"_x([0-9A-F]{2})")
_UNFIT = re.compile(rb"[^A-Za-z0-9._-]|^\.|_(?=x[0-9A-F]{2})")


def encode_name(name: str) -> str:
    """Return the name of a record's task; most stay as they are.

    Each byte of its UTF-8 that cannot stand in a node id becomes ``_x`` and two hexadecimal digits, and so do a dot in
    front, which would hide the folder, and an underscore that would be read as such an escape. Raises ValueError for
    an empty or too long name, and for one with control characters or without UTF-8.
    """
    if not name:
        raise ValueError("has no name")
    if not name.isprintable():
        raise ValueError("has a name with characters that cannot be shown")
    try:
        encoded = _UNFIT.sub(lambda found: b"_x%02X" % found[0][0], name.encode()).decode("ascii")
    except UnicodeEncodeError:
        raise ValueError("has a name that is no UTF-8") from None
    if len(encoded) > MAX_NAME:
        raise ValueError(f"has a name of more than {MAX_NAME} characters")
    return encoded


def decode_name(name: str) -> str:
    """Return the record's name that ``encode_name`` made a task's name from."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), name).encode("latin-1").decode("utf-8")
