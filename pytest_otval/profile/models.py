"""The sections about language models: where each is asked, with whose key, and what that costs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from pytest_otval.profile.section import Count, Line, Section

_OURS = ("messages", "model", "n", "stream", "stream_options", "tools")
"""Fields of a request that only the client sets."""


def base_url(text: str) -> str:
    """Return the address of an endpoint without a slash at its end. Raises ValueError for what is none."""
    parts = urlsplit(text)
    try:
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    # Its text stands in errors and ledgers, so it must not hold a password.
    if not known or not text.isprintable() or " " in text or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must be http(s)://HOST[:PORT]/PATH, mostly with /v1 at its end, without a user or a ?query")
    return text.rstrip("/")


def _base_url_or_empty(text: str) -> str:
    return text and base_url(text)


def _variable_or_empty(text: str) -> str:
    # Hardly a key is of these alone; one that was written here by mistake must not get into an error.
    if text and not re.fullmatch(r"[A-Z_][A-Z0-9_]*", text):
        raise ValueError("must be the name of a variable, such as OPENAI_API_KEY, and not the key itself")
    return text


def _request(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    for name in fields:
        if name in _OURS:
            raise ValueError(f"{name!r} is set by the client itself")
    return fields


class ModelSection(Section):
    """One ``[models."NAME"]``; NAME is what ``--otval-teacher`` and reports call it."""

    base_url: Annotated[str, AfterValidator(_base_url_or_empty)] = ""
    """Of an OpenAI-compatible endpoint, as ``https://api.example.org/v1``; empty where the command line gives it."""
    served_name: Line | None = None
    """Its name there; NAME if None."""
    key_variable: Annotated[str, AfterValidator(_variable_or_empty)] = ""
    """The variable of the environment that holds the key; empty where the endpoint asks for none."""
    usd_in: Annotated[float, Field(ge=0)] | None = None
    """Price of a million tokens of the conversation, in US dollars."""
    usd_out: Annotated[float, Field(ge=0)] | None = None
    """Of the answer, reasoning among it."""
    usd_cached: Annotated[float, Field(ge=0)] | None = None
    """Of those of the conversation that a cache had; ``usd_in`` if None."""
    concurrency: Count | None = None
    """Requests at a time, of all processes of a user on the node; None for as many as there are attempts."""
    context: Count | None = None
    """Tokens that a conversation and its answer may have."""
    silence_seconds: Count = 300
    """After so long without a byte a request counts as lost. Long conversations wait for their first token."""
    stream: bool = True
    """Whether answers are asked for piece by piece: proxies cut connections over which nothing comes for minutes."""
    reasoning_back: bool = False
    """Whether the model gets its earlier reasoning again with each request."""
    request: Annotated[Mapping[str, Any], AfterValidator(_request)] = {}
    """Further fields of each request: temperature, top_p, max_tokens, seed, ..."""

    @model_validator(mode="after")
    def _both_prices(self) -> ModelSection:
        if (self.usd_in is None) != (self.usd_out is None):
            raise ValueError("usd_in and usd_out go together")
        return self
