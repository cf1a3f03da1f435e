"""Which paths a task's instructions name."""

from __future__ import annotations

import re

from pytest_otval.task.load import Step
from pytest_otval.task.reading import NotReadableError, read_regular

_PATH = re.compile(r"(?<![\w/.:-])/(?:[\w+-][\w.+-]*/)+[\w+-][\w.+-]*")
_OTHERS = ("/tests/", "/logs/", "/solution/", "/proc/", "/sys/", "/dev/", "/usr/", "/bin/", "/etc/", "/lib")


_MAX_BYTES = 1024 * 1024


def instruction_text(step: Step) -> str:
    """Return a step's instruction; empty for one that cannot be read, which is a finding of the static stage."""
    try:
        return read_regular(step.instruction, _MAX_BYTES).decode("utf-8", "replace")
    except (NotReadableError, FileNotFoundError, NotADirectoryError):
        return ""


def paths_named(text: str) -> list[str]:
    """Return the absolute paths in a text, each once, but those of the system and of graders."""
    found = (path.rstrip(".") for path in _PATH.findall(text))
    return [path for path in dict.fromkeys(found) if not path.startswith(_OTHERS)]
