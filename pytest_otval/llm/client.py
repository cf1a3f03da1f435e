"""A model behind any OpenAI-compatible endpoint, asked until it answers or cannot."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_any,
    stop_before_delay,
    wait_combine,
    wait_exponential,
    wait_random,
    wait_random_exponential,
)

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.llm.answers import Answer, BrokenAnswerError
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.chat import ContextOverflowError, EndpointError, Message, Reply, Usage
from pytest_otval.llm.connection import connection, run
from pytest_otval.llm.conversation import outgoing
from pytest_otval.llm.failures import Kind, kind_of, refuses_format, said, status_in
from pytest_otval.llm.secret import Secret
from pytest_otval.profile import ModelSection, Profile
from pytest_otval.sandbox.slots import Slots
from pytest_otval.waiting import MAX_WAIT, as_asked
from pytest_otval.workspace import node_folder

if TYPE_CHECKING:
    from openai import APIError

TRIES = 10
"""How often a request is sent, where another try may help: 429, 5xx, time-outs, lost connections, broken answers."""
FIRST_WAIT = 1.0
"""Seconds before the second try, at most and about; each wait is twice the one before, up to ``waiting.MAX_WAIT``."""
_BACKOFF = wait_combine(
    wait_exponential(FIRST_WAIT / 2, max=MAX_WAIT / 2), wait_random_exponential(FIRST_WAIT / 2, max=MAX_WAIT / 2)
)
HUNG_SECONDS = 60.0
"""Where nothing at all came for so long until the deadline, it is the endpoint that hangs."""
_ONE_LINE = 300
"""Characters of an endpoint's own words in an error."""


_without_format: set[str] = set()
"""Endpoints and models that took no ``response_format``, as this process learnt."""


class _FormatError(EndpointError):
    """The endpoint does not take ``response_format``."""


