"""The key of an endpoint: kept where no text, log or traceback shows it, and taken out of what others say."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from pytest_otval.core import OtvalUsageError

SHOWN = "[key]"
"""What stands in a text in place of a key."""
_SHORT = 8
"""What is shorter (``EMPTY``, ``none``) keeps no secret, and would be found in any text."""


class Secret:
    """A key; ``reveal`` alone gives it."""

    __slots__ = ("_found", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        forms = sorted(set(_forms(text)), key=len, reverse=True) if len(text) >= _SHORT else []
        self._found = re.compile("|".join(map(re.escape, forms))) if forms else None

    @classmethod
    def from_environment(cls, variable: str) -> Secret:
        """Return the key that a variable holds; ``NO_KEY`` where no variable is named. Raises OtvalUsageError."""
        if not variable:
            return NO_KEY
        text = os.environ.get(variable, "").strip()
        if not text:
            raise OtvalUsageError(f"{variable} is not set: the cluster profile says that it holds the endpoint's key")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise OtvalUsageError(f"{variable} holds no key: there are blanks or other characters that no key has")
        return cls(text)

    def reveal(self) -> str:
        """Return the key itself: for the header of a request, and nothing else."""
        return self._text

    def scrub(self, text: str) -> str:
        """Return a text without the key, also where it is quoted as JSON, URL or base64."""
        return self._found.sub(SHOWN, text) if self._found else text

    def scrub_all(self, value: Any) -> Any:
        """Return JSON data without the key in any of its texts."""
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, Mapping):
            return {self.scrub_all(key): self.scrub_all(one) for key, one in value.items()}
        return [self.scrub_all(one) for one in value] if isinstance(value, list) else value

    def __repr__(self) -> str:
        return f"Secret({SHOWN!r})"

    def __reduce__(self) -> str:
        raise TypeError("a key is not written anywhere")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


NO_KEY = Secret("")
"""Of endpoints that ask for none."""


def _forms(text: str) -> Iterator[str]:
    yield text
    yield json.dumps(text)[1:-1]
    yield repr(text)[1:-1]
    yield quote(text)
    yield quote(text, safe="")
    # Whatever stands before it in what was encoded, one of three phases of it is there, but for its ends.
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + text.encode()).decode().rstrip("=")
        yield encoded[(before * 4 + 2) // 3 : -1]
