"""Walking over the instructions of one stage of a Dockerfile."""

from __future__ import annotations

import copy
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from pytest_otval.core import Conclusion
from pytest_otval.images.bases import Base
from pytest_otval.images.copy_words import NotSupportedError, copy_sources
from pytest_otval.images.copying import CopyError
from pytest_otval.images.expand import ExpansionError, expand
from pytest_otval.images.modes import parsed_mode
from pytest_otval.images.recorded import checked_port, checked_signal
from pytest_otval.images.steps import (
    BUILD_FOLDER,
    BuildPlan,
    CopyFromStep,
    CopyStep,
    RunStep,
    Step,
    WorkdirStep,
    files_plan,
    image_key,
)
from pytest_otval.images.support import unsupported
from pytest_otval.task.context import Context
from pytest_otval.task.dockerfile import Instruction
from pytest_otval.task.owners import needs_owner

_ROOT_USERS = ("root", "0", "root:root", "0:0", "root:0", "0:root")


class StagePlanner:
    """Keeps what later instructions of a stage see: variables, workdir, user, shell."""

    def __init__(self, file: str, escape: str, context: Context, arguments: Mapping[str, str], base: Base) -> None:
        """``arguments`` are those in front of the first FROM."""
        self._file = file
        self._escape = escape
        self._context = context
        self._arguments = arguments
        self._base = base
        self._env = dict(base.config.env)
        self._variables = dict(self._env)
        """What ENV and ARG gave, the later of both: so an ARG hides an ENV of its name until the stage ends."""
        self._config = base.config
        self._has_cmd = False
        self._steps: list[Step] = []
        self._needs: str | None = None

    def child(self) -> StagePlanner:
        """Return a planner for a stage over this one, which inherits all but whether CMD was given."""
        child = copy.copy(self)
        child._env, child._variables, child._steps = dict(self._env), dict(self._variables), list(self._steps)
        child._has_cmd = False
        return child

    def plan(self, all_root: bool, for_files: bool = False) -> BuildPlan:
        """Return the plan of all instructions added; ``for_files``: as an origin of COPY --from. Raises Conclusion."""
        config = replace(self._config, env=self._env)
        plan = BuildPlan("", self._base, tuple(self._steps), config, self._file, self._context, self._needs)
        try:
            if for_files:
                return files_plan(plan, len(plan.steps), all_root)
            return replace(plan, key=image_key(plan.base, plan.steps, config, self._context, all_root))
        except CopyError as error:
            raise Conclusion("build-failed", f"{self._file}: {error}") from None

    def add(self, instruction: Instruction) -> None:
        """Add one instruction. Raises Conclusion."""
        with self._at(instruction):
            _HANDLERS[instruction.kind](self, instruction)

    def copy_from(self, instruction: Instruction, origin: BuildPlan) -> None:
        """Add a COPY --from, whose origin is the plan of a stage or of a base. Raises Conclusion."""
        with self._at(instruction):
            options, words, destination, is_folder = self._copied(instruction)
            paths = tuple(_rooted(word) for word in words)
            if origin.steps:
                self._needs = self._needs or origin.needs_uid_mapping
            self._steps.append(
                CopyFromStep(
                    instruction.line,
                    instruction.original,
                    origin,
                    paths,
                    self._absolute(destination),
                    is_folder,
                    options["--chown"],
                    options["--chmod"],
                )
            )

    @contextmanager
    def _at(self, instruction: Instruction) -> Iterator[None]:
        try:
            yield
        except NotSupportedError as error:
            raise unsupported(instruction, self._file, str(error)) from None
        except (ExpansionError, CopyError, ValueError) as error:
            raise failed(self._file, instruction, str(error)) from None

    def _words(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._expanded(word) for word in words)

    def _expanded(self, word: str) -> str:
        return expand(word, self._variables, self._escape)

    def _one(self, instruction: Instruction) -> str:
        return self._expanded(" ".join(instruction.args))

    def _owner_needed(self, instruction: Instruction, what: str) -> None:
        if self._needs is None:
            self._needs = f"{self._file}:{instruction.line}: {what}"

    def _arg(self, instruction: Instruction) -> None:
        for word in instruction.args:
            name, assigned, default = word.partition("=")
            if assigned:
                self._variables[name] = self._expanded(default)
            elif name in self._arguments:
                self._variables[name] = self._arguments[name]

    def _set_env(self, instruction: Instruction) -> None:
        pairs = {self._expanded(name): self._expanded(value) for name, value in instruction.pairs}
        if "" in pairs:
            raise ExpansionError("a variable without a name")
        self._env.update(pairs)
        self._variables.update(pairs)

    def _label(self, instruction: Instruction) -> None:
        labels = {self._expanded(name): self._expanded(value) for name, value in instruction.pairs}
        self._config = replace(self._config, labels={**self._config.labels, **labels})

    def _run(self, instruction: Instruction) -> None:
        argv, script = self._command(instruction), ""
        if _is_one_heredoc(instruction):
            body = instruction.heredocs[0].content
            if body.startswith("#!"):
                script = body
                argv = (f"{BUILD_FOLDER}/heredoc-{len(self._steps)}",)
            else:
                argv = (*self._config.shell, body)
        elif instruction.heredocs:
            bodies = "".join(f"\n{heredoc.content}{heredoc.name}" for heredoc in instruction.heredocs)
            argv = (*self._config.shell, instruction.args[0] + bodies)
        found = needs_owner(script or (argv[-1] if instruction.shell_form else " ".join(argv)))
        if found:
            self._owner_needed(instruction, f"RUN uses {found[1]}")
        user, workdir = self._config.user, self._config.workdir
        env = dict(self._variables)
        self._steps.append(RunStep(instruction.line, instruction.original, argv, env, workdir, user, script))

    def _command(self, instruction: Instruction) -> tuple[str, ...]:
        if instruction.shell_form:
            return (*self._config.shell, *instruction.args)
        return instruction.args

    def _copy(self, instruction: Instruction) -> None:
        options, words, destination, is_folder = self._copied(instruction)
        sources = copy_sources(instruction, words, options["--checksum"], self._context, self._expanded_body)
        if not sources:
            # Patterns that match nothing.
            return
        self._steps.append(
            CopyStep(
                instruction.line,
                instruction.original,
                sources,
                self._absolute(destination),
                is_folder,
                options["--chown"],
                options["--chmod"],
            )
        )

    def _copied(self, instruction: Instruction) -> tuple[dict[str, str], list[str], str, bool]:
        """Return options, sources and destination of a COPY, and whether the destination says that it is a folder."""
        options = dict.fromkeys(("--chown", "--chmod", "--checksum"), "")
        for flag in instruction.flags:
            name, _, value = flag.partition("=")
            if name in options:
                options[name] = self._expanded(value)
        if options["--chmod"]:
            options["--chmod"] = parsed_mode(options["--chmod"])
        *words, destination = self._words(instruction.args)
        owner = options["--chown"]
        if owner and owner not in _ROOT_USERS:
            self._owner_needed(instruction, f"{instruction.kind} --chown={owner}")
        return options, words, destination, destination.endswith(("/", "/.")) or destination in (".", "")

    def _expanded_body(self, text: str) -> str:
        """In a here-document the escape character is a backslash, whatever ``# escape`` says."""
        return expand(text, self._variables, keep_quotes=True)

    def _absolute(self, path: str) -> str:
        return _rooted(posixpath.join(self._config.workdir, path))

    def _workdir(self, instruction: Instruction) -> None:
        path = self._absolute(self._one(instruction))
        self._config = replace(self._config, workdir=path)
        if path != "/":
            self._steps.append(WorkdirStep(instruction.line, instruction.original, path, self._config.user))

    def _user(self, instruction: Instruction) -> None:
        self.set_user(instruction, self._one(instruction))

    def set_user(self, instruction: Instruction, user: str | None) -> None:
        """Let what follows run as a user, whom USER names or the base of FROM."""
        user = None if not user or user in _ROOT_USERS else user
        if user is not None:
            self._owner_needed(instruction, f"user {user}")
        self._config = replace(self._config, user=user)

    def _shell(self, instruction: Instruction) -> None:
        self._config = replace(self._config, shell=instruction.args)

    def _cmd(self, instruction: Instruction) -> None:
        self._has_cmd = True
        self._config = replace(self._config, cmd=self._command(instruction))

    def _entrypoint(self, instruction: Instruction) -> None:
        # The base's CMD was meant as arguments of the base's entry point.
        cmd = self._config.cmd if self._has_cmd else ()
        self._config = replace(self._config, entrypoint=self._command(instruction), cmd=cmd)

    def _expose(self, instruction: Instruction) -> None:
        ports = [checked_port(port) for word in self._words(instruction.args) for port in word.split()]
        self._config = replace(self._config, exposed=tuple(dict.fromkeys((*self._config.exposed, *ports))))

    def _volume(self, instruction: Instruction) -> None:
        paths = self._words(instruction.args)
        self._config = replace(self._config, volumes=tuple(dict.fromkeys((*self._config.volumes, *paths))))

    def _healthcheck(self, instruction: Instruction) -> None:
        self._config = replace(self._config, healthcheck=(*instruction.flags, *instruction.args))

    def _stopsignal(self, instruction: Instruction) -> None:
        self._config = replace(self._config, stop_signal=checked_signal(self._one(instruction)))

    def _maintainer(self, instruction: Instruction) -> None:
        self._config = replace(self._config, labels={**self._config.labels, "maintainer": " ".join(instruction.args)})


