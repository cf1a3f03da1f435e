"""How a place in an archive is written: ``evidence/WRITER.tar.gz@OFFSET+LENGTH``, relative to the run folder."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_otval.evidence.members import EvidenceError

FOLDER = "evidence"

PLACE = re.compile(rf"({FOLDER}/[A-Za-z0-9._-]+)@([0-9]{{1,18}})\+([0-9]{{1,18}})")


def parsed(run: Path, place: str) -> tuple[Path, int, int]:
    """Return the archive's path, the offset and the length of a place. Raises EvidenceError."""
    found = PLACE.fullmatch(place)
    if found is None:
        raise EvidenceError(f"{place!r} is no place in an archive")
    return run / found[1], int(found[2]), int(found[3])
