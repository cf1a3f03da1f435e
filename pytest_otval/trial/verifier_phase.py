"""The verifier's phase: a clean container, the tests, and the files they leave."""

from __future__ import annotations

import os
import secrets
import tarfile
import time
from pathlib import Path

from pytest_otval.core import Isolation, Network
from pytest_otval.images.model import ImageRequest
from pytest_otval.runtimes.mount import verifier_supply
from pytest_otval.sandbox.base import TOOLBOX, Bind, Command, Container
from pytest_otval.task.copies import copy_in
from pytest_otval.task.load import Step, Task
from pytest_otval.task.reading import is_regular
from pytest_otval.trial.agent_phase import INBOX, require_zero
from pytest_otval.trial.conditions import PLACE, Conditions
from pytest_otval.trial.environment import resolve
from pytest_otval.trial.files import keep_evidence, log_folder
from pytest_otval.trial.hand_over import HAND_OVER_SECONDS, Handed, extract, limited
from pytest_otval.trial.layer import Bench, Layer, limits_of, network_of, require_end, run_script
from pytest_otval.trial.outcome import StepOutcome, step_folder
from pytest_otval.trial.reward import read_reward_files
from pytest_otval.trial.runtime import PhaseRuntime


class VerifierPhase:
    """The verifiers of one trial."""

    def __init__(self, bench: Bench, task: Task, layer: Layer, evidence: Path, conditions: Conditions) -> None:
        assert task.config is not None
        self._bench = bench
        self._task = task
        self._config = task.config
        self._layer = layer
        self._evidence = evidence
        self._conditions = conditions
        self.graded = layer
        """The layer the latest verifier ran over."""

    def verify(self, step: Step, outcome: StepOutcome, folder: Path, handed: Handed | None) -> None:
        """Run the verifier in a container of its own and read what it left. Raises Conclusion."""
        self.graded = layer = self._layer if step.verifier_image is None else self._separate_layer(step, folder)
        network = network_of(step.verifier_network, self._bench.allow_public)
        logs = log_folder(folder / "verifier")
        binds = [Bind(logs, "/logs/verifier")]
        if self._copies_tests(step):
            binds.append(Bind(self._tests(step, folder), "/tests"))
        if handed is not None and handed.archive is not None:
            inbox = folder / "verifier-inbox"
            inbox.mkdir()
            handed.archive.replace(inbox / handed.archive.name)
            binds.append(Bind(inbox, INBOX))
        if self._conditions:
            binds.append(Bind(self._conditions.bring(folder / "conditions"), PLACE))
        runtime = self.runtime(step, outcome, folder, network)
        binds += runtime.binds(mounted=True)
        try:
            with runtime.required(self._bench.sandbox), layer.container(network, binds) as container:
                layer.written = True
                if handed is not None:
                    handed.unpack(container, folder)
                self.grade(container, step, outcome, layer, runtime)
        finally:
            self.note_conditions(outcome, folder)
        self.read(step, outcome, logs)

    def runtime(self, step: Step, outcome: StepOutcome, folder: Path, network: Network) -> PhaseRuntime:
        """Return the runtime of a step's verifier, noted in its outcome. Raises Conclusion."""
        runtime = PhaseRuntime(verifier_supply(self._bench.runtimes, step), folder, network)
        outcome.runtime = str(runtime)
        return runtime

    def _separate_layer(self, step: Step, folder: Path) -> Layer:
        assert step.verifier_image is not None
        environment = step.verifier_image.environment
        limits = limits_of(environment)
        request = ImageRequest(
            step.verifier_image.context, step.verifier_image.docker_image, environment.build_timeout_sec, limits
        )
        return Layer(self._bench, self._bench.ensure_image(request), limits, folder / "separate")

    def _copies_tests(self, step: Step) -> bool:
        return step.verifier_image is None or not step.verifier_image.bundled

    def _tests(self, step: Step, folder: Path) -> Path:
        """Make this trial's copy of the tests."""
        copy = folder / "tests"
        copy.mkdir()
        for source in (step.shared_tests, step.tests):
            if source is not None and source.is_dir():
                copy_in(source, copy)
        return copy

    def grade(
        self, container: Container, step: Step, outcome: StepOutcome, layer: Layer, runtime: PhaseRuntime
    ) -> None:
        """Run tests/setup.sh, if there is one, and test.sh, together within the verifier's limit."""
        environment = step.verifier_image.environment if step.verifier_image else self._config.environment
        image = layer.image.config
        env = {
            **image.env,
            **resolve(environment.env, "environment.env"),
            **resolve(step.verifier_env, "verifier.env"),
        }
        workdir = environment.workdir or image.workdir
        tests = [folder for folder in (step.shared_tests, step.tests) if folder is not None]
        env = runtime.verifier_variables(env, layer.image.files, tests, workdir)
        if runtime:
            outcome.python = env["OT_PYTHON"]
        deadline = time.monotonic() + step.verifier_timeout
        if self._copies_tests(step) and is_regular(step.tests / "setup.sh"):
            log = self._log(step, "verifier-setup.txt")
            argv = run_script("/tests/setup.sh")
            command = Command(argv, log, env, None, workdir, step.verifier_timeout, phase="verifier")
            result = container.run(command)
            require_end(result, "tests/setup.sh", "verifier-timeout")
            require_zero(result, "tests/setup.sh", "setup-failed")
        user = step.verifier_user if step.verifier_user is not None else image.user
        left = max(0.1, deadline - time.monotonic())
        log = self._log(step, "verifier/test-stdout.txt")
        env = self._conditions.variables(env)
        test = Command(run_script("/tests/test.sh"), log, env, user, workdir, left, phase="verifier")
        self._conditions.require_clock(container, test, self._log(step, "verifier-clock.txt"))
        result = container.run(test)
        outcome.verifier_status = result.status
        require_end(result, "the verifier", "verifier-timeout")

    def read(self, step: Step, outcome: StepOutcome, logs: Path) -> None:
        """Read the rewards of a verifier that is dead, and keep its files as evidence."""
        self._bench.sandbox.make_readable(logs)
        outcome.files = read_reward_files(logs)
        keep_evidence(logs, step_folder(self._evidence, step.name) / "verifier")

    def verify_together(
        self,
        container: Container,
        step: Step,
        outcome: StepOutcome,
        folder: Path,
        isolation: Isolation,
        runtime: PhaseRuntime,
    ) -> None:
        """Bring the tests into the agent's living container and grade there.

        The container may change any folder that it can see, so the tests go in as one new file under a name nobody
        could foresee, and are unpacked by a program of ours inside.
        """
        cleared = [PLACE] if self._conditions else []
        if isolation == "none":
            self._make_ready_as_harbor(container, step, folder)
        else:
            cleared += ["/tests", "/logs/verifier"]
        if cleared:
            argv = [f"{TOOLBOX}/busybox", "find", *cleared, "-mindepth", "1", "-delete"]
            require_end(container.run(limited(Command(argv, folder / "hand-over.txt"))), "the hand-over", "tampered")
        _send(container, self._tests(step, folder), "/tests", folder)
        if self._conditions:
            _send(container, self._conditions.bring(folder / "conditions-sent"), PLACE, folder)
        self.grade(container, step, outcome, self._layer, runtime)

    def _make_ready_as_harbor(self, container: Container, step: Step, folder: Path) -> None:
        """Do what Harbor 0.26 does before it uploads tests, as it does, by the container's own bash and rm.

        Old rewards go, and from the second step on what lies in /tests; tests are then merged into what there is.
        """
        commands = ["rm -f -- /logs/verifier/reward.txt /logs/verifier/reward.json"]
        if step.name and step.name != self._task.steps[0].name:
            commands.append("find /tests -mindepth 1 -delete")
        for command in commands:
            argv = [f"{TOOLBOX}/sh", "-c", 'exec "$(command -v bash || echo sh)" -c "$0"', command]
            env = self._layer.image.config.env
            result = container.run(Command(argv, folder / "hand-over.txt", env, seconds=HAND_OVER_SECONDS))
            require_end(result, command, "tampered")
            require_zero(result, command, "tampered")
        container.run(limited(Command([f"{TOOLBOX}/busybox", "mkdir", "-p", "/tests"], folder / "hand-over.txt")))

    def place_for_conditions(self, folder: Path) -> list[Bind]:
        """Return what a container of both phases needs from its start: an empty folder, which is filled in between."""
        return [Bind(log_folder(folder / "conditions"), PLACE)] if self._conditions else []

    def note_conditions(self, outcome: StepOutcome, folder: Path) -> None:
        """Note what the conditions came to, once the verifier is dead."""
        brought = folder / "conditions"
        if brought.is_dir():
            self._bench.sandbox.make_readable(brought)
            outcome.test_order = self._conditions.test_order(brought)

    def _log(self, step: Step, name: str) -> Path:
        return step_folder(self._evidence, step.name) / name


def _send(container: Container, content: Path, target: str, folder: Path) -> None:
    name = f"{secrets.token_hex(16)}.tar"
    handle = os.open(folder / "inbox" / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
        tar.add(content, arcname=".")
    extract(container, f"{INBOX}/{name}", target, folder)