def failed(file: str, instruction: Instruction, message: str) -> Conclusion:
    """Return what is said of an instruction that Docker would refuse as well."""
    return Conclusion("build-failed", f"{file}:{instruction.line}: {instruction.kind}: {message}")


def _rooted(path: str) -> str:
    """Return an absolute path without dots; of two slashes at the beginning ``normpath`` alone keeps both."""
    return posixpath.normpath("/" + path.lstrip("/"))


def _is_one_heredoc(instruction: Instruction) -> bool:
    """Whether a RUN is but one here-document, whose body then is the script."""
    if len(instruction.heredocs) != 1 or len(instruction.args) != 1:
        return False
    name = re.escape(instruction.heredocs[0].name)
    return re.fullmatch(rf"<<-?(['\"]?){name}\1", instruction.args[0].strip()) is not None


_HANDLERS: Mapping[str, Callable[[StagePlanner, Instruction], None]] = {
    "ARG": StagePlanner._arg,
    "ENV": StagePlanner._set_env,
    "LABEL": StagePlanner._label,
    "RUN": StagePlanner._run,
    "COPY": StagePlanner._copy,
    "ADD": StagePlanner._copy,
    "WORKDIR": StagePlanner._workdir,
    "USER": StagePlanner._user,
    "SHELL": StagePlanner._shell,
    "CMD": StagePlanner._cmd,
    "ENTRYPOINT": StagePlanner._entrypoint,
    "EXPOSE": StagePlanner._expose,
    "VOLUME": StagePlanner._volume,
    "HEALTHCHECK": StagePlanner._healthcheck,
    "STOPSIGNAL": StagePlanner._stopsignal,
    "MAINTAINER": StagePlanner._maintainer,
}
"""FROM and COPY --from are for who knows all stages; ONBUILD was refused before."""
