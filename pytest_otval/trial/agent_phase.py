"""Set-up and the agent's phase: what runs before the verifier, on the image the task declares."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from pytest_otval.core import Conclusion, Network
from pytest_otval.runtimes.mount import agent_supply
from pytest_otval.sandbox.base import TOOLBOX, Bind, Command, CommandResult, Container
from pytest_otval.task.copies import copy_in
from pytest_otval.task.load import Step, Task
from pytest_otval.task.model import HealthcheckConfig
from pytest_otval.task.reading import is_folder, is_regular
from pytest_otval.trial.agents.base import Agent, AgentPlace
from pytest_otval.trial.environment import resolve
from pytest_otval.trial.files import keep_evidence, log_folder
from pytest_otval.trial.layer import Layer, network_of, require_end, run_script, tail
from pytest_otval.trial.living import LivingContainer
from pytest_otval.trial.outcome import StepOutcome, step_folder
from pytest_otval.trial.runtime import PhaseRuntime

INBOX = "/.otval-inbox"
"""Where a container finds files that are for one of our own commands."""

BUILT_FROM = ("Dockerfile", "docker-compose.yaml", "docker-compose.yml", "compose.yaml")

# A folder that a task makes hides the mount points that the runtime would make in it at the next start.
_LOG_FOLDERS = "mkdir -p /logs/agent /logs/verifier /logs/artifacts; chmod 777 /logs/artifacts"


class AgentPhase:
    """The phases before the verifier of one trial."""

    def __init__(self, task: Task, agent: Agent, layer: Layer, evidence: Path) -> None:
        assert task.config is not None
        self._task = task
        self._config = task.config
        self._agent = agent
        self._layer = layer
        self._evidence = evidence
        image = layer.image.config
        self._env = {**image.env, **resolve(self._config.environment.env, "environment.env")}
        self._workdir = self._config.environment.workdir or image.workdir

    def take_runtime(self) -> PhaseRuntime:
        """Lay the agent's runtime below all containers of the trial. Raises Conclusion."""
        supply = agent_supply(self._layer.bench.runtimes, self._task)
        runtime = PhaseRuntime(supply, self._layer.folder / "agent", self._setup_network)
        self._layer.runtimes = runtime.layers
        return runtime

    @property
    def _setup_network(self) -> Network:
        return "public" if self._layer.bench.allow_public else "none"

    def upload_environment(self) -> None:
        """Copy environment/ into the workdir of a prebuilt image, as Harbor does where nothing in it is built."""
        folder = self._task.path / "environment"
        built = any((folder / name).exists() for name in BUILT_FROM)
        if not self._config.environment.docker_image or built or not is_folder(folder):
            return
        inbox = self._layer.folder / "environment-inbox"
        copy_in(folder, inbox / "environment")
        with self._layer.container("none", [Bind(inbox, INBOX)]) as container:
            self._layer.written = True
            self._inside(container, f'{_LOG_FOLDERS}; cp -a {INBOX}/environment/. "$PWD"', self._workdir)

    def set_up(self, runtime: PhaseRuntime) -> None:
        """Run setup_files/setup.sh as root, with the network of builds. Raises Conclusion."""
        if not self._task.has_setup:
            return
        copy = self._layer.folder / "setup_files"
        copy_in(self._task.path / "setup_files", copy)
        script, seconds = "/setup_files/setup.sh", self._config.environment.build_timeout_sec
        env = runtime.variables(self._env)
        with runtime.required(self._layer.bench.sandbox):
            binds = [Bind(copy, "/setup_files"), *runtime.binds(mounted=False)]
            with self._layer.container(self._setup_network, binds) as container:
                self._layer.written = True
                self._inside(container, _LOG_FOLDERS)
                log = self._evidence / "setup.txt"
                command = Command(run_script(script), log, env, None, self._workdir, seconds, phase="setup")
                result = container.run(command)
            require_end(result, "setup_files/setup.sh", "setup-timeout")
            require_zero(result, "setup_files/setup.sh", "setup-failed")

    def needed(self, step: Step) -> bool:
        """Whether anything happens in this phase; an agent that does nothing needs no container."""
        return self._agent.acts or bool(step.workdir or self._healthchecks(step) or step.collect)

    def binds(self, step: Step, folder: Path) -> list[Bind]:
        """Make what the phase's container gets, below ``folder``."""
        binds = [Bind(log_folder(folder / "agent"), "/logs/agent"), *self._agent.binds(self._task, step, folder)]
        if step.workdir is not None:
            copy_in(step.workdir, folder / "inbox" / "workdir")
            binds.append(Bind(folder / "inbox", INBOX))
        return binds

    def run(self, step: Step, folder: Path, outcome: StepOutcome) -> None:
        """Run the phase in a container of its own. Raises Conclusion."""
        if self.needed(step):
            network = network_of(step.agent_network, self._layer.bench.allow_public)
            try:
                with LivingContainer(self._layer, network, self.binds(step, folder)) as container:
                    self.act(container, step, outcome)
            finally:
                self.keep_logs(step, folder)

    def keep_logs(self, step: Step, folder: Path) -> None:
        """Keep what the agent left in /logs/agent as evidence; its container is dead."""
        logs = folder / "agent"
        if logs.is_dir():
            self._layer.bench.sandbox.make_readable(logs)
            keep_evidence(logs, step_folder(self._evidence, step.name) / "agent")

    def act(self, container: LivingContainer, step: Step, outcome: StepOutcome) -> None:
        """Do everything of the phase in a started container. Raises Conclusion."""
        self._layer.written = True
        self._inside(container, _LOG_FOLDERS)
        if step.workdir is not None:
            self._upload_workdir(container, step)
        for check in self._healthchecks(step):
            self._await_health(container, check)
        log = self._log(step, f"agent/{self._agent.name}.txt")
        run = partial(_run_as_agent, container)
        user, seconds, revive = self._user(step), step.agent_timeout, container.revive
        place = AgentPlace(run, self._env, user, self._workdir, seconds, log, revive, outcome.used)
        result = self._agent.act(self._task, step, place)
        if result is not None:
            require_end(result, "solve.sh" if self._agent.name == "oracle" else "the agent", "agent-timeout")
            outcome.agent_status, outcome.left_alive = result.status, result.left_alive
        for number, hook in enumerate(step.collect, start=1):
            argv = [*self._layer.image.config.shell, hook.command]
            user = hook.user if hook.user is not None else self._user(step)
            log = self._log(step, f"collect-{number}.txt")
            command = Command(argv, log, self._env, user, self._workdir, hook.timeout_sec)
            result = _run_as_agent(container, command)
            require_end(result, f"collect command {number}", "collect-failed")
            require_zero(result, f"collect command {number}", "collect-failed")

    def _user(self, step: Step) -> str | int | None:
        return step.agent_user if step.agent_user is not None else self._layer.image.config.user

    def _healthchecks(self, step: Step) -> list[HealthcheckConfig]:
        checks = [step.healthcheck]
        if step.name:
            checks.insert(0, self._config.environment.healthcheck)
        return [check for check in checks if check is not None]

    def _await_health(self, container: Container, check: HealthcheckConfig) -> None:
        """Repeat a check as Docker does: failures count only after the start period."""
        began, failures = time.monotonic(), 0
        while True:
            # Our own time limit kills the whole container, so the check gets one of its own.
            limit = f'{TOOLBOX}/busybox timeout -s KILL {check.timeout_sec:g} {TOOLBOX}/sh -c "$0"'
            log = self._evidence / "healthcheck.txt"
            argv = [f"{TOOLBOX}/sh", "-c", limit, check.command]
            result = _run_as_agent(container, Command(argv, log, self._env, None, self._workdir))
            require_end(result, "the health check", "healthcheck-failed")
            if result.ok:
                return
            starting = time.monotonic() - began < check.start_period_sec
            failures += 0 if starting else 1
            if failures >= max(1, check.retries):
                raise Conclusion("healthcheck-failed", f"the health check failed {failures} times", tail(log))
            time.sleep(check.start_interval_sec if starting else check.interval_sec)

    def _upload_workdir(self, container: Container, step: Step) -> None:
        self._inside(container, f'cp -a {INBOX}/workdir/. "$PWD"', self._workdir)
        assert step.workdir is not None
        if is_regular(step.workdir / "setup.sh"):
            script = self._workdir.rstrip("/") + "/setup.sh"
            log = f"steps/{step.name}/setup.txt"
            seconds = self._config.environment.build_timeout_sec
            command = Command(run_script(script), self._evidence / log, self._env, None, self._workdir, seconds)
            result = _run_as_agent(container, command)
            require_end(result, f"steps/{step.name}/workdir/setup.sh", "setup-timeout")
            require_zero(result, f"steps/{step.name}/workdir/setup.sh", "setup-failed")

    def _inside(self, container: Container, text: str, workdir: str = "/") -> None:
        """Run a command of ours; what an earlier step left at its goal, a FIFO for one, may keep it from ending."""
        log, seconds = self._layer.folder / "inside.txt", self._config.environment.build_timeout_sec
        command = Command([f"{TOOLBOX}/sh", "-c", text], log, {"PATH": TOOLBOX}, workdir=workdir, seconds=seconds)
        require_end(container.run(command), "preparing the container", "setup-timeout")

    def _log(self, step: Step, name: str) -> Path:
        return step_folder(self._evidence, step.name) / name


def _run_as_agent(container: Container, command: Command) -> CommandResult:
    return container.run(replace(command, phase="agent"))


def require_zero(result: CommandResult, who: str, reason: str) -> None:
    """Raise a Conclusion for a command that ended with another status than 0."""
    if not result.ok:
        raise Conclusion(reason, f"{who} ended with status {result.status}", tail(result.log))
