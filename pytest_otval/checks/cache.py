"""Findings of tasks that did not change: kept by content digest, settings that matter, and version of the checks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_otval.checks.allow import DatasetAllows
from pytest_otval.core import Finding
from pytest_otval.kept import KEY_CHARS, Kept


@dataclass(frozen=True, slots=True)
class Subject:
    """All that findings depend on, but for the checks."""

    dataset: str
    task: str
    digest: str
    oracle: str
    allows: DatasetAllows

    @property
    def key(self) -> str:
        """Return what stands for it in the cache."""
        facts = [self.dataset, self.task, self.digest, self.oracle]
        for entry in self.allows.allow:
            if entry.covers(self.task):
                facts += [entry.check, entry.reason, str(entry), str(entry.names_one)]
        if self.allows.harbor_lint:
            facts.append(json.dumps(self.allows.harbor_lint, sort_keys=True, default=str))
        return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:KEY_CHARS]


class FindingsCache:
    """Findings by subject; whatever is wrong with the folder, nothing is found in it and no more."""

    def __init__(self, folder: Path, version: str) -> None:
        self._kept = Kept(folder, version)

    def get(self, subject: Subject) -> tuple[Finding, ...] | None:
        """Return what was found before, or None."""
        values = self._kept.get(subject.dataset, subject.key)
        try:
            return None if values is None else tuple(map(Finding.from_dict, values))
        except (TypeError, ValueError, KeyError, AttributeError):
            return None

    def put(self, subject: Subject, findings: Sequence[Finding]) -> None:
        """Keep findings."""
        self._kept.put(subject.dataset, subject.key, [found.as_dict() for found in findings])

    def flush(self) -> None:
        """Write what waits."""
        self._kept.flush()

    def close(self) -> None:
        """Write what waits and close files."""
        self._kept.close()
