"""Lines of text, made safe to show where a task wrote them: no control of the terminal or of the reading direction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_ANSI_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LINE_ENDS = re.compile(r"\r\n?")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"  # invisible, line ends, bidirectional
    "\ud800-\udfff\ufffe\uffff"  # lone surrogates and what no XML file may hold
    "\U000e0000-\U000e007f]"  # tags: invisible letters
)
_MANY_DOTS = "…"

Style = Literal["", "title", "good", "bad", "warn"]


@dataclass(frozen=True, slots=True)
class Text:
    """A line and how it may be coloured."""

    text: str
    style: Style = ""


def clean(text: str) -> str:
    r"""Return lines of text as a person may see them.

    Colours are dropped, carriage returns end lines, and what is invisible or steers a terminal or the direction of
    reading is written out, as ``\x1b`` or ``\u202e``.
    """
    plain = _LINE_ENDS.sub("\n", _ANSI_COLOURS.sub("", text))
    return _UNSAFE.sub(lambda found: _written_out(ord(found.group())), plain)


def _written_out(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, most: int | None = None) -> str:
    """Return text as one clean line of at most ``most`` characters."""
    if most is not None:
        # What follows is cut anyway; one character may become ten.
        text = text[: most + 1]
    line = " ".join(clean(text).split())
    return line if most is None or len(line) <= most else line[: most - 1] + _MANY_DOTS


def last_line(text: str) -> str:
    """Return the last line that is not blank, not yet clean; empty where there is none."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")
