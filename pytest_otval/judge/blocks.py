"""Text of strangers within a prompt: in blocks that it cannot end, and with no sign in it that nobody would see."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from pytest_otval.core import printable

ID_CHARS = 32
MOST_NAME = 200
"""Characters of a name, once it is printable."""
_SPECIAL = re.compile(r"[^\n\t\x20-\x7e]+")


def block_id(texts: Iterable[str]) -> str:
    """Return the id of blocks that hold these texts.

    It is a digest of them: the same texts have the same id, so that an answer can be found again, and no text can hold
    the id of the block that it stands in.
    """
    total = hashlib.sha256()
    for text in texts:
        data = text.encode(errors="surrogatepass")
        total.update(f"{len(data)} ".encode() + data)
    return total.hexdigest()[:ID_CHARS]


def block(id: str, name: str, text: str) -> str:
    """Return a block of a prompt, ended by a line end."""
    end = "" if text.endswith("\n") or not text else "\n"
    return f'<data {id} name="{readable_name(name)}">\n{text}{end}</data {id}>\n'


def readable(text: str) -> str:
    """Return a text in which whatever shows no sign is an escape: controls, invisible and reordering characters.

    Lines stay lines, those of Windows, too.
    """
    return _SPECIAL.sub(lambda found: printable(found[0]), text.replace("\r\n", "\n"))


def readable_name(name: str) -> str:
    """Return a name of one line that fits between quotes; of a long one its end."""
    shown = printable(name).replace('"', "'")
    return shown if len(shown) <= MOST_NAME else f"...{shown[3 - MOST_NAME :]}"
