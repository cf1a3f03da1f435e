"""Keys of well-known services by their prefix and the disorder of what follows it."""

from __future__ import annotations

import math
import re
from collections import Counter

_KEYS = {
    "a key of AWS": rb"(?P<aws>\b(?:AKIA|ASIA)[A-Z2-7]{16}\b)",
    "a token of GitHub": rb"(?P<github>\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_\w{22}_\w{59})\b)",
    "a token of GitLab": rb"(?P<gitlab>\bglpat-[A-Za-z0-9_-]{20}\b)",
    "a token of Slack": rb"(?P<slack>\bxox[bpas]-\d{10,13}-\d{10,13}-[A-Za-z0-9-]{24,})",
    "a key of Anthropic": rb"(?P<anthropic>\bsk-ant-(?:api|admin)\d\d-[A-Za-z0-9_-]{80,})",
    "a key of OpenAI": rb"(?P<openai>\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{20,100}T3BlbkFJ[A-Za-z0-9_-]{20,})",
    "a token of Hugging Face": rb"(?P<huggingface>\bhf_[A-Za-z]{34}\b)",
    "a key of Stripe": rb"(?P<stripe>\b[sr]k_live_[A-Za-z0-9]{24,})",
    "a key of Google": rb"(?P<google>\bAIza[A-Za-z0-9_-]{35}\b)",
    "a token of npm": rb"(?P<npm>\bnpm_[A-Za-z0-9]{36}\b)",
    "a token of PyPI": rb"(?P<pypi>\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,})",
}
"""Formats as the services document them; a group's name is the key's, so that one search finds all."""
_NAMES = {match[1]: kind for kind, code in _KEYS.items() if (match := re.search(r"\?P<(\w+)>", code.decode()))}
_ANY = re.compile(b"|".join(_KEYS.values()))
_PREFIX = re.compile(
    rb"AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[bpas]-|sk-ant-|T3BlbkFJ|hf_|k_live_|AIza|npm_|pypi-AgEI"
)
_DUMMY = re.compile(
    rb"example|sample|dummy|fake|test|placeholder|your|xxxx|0000|1234|abcd|changeme|redacted", re.IGNORECASE
)
_MIN_ENTROPY = 3.2
"""Bits a character; 20 random ones of an alphabet of 32 have about 3.9, words and patterns less than 3."""


def find_secret(data: bytes) -> tuple[str, int] | None:
    """Return what kind of key a text holds first, and where; None where all that looks like one is a dummy."""
    if not _PREFIX.search(data):
        return None
    for match in _ANY.finditer(data):
        kind = match.lastgroup
        if kind is not None and not _DUMMY.search(match[0]) and entropy(match[0]) >= _MIN_ENTROPY:
            return _NAMES[kind], match.start()
    return None


def entropy(data: bytes) -> float:
    """Return the entropy of a text in bits a character."""
    counts = Counter(data)
    return -sum(count / len(data) * math.log2(count / len(data)) for count in counts.values())
