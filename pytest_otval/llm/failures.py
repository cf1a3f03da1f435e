"""What an endpoint's refusal means: ask again, give up at once, or a conversation that is too long.

The texts are those of OpenAI, vLLM, SGLang, TGI, llama.cpp, llama-cpp-python, LM Studio, OpenRouter, Anthropic, Gemini,
Mistral, Groq, Bedrock, xAI, Moonshot, MiniMax, DashScope and GLM; only some also have a code for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus


class Kind(StrEnum):
    """What to do about it."""

    AGAIN = "again"
    AT_ONCE = "at once"
    """Tell it at once: the next try would end the same way."""
    OVERFLOW = "overflow"


_AGAIN = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
_NEVER_OVERFLOW = {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
_SPENT = ("insufficient_quota", "billing_not_active", "billing_hard_limit_reached")
_OVERFLOW_CODES = ("context_length_exceeded", "exceed_context_size_error")
_OVERFLOW = re.compile(
    r"""
      maximum\s(?:context|model|prompt|sequence)\s(?:context\s)?length
    | max_(?:model|seq)_len\b
    | context\s(?:length|size|window|limit)\b.{0,20}\b(?:exceed|only|full|reached)
    | exceed\w*\b.{0,60}\b(?:context|max(?:imum)?\s(?:length|number\sof\stokens)|token\slimit)\b
    | longer\sthan\sthe\smodel's\scontext
    | \b(?:prompt|inputs?|conversation)`?\s(?:is|are)\stoo\slong\b
    | \breduce\sthe\slength\sof\s(?:the|your)\s(?:messages|prompt|inputs?|conversation)\b
    | \btoo\smany\s(?:input\s|prompt\s)?tokens\b
    | \binputs`?\s(?:tokens\s\+\s`?max_new_tokens|must\shave\sless\sthan)
    | \brange\sof\sinput\slength\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_FORMAT = re.compile(r"response_?format|json[_ ]?schema|structured[_ ]outputs?|guided|\bgrammar\b", re.IGNORECASE)
_CODE_CHARS = 100
_TEXT_CHARS = 4000
"""So much of a text is looked at and kept: a body may be megabytes of a proxy's page."""


def kind_of(status: int, code: str, text: str) -> Kind:
    """Return what a refusal means.

    ``status`` is HTTP's, 0 where the refusal came in the middle of an answer; ``code`` and ``text`` are the endpoint's.
    """
    if code in _OVERFLOW_CODES or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return Kind.OVERFLOW
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Kind.AT_ONCE if code in _SPENT else Kind.AGAIN
    if status not in _NEVER_OVERFLOW and _OVERFLOW.search(text):
        return Kind.OVERFLOW
    return Kind.AGAIN if status == 0 or status in _AGAIN or status >= 500 else Kind.AT_ONCE


def refuses_format(status: int, text: str) -> bool:
    """Whether it is the form asked for that an endpoint does not take: the same request without it may be answered."""
    return 400 <= status < 500 and bool(_FORMAT.search(text))


def status_in(body: object) -> int:
    """Return the status that an error in the middle of an answer says it would have had; 0 where it says none."""
    code = body.get("code") if isinstance(body, Mapping) else None
    return code if isinstance(code, int) and 400 <= code <= 599 else 0


def said(body: object) -> tuple[str, str]:
    """Return code and text of an error's body, whichever of their shapes a server gave it; text as a last resort."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return "", "" if error is None else str(error)[:_TEXT_CHARS]
    codes = [value for name in ("code", "type") if isinstance(value := error.get(name), str)]
    code = next((one for one in codes if one in _OVERFLOW_CODES or one in _SPENT), next(iter(codes), ""))
    text = next((str(error[name]) for name in ("message", "detail", "error_description") if error.get(name)), "")
    return code[:_CODE_CHARS], (text or str(dict(error)))[:_TEXT_CHARS]
