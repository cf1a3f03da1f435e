"""BuildKit's own parser of Dockerfiles, loaded when it is first asked.

It is written in Go, and Go's threads do not survive a fork: in a child of a process that has loaded it, it may hang.
"""

from __future__ import annotations

import sys
from typing import Any

_MODULE = "dockerfile"


def buildkit() -> Any:
    """Return the module ``dockerfile``, which is compiled and has no stubs."""
    import dockerfile  # type: ignore[import-not-found]

    return dockerfile


def may_fork() -> bool:
    """Whether a child of this process can parse Dockerfiles, too."""
    return _MODULE not in sys.modules
