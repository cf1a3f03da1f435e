"""A task to be judged, and judges that say what a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_otval.judge.cache import VERSION, CachedChat
from pytest_otval.judge.material import Document, Material
from pytest_otval.judge.model import Criterion, Rubric
from pytest_otval.kept import Kept
from pytest_otval.llm.chat import Message, Reply
from selftests.llm.policies import Policies
from selftests.llm.scripted import ScriptedChat, said

MATERIAL = Material(
    (
        Document("instruction.md", "Write the sum\nof the numbers to\n/app/answer.txt.\n"),
        Document("tests/test.sh", "#!/bin/sh\ntest -e /app/answer.txt\necho $? > /logs/verifier/reward.txt\n"),
    ),
    left_out=("environment/data.bin (9 bytes)",),
)
RUBRIC = Rubric(
    "instruction",
    (
        Criterion("weak", "Do the tests reject what is wrong?", execution="wrong-solution"),
        Criterion("clear", "Is it clear?", blocking=True),
        Criterion("spelled", "Are there no typing errors?"),
    ),
)
WEAK = {
    "outcome": "fail",
    "explanation": "any file is accepted",
    "evidence": [{"document": "tests/test.sh", "quote": "test -e /app/answer.txt"}],
    "candidate": "touch /app/answer.txt",
}
UNCLEAR = {"outcome": "fail", "evidence": [{"document": "instruction.md", "quote": "the sum of the numbers"}]}


def opinions(weak: Any = "pass", clear: Any = "pass", spelled: Any = "pass", **more: Any) -> Reply:
    """An answer: an outcome or all of a criterion; None leaves it out."""
    told = {"weak": weak, "clear": clear, "spelled": spelled, **more}
    values = {name: {"outcome": one} if isinstance(one, str) else one for name, one in told.items() if one is not None}
    return said(json.dumps({"criteria": values}))


@dataclass
class PolicyChat:
    """A model of the tests' server, without a server."""

    policies: Policies
    model: str
    attempt: int = 0

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        deadline: float | None = None,
        answer_format: Mapping[str, Any] | None = None,
    ) -> Reply:
        told = self.policies.say(self.policies.models[self.model], {"messages": messages}, self.attempt)
        return said(told["message"]["content"], finish=told["finish"])


class Judges:
    """Voters: the first says the first of these lists, one after the other, and so on."""

    def __init__(self, folder: Path, *says: Sequence[Reply | Exception]) -> None:
        self.chats = [ScriptedChat(one) for one in says]
        self._folder = folder

    def __call__(self, vote: int) -> CachedChat:
        """Each is a conversation of a process of its own."""
        return CachedChat(self.chats[vote], Kept(self._folder, VERSION), "data", {}, vote)

    @property
    def asked(self) -> list[int]:
        """How many answers each gave."""
        return [len(one.asked) for one in self.chats]

    def told(self, vote: int = 0, number: int = -1) -> str:
        """The last message of a request."""
        content: str = self.chats[vote].asked[number][-1]["content"]
        return content
