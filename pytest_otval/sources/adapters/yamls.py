"""YAML of strangers: plain values only, and no aliases, with which a short text can become an endless value."""

from __future__ import annotations

from typing import Any

import yaml

from pytest_otval.sources.adapters.base import Reason, RefusalError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(source: str, what: str, reason: Reason = "unreadable") -> Any:
    """Return the value of a document. Raises RefusalError."""
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source, Loader=_Loader)):
            raise RefusalError(reason, f"{what} has aliases, which are not followed")
        return yaml.load(source, Loader=_Loader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise RefusalError(reason, f"{what} is no YAML{where}") from None
