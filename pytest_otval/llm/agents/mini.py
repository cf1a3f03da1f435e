"""mini-swe-agent: its loop, prompts and parsing as they are, over our client and our sandbox."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

from pytest_otval.core import OtvalUsageError
from pytest_otval.llm.session import Session

_ENDS = {"Submitted": "submitted", "RepeatedFormatError": "format"}
_DONE = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""First line of the output of a command by which the model says that it is done."""
_UNAME = "uname -s; uname -r; uname -v; uname -m"


@cache
def _package() -> ModuleType:
    """Import it without its banner, and without the settings and keys that it would read from the user's home."""
    with (
        tempfile.TemporaryDirectory() as nothing,
        _variables(MSWEA_SILENT_STARTUP="1", MSWEA_GLOBAL_CONFIG_DIR=nothing),
    ):
        try:
            import minisweagent
            import minisweagent.agents.default
            import minisweagent.exceptions
            import minisweagent.models.utils.actions_toolcall
        except ImportError as error:
            words = f"--otval-agent mini-swe-agent: {error}: run setup.sh without --minimal, or take another agent"
            raise OtvalUsageError(words) from None
    return minisweagent


@contextmanager
def _variables(**values: str) -> Iterator[None]:
    """Set variables of the environment in the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@cache
def _settings() -> Mapping[str, Any]:
    """Return its own settings for tool calls."""
    import yaml

    text = (_package().package_dir / "config" / "mini.yaml").read_text()
    settings: Mapping[str, Any] = yaml.safe_load(text)
    return settings


class MiniSweAgent:
    """See ``base.ModelAgent``."""

    name = "mini-swe-agent"

    @property
    def version(self) -> str:
        """Of the package."""
        return str(_package().__version__)

    @property
    def env(self) -> dict[str, str]:
        """As its settings say."""
        return dict(_settings()["environment"]["env"])

    def solve(self, session: Session) -> str:
        """Run its loop; our session has the limits."""
        package = _package()
        agent = _settings()["agent"]
        loop = package.agents.default.DefaultAgent(
            _Model(session),
            _Environment(session),
            system_template=agent["system_template"],
            instance_template=agent["instance_template"],
            cost_limit=0,
        )
        return _ENDS[loop.run(session.instruction)["exit_status"]]


class _Model:
    """See ``minisweagent.Model``."""

    def __init__(self, session: Session) -> None:
        self.config = SimpleNamespace(**_settings()["model"])
        self._session = session
        self._calls = _package().models.utils.actions_toolcall

    def query(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> dict[str, Any]:
        reply = self._session.ask([_without_extra(message) for message in messages], [self._calls.BASH_TOOL])
        calls = [
            SimpleNamespace(id=call["id"], function=SimpleNamespace(**call["function"]))
            for call in reply.message.get("tool_calls") or ()
        ]
        try:
            actions = self._calls.parse_toolcall_actions(
                calls,
                format_error_template=self.config.format_error_template,
                template_kwargs={"finish_reason": reply.finish},
            )
        except _package().exceptions.FormatError as error:
            self._session.malformed(str(error.messages[0]["content"]))
            raise
        return {**reply.message, "extra": {"actions": actions}}

    def format_message(self, **message: Any) -> dict[str, Any]:
        return message

    def format_observation_messages(
        self, message: Mapping[str, Any], outputs: list[dict[str, Any]], template_vars: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._calls.format_toolcall_observation_messages(
            actions=message["extra"]["actions"],
            outputs=outputs,
            observation_template=self.config.observation_template,
            template_vars=template_vars,
        )
        return found

    def get_template_vars(self) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {}


class _Environment:
    """See ``minisweagent.Environment``: commands run in the task's container."""

    def __init__(self, session: Session) -> None:
        self.config = SimpleNamespace()
        self._session = session
        lines = session.look(_UNAME).splitlines()
        self._system = dict(zip(("system", "release", "version", "machine"), [*lines, *[""] * 4], strict=False))

    def execute(self, action: Mapping[str, Any], cwd: str = "") -> dict[str, Any]:
        ran = self._session.run(str(action["command"]), action.get("tool_call_id"))
        status = -1 if ran.status is None else ran.status
        first, _, rest = ran.output.lstrip().partition("\n")
        if first.strip() == _DONE and status == 0:
            extra = {"exit_status": "Submitted", "submission": rest}
            raise _package().exceptions.Submitted({"role": "exit", "content": rest, "extra": extra})
        return {"output": ran.output, "returncode": status, "exception_info": ran.note}

    def get_template_vars(self) -> dict[str, Any]:
        return dict(self._system)

    def serialize(self) -> dict[str, Any]:
        return {}


def _without_extra(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "extra"}
