"""Which paths a task's instructions name."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_otval.task.load import Step
from pytest_otval.task.reading import NotReadableError, read_regular

_PART = r"\.?[\w+-][\w.+-]*"
_PATH = re.compile(rf"(?<![\w/.:-])/(?:{_PART}/)+{_PART}")
_OTHERS = re.compile(r"/(?:tests|logs|solution|proc|sys|dev|usr|s?bin|etc|lib(?:32|64|x32)?)/")
"""Folders of graders and of the system."""


_MAX_BYTES = 1024 * 1024


def instruction_text(step: Step) -> str:
    """Return a step's instruction; empty for one that cannot be read, which is a finding of the static stage."""
    return text_of(step.instruction)


def text_of(file: Path) -> str:
    """Return the text of a file of a task; empty for one that cannot be read."""
    try:
        return read_regular(file, _MAX_BYTES).decode("utf-8", "replace")
    except (NotReadableError, FileNotFoundError, NotADirectoryError):
        return ""


def paths_named(text: str) -> list[str]:
    """Return the absolute paths in a text, each once, but those of the system and of graders."""
    found = (path.rstrip(".") for path in _PATH.findall(text))
    return [path for path in dict.fromkeys(found) if not _OTHERS.match(path)]