class _TryAgain(Exception):
    """One try failed in a way that may pass."""

    def __init__(self, words: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(words)
        self.headers = headers


class EndpointChat:
    """A Chat over an endpoint; several threads may use it."""

    def __init__(
        self, name: str, section: ModelSection, budget: Budget | None = None, fields: Mapping[str, Any] | None = None
    ) -> None:
        """``name``: the model's, as users know it. ``fields``: of each request, over those of the profile.

        Raises OtvalUsageError: no address, the key's variable is not set, a budget in USD without prices, ``openai`` is
        not installed.
        """
        if not section.base_url:
            words = (
                "has no base_url in the cluster profile: add it there, or give --otval-base-url (commands: --base-url)"
            )
            raise OtvalUsageError(f"the model {printable(name)} {words}")
        if budget is not None and budget.usd is not None and section.usd_in is None:
            words = "has no prices in the cluster profile (usd_in, usd_out), which --otval-budget-usd needs"
            raise OtvalUsageError(f"the model {printable(name)} {words}")
        self._name = name
        self._section = section
        self._budget = budget
        self._fields = {**section.request, **(fields or {})}
        self._key = Secret.from_environment(section.key_variable)
        self._connection = connection(section.base_url, self._key, float(section.silence_seconds))
        self._where = f"{printable(name)} at {section.base_url}"
        self._place = hashlib.sha256(f"{section.base_url} {self.model}".encode()).hexdigest()[:16]
        self._slots = Slots(node_folder(), f"model-{self._place}", section.concurrency)

    @property
    def model(self) -> str:
        """Its name, as the endpoint knows it."""
        return self._section.served_name or self._name

    def __repr__(self) -> str:
        return f"EndpointChat({self._where!r})"

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        deadline: float | None = None,
        answer_format: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Return the model's next message, see Chat. Also raises OSError where the budget cannot be written.

        What still fails after TRIES, or when there is no time for another one, is an EndpointError; TimeoutError is
        only for an answer that was on its way.
        """
        body = self._body(messages, tools)
        if answer_format is not None and self._place not in _without_format:
            try:
                return self._tried({**body, "response_format": answer_format}, deadline)
            except _FormatError:
                _without_format.add(self._place)
        return self._tried(body, deadline)

    def _tried(self, body: Mapping[str, Any], deadline: float | None) -> Reply:
        began = time.monotonic()
        left = float("inf") if deadline is None else deadline - began
        tries = Retrying(
            retry=retry_if_exception_type(_TryAgain),
            stop=stop_any(stop_after_attempt(TRIES), stop_before_delay(left)),
            # Hundreds of attempts that are told the same second would all come back in it.
            wait=wait_combine(as_asked(_headers_of, _BACKOFF), wait_random(0, FIRST_WAIT)),
            reraise=True,
        )
        try:
            reply: Reply = tries(self._once, body, deadline)
        except _TryAgain as error:
            number = tries.statistics["attempt_number"]
            raise EndpointError(f"{self._where}: {error} ({number} tries)") from None
        waited = time.monotonic() - began - reply.seconds
        return dataclasses.replace(reply, waited=waited, retries=tries.statistics["attempt_number"] - 1)

    def _body(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {
            **self._fields,
            "model": self.model,
            "messages": outgoing(messages, self._section.reasoning_back),
            "stream": self._section.stream,
        }
        if self._section.stream:
            body["stream_options"] = {"include_usage": True}
        if tools:
            body["tools"] = list(tools)
        return body

    def _once(self, body: Mapping[str, Any], deadline: float | None) -> Reply:
        waiting = time.monotonic()
        try:
            with self._slots.one(deadline):
                return self._asked(body, deadline)
        except _NoTimeError:
            raise TimeoutError(f"{self._where}: its answer was not complete in time") from None
        except TimeoutError:
            words = f"none of its {self._slots.count} slots was free for {time.monotonic() - waiting:.0f} s"
            raise EndpointError(f"{self._where}: {words}: the profile's concurrency says how many there are") from None

    def _asked(self, body: Mapping[str, Any], deadline: float | None) -> Reply:
        if self._budget is not None:
            self._budget.require()
        began = time.monotonic()
        answer = Answer()
        self._ask(body, answer, deadline)
        seconds = time.monotonic() - began
        usage = self._priced(answer.usage(body["messages"]))
        if self._budget is not None:
            self._budget.spend(self.model, usage)
        return Reply(self._key.scrub_all(answer.message()), answer.finish, usage, seconds)

    def _ask(self, body: Mapping[str, Any], answer: Answer, deadline: float | None) -> None:
        from httpx2 import RequestError
        from openai import APIConnectionError, APIError, APITimeoutError

        began = time.monotonic()
        try:
            run(self._read(body, answer), deadline)
            answer.require_whole()
        except TimeoutError:
            silent = time.monotonic() - began
            if self._section.stream and not answer.begun and silent >= HUNG_SECONDS:
                raise EndpointError(f"{self._where}: nothing came of an answer for {silent:.0f} s") from None
            raise _NoTimeError from None
        except APITimeoutError:
            raise _TryAgain("it did not answer in time") from None
        except (APIConnectionError, RequestError) as error:
            cause = error.__cause__ or error
            what = self._line(f"{type(cause).__name__}: {cause}")
            raise _TryAgain(f"the connection failed ({what})") from None
        except APIError as error:
            raise self._refusal(error) from None
        except _RefusedError as error:
            raise self._meaning(0, error.args[0]) from None
        except BrokenAnswerError as error:
            raise _TryAgain(str(error)) from None
        except (ValueError, RecursionError):
            raise _TryAgain("it sent what is no JSON") from None

    async def _read(self, body: Mapping[str, Any], answer: Answer) -> None:
        from openai import AsyncStream

        if not self._section.stream:
            _take_whole(answer, await self._connection.post("/chat/completions", cast_to=object, body=body))
            return
        pieces = await self._connection.post(
            "/chat/completions", cast_to=object, body=body, stream=True, stream_cls=AsyncStream[object]
        )
        async with pieces:
            # Some servers and proxies know no pieces, and send the whole answer.
            if "json" in pieces.response.headers.get("content-type", ""):
                _take_whole(answer, json.loads(await pieces.response.aread()))
                return
            async for piece in pieces:
                answer.add(piece)

    def _refusal(self, error: APIError) -> Exception:
        """Return what to raise; nothing is raised here, since a traceback may show what the server said."""
        response = getattr(error, "response", None)
        body = error.body if error.body is not None or response is None else response.text
        return self._meaning(getattr(error, "status_code", 0), body, getattr(response, "headers", None))

    def _meaning(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> Exception:
        try:
            code, text = said(self._key.scrub_all(body))
        except RecursionError:
            code, text = "", "JSON of more depth than anybody reads"
        status = status or status_in(body)
        words = f"{f'HTTP {status}' if status else 'it broke off'}: {self._line(text) or 'without a word'}"
        match kind_of(status, code, text):
            case Kind.AGAIN:
                return _TryAgain(words, headers)
            case Kind.OVERFLOW:
                return ContextOverflowError(f"{self._where}: {words}")
        kind = _FormatError if refuses_format(status, text) else EndpointError
        return kind(f"{self._where}: {words}{self._advice(status)}")

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            variable = self._section.key_variable
            return f"; is the key in {variable} right?" if variable else "; the profile names no key_variable for it"
        return "; are base_url and the model's name right?" if status == 404 else ""

    def _line(self, text: str) -> str:
        """Return the beginning of what others say, in one line, without the key."""
        line = printable(" ".join(self._key.scrub(text).split()))
        return line if len(line) <= _ONE_LINE else line[: _ONE_LINE - 3] + "..."

    def _priced(self, usage: Usage) -> Usage:
        """Return it with its cost."""
        section = self._section
        if section.usd_in is None or section.usd_out is None:
            return usage
        cached = section.usd_in if section.usd_cached is None else section.usd_cached
        prompt = (usage.prompt - usage.cached) * section.usd_in + usage.cached * cached
        return dataclasses.replace(usage, usd=(prompt + usage.completion * section.usd_out) / 1e6)


def numbered_chat(name: str, section: ModelSection, budget: Budget | None, number: int) -> EndpointChat:
    """Return a model for one of several conversations, from 0: a seed of the profile counts up with them.

    Raises OtvalUsageError.
    """
    seed = section.request.get("seed")
    return EndpointChat(name, section, budget, {"seed": seed + number} if isinstance(seed, int) else {})


class _NoTimeError(Exception):
    """The deadline came while an answer was on its way."""


class _RefusedError(Exception):
    """HTTP 200 with an error in place of an answer, as OpenRouter has it."""


def _take_whole(answer: Answer, data: object) -> None:
    if isinstance(data, Mapping) and data.get("error") and not data.get("choices"):
        raise _RefusedError(data["error"])
    answer.add(data)


def _headers_of(error: BaseException) -> Mapping[str, str] | None:
    return error.headers if isinstance(error, _TryAgain) else None


def section_for(profile: Profile, name: str, base_url: str = "") -> ModelSection:
    """Return what a profile says of a model; ``base_url`` is the command line's and wins.

    A key never goes to another address than the profile's: it is left out, where the command line's is another one.
    """
    section = profile.models.get(name, ModelSection())
    if not base_url:
        return section
    try:
        given = ModelSection(base_url=base_url).base_url
    except ValueError:
        words = "must be http(s)://HOST[:PORT]/PATH, mostly with /v1 at its end"
        raise OtvalUsageError(f"--otval-base-url {printable(base_url)} {words}") from None
    same = section.base_url in ("", given)
    return section.model_copy(update={"base_url": given, "key_variable": section.key_variable if same else ""})
