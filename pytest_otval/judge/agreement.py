"""How far votes agree beyond what chance would give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


def fleiss_kappa(votes: Sequence[Sequence[Hashable]]) -> float | None:
    """Return Fleiss' kappa of the votes about each subject; 1 is agreement, 0 what chance gives.

    Each subject has the same number of votes, at least two; whose they are does not matter. None where it is undefined:
    no subject at all, or all votes the same, so that chance alone would agree always.
    """
    if not votes:
        return None
    size = len(votes[0])
    if size < 2 or any(len(one) != size for one in votes):
        raise ValueError("each subject needs the same number of votes, at least two")
    shares = Counter(vote for one in votes for vote in one)
    total = size * len(votes)
    if len(shares) == 1:
        return None
    pairs = sum(count * (count - 1) for one in votes for count in Counter(one).values())
    seen = pairs / (total * (size - 1))
    chance = sum(count * count for count in shares.values()) / total**2
    return (seen - chance) / (1 - chance)
