"""Data of pages as scripts that call a function of the page: a page opened from a folder may load nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def script(path: Path, function: str, *arguments: Any) -> None:
    """Write a script that calls a function of the page. Raises OSError."""
    values = ",".join(script_json(argument) for argument in arguments)
    path.write_text(f'"use strict";\notval.{function}({values});\n', encoding="ascii")


def script_json(value: Any) -> str:
    """Return JSON that stays data wherever it is put: no end of a script or comment, no line end of JavaScript's."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
