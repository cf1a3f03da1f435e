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


_DEFAULT = (
    *("vllm", "serve", "{weights}", "--served-model-name", "{name}", "--host", "{host}", "--port", "{port}"),
    *("--tensor-parallel-size", "{gpus}", "--max-model-len", "{context}"),
)
_PLACES = ("weights", "name", "host", "port", "gpus", "context")


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        try:
            word.format(**dict.fromkeys(_PLACES, ""))
        except (ValueError, LookupError, AttributeError):
            raise ValueError(f"{word!r} has another {{NAME}} than {', '.join(_PLACES)}") from None
    return words


class ServeSection(Section):
    """``[models."NAME".serve]``: how `models serve` starts the model on this site."""

    command: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_command)] = _DEFAULT
    """Words, in which ``{weights}`` is the folder of the weights, ``{name}`` the served name, ``{context}`` the
    section's; where that is not given, its word and the one before it are left out. VLLM_API_KEY holds the key."""
    health: str = "/health"
    """Answers with 200 when the server is ready."""
    gpus: Annotated[int, Field(ge=0)] = 1
    cpus: Count = 1
    memory_mb: Annotated[int, Field(ge=0)] = 0
    """What tasks on the node do not get as long as it runs: cores, MiB."""
    start_seconds: Count = 1800
    """After so long a server that is not ready counts as hung."""
    in_job: bool = False
    """Whether each job of a submitted run serves the model to its own attempts."""


_REVISION = re.compile(r"[0-9a-f]{40}")


def _hub_name(text: str) -> str:
    """Return ORGANISATION/NAME of the Hugging Face hub. Raises ValueError."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", text, re.ASCII):
        raise ValueError(f"{text!r} must be ORGANISATION/NAME of the hub")
    return text


def _commit(text: str) -> str:
    """Return a commit's full id. Raises ValueError."""
    if not _REVISION.fullmatch(text):
        raise ValueError(f"{text!r} must be the 40 digits of a commit: branches change")
    return text


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

    repository: Annotated[str, AfterValidator(_hub_name)] | None = None
    """Of the hub that has the weights; NAME if None, where it is such a name."""
    revision: Annotated[str, AfterValidator(_commit)] | None = None
    """Which commit of it."""
    serve: ServeSection = ServeSection()

    @property
    def of_answers(self) -> dict[str, Any]:
        """What answers depend on, in plain JSON types: where the model is asked and what that costs are no part."""
        return self.model_dump(mode="json", include={"served_name", "reasoning_back", "request"})

    @model_validator(mode="after")
    def _one_place(self) -> ModelSection:
        if self.base_url and self.serve.in_job:
            raise ValueError(
                "base_url says where the model is, and serve.in_job that each job has its own: leave one out"
            )
        return self

    @model_validator(mode="after")
    def _both_prices(self) -> ModelSection:
        if (self.usd_in is None) != (self.usd_out is None):
            raise ValueError("usd_in and usd_out go together")
        return self
