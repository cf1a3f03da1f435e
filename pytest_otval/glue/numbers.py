"""Numbers on the command line."""

from __future__ import annotations

import argparse
import math


def positive_integer(text: str) -> int:
    """Return a number of at least 1. Raises ArgumentTypeError, which argparse shows."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def positive_number(text: str) -> float:
    """Return a finite number above 0. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return number
