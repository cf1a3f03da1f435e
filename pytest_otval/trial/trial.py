"""One trial: set-up, then for each step the agent, the hand-over and the verifier, in this order."""

from __future__ import annotations

from pathlib import Path

from pytest_otval.core import RESTORING, Conclusion, Isolation, Network
from pytest_otval.images.model import Image
from pytest_otval.sandbox.admission import Need
from pytest_otval.sandbox.base import Bind, ContainerSpec
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import Step, Task
from pytest_otval.trial.agent_phase import INBOX, AgentPhase
from pytest_otval.trial.agents.base import Agent
from pytest_otval.trial.conditions import ORDINARY, Conditions
from pytest_otval.trial.files import log_folder
from pytest_otval.trial.hand_over import HandOver
from pytest_otval.trial.layer import Bench, Layer, environments_of, limits_of, network_of
from pytest_otval.trial.living import LivingContainer
from pytest_otval.trial.outcome import Scope, StepOutcome, TrialOutcome
from pytest_otval.trial.reward import RewardFault, Rewards, harbors_answer, our_rewards, reaches
from pytest_otval.trial.verifier_phase import VerifierPhase


def run_trial(
    bench: Bench,
    task: Task,
    image: Image,
    agent: Agent,
    scope: Scope,
    settings: DatasetSettings,
    evidence: Path,
    conditions: Conditions = ORDINARY,
    isolation: Isolation = "fresh",
) -> TrialOutcome:
    """Run one trial of a task whose images are ready, once the node has room; it never raises for what the task does.

    At isolation ``none`` a shared verifier is as Harbor has it, whatever the scope. ``evidence`` gets the logs.
    Where the trial could not come to its end, the outcome's ``conclusion`` says why.
    """
    outcome = TrialOutcome(agent.name, scope, evidence, version=agent.version, model=agent.model, side=agent.side)
    folder = bench.scratch.new("trial")
    evidence.mkdir(parents=True, exist_ok=True)
    trial = _Trial(bench, task, image, agent, settings, outcome, folder, conditions, isolation)
    try:
        limits = [limits_of(one) for one in environments_of(task)]
        with bench.admission.grant(Need.of(limits, bench.share)) as granted:
            outcome.seconds["waited"] = granted.waited
            with outcome.timed("total"):
                trial.run()
    except Conclusion as conclusion:
        outcome.conclusion = conclusion
    finally:
        outcome.reproduce = trial.shell_line()
        if not bench.keep:
            with outcome.timed("removal"):
                bench.sandbox.remove(folder)
    return outcome


class _Trial:
    def __init__(
        self,
        bench: Bench,
        task: Task,
        image: Image,
        agent: Agent,
        settings: DatasetSettings,
        outcome: TrialOutcome,
        folder: Path,
        conditions: Conditions,
        isolation: Isolation,
    ) -> None:
        assert task.config is not None
        self._bench = bench
        self._task = task
        self._outcome = outcome
        self._folder = folder
        self._settings = settings
        self._isolation = isolation
        self._layer = Layer(bench, image, limits_of(task.config.environment), folder)
        self._agent = AgentPhase(task, agent, self._layer, outcome.evidence)
        self._hand_over = HandOver(task.config, self._layer, outcome.evidence, isolation)
        self._verifier = VerifierPhase(bench, task, self._layer, outcome.evidence, conditions)

    def run(self) -> None:
        with self._outcome.timed("setup"):
            runtime = self._agent.take_runtime()
            self._outcome.runtime = str(runtime)
            self._agent.upload_environment()
            self._agent.set_up(runtime)
            if self._layer.written and self._isolation in RESTORING:
                self._layer.remember()
        fault: RewardFault | None = None
        for number, step in enumerate(self._task.steps):
            folder = self._folder / f"step-{number}"
            folder.mkdir()
            outcome = self._together(step, folder) if self._shares(step) else self._apart(step, folder)
            assert outcome.files is not None
            rewards: Rewards | RewardFault | None = our_rewards(outcome.files, self._settings, self._outcome.side)
            if isinstance(rewards, RewardFault):
                # Where Harbor sees none it goes on, and its answer is told beside ours.
                fault = fault or rewards
                rewards = harbors_answer(outcome.files).rewards
            else:
                outcome.rewards = rewards
            if rewards is None or not reaches(rewards, step.min_reward):
                break
        if fault is not None:
            raise Conclusion(fault.reason, fault.headline)

    def _shares(self, step: Step) -> bool:
        """Whether one container serves both phases of a step."""
        if self._isolation == "none":
            return step.verifier_mode != "separate"
        return self._outcome.scope == "trial"

    def shell_line(self) -> str:
        """Return a command line for a shell where the trial ended; over the pristine image if its layer goes."""
        last = self._verifier.graded.last
        if last is None or not self._bench.keep:
            last = ContainerSpec(self._layer.image.files)
        return self._bench.sandbox.shell_line(last)

    def _apart(self, step: Step, folder: Path) -> StepOutcome:
        timed = self._outcome.timed
        outcome = StepOutcome(step.name)
        self._outcome.steps.append(outcome)
        with timed("agent", step.name):
            self._agent.run(step, folder, outcome)
        with timed("hand_over", step.name):
            handed = self._hand_over.run(step, folder)
        with timed("verifier", step.name):
            self._verifier.verify(step, outcome, folder, handed)
        return outcome

    def _together(self, step: Step, folder: Path) -> StepOutcome:
        """Run both phases in one container, so that a service of the agent is there for the verifier."""
        timed = self._outcome.timed
        outcome = StepOutcome(step.name)
        self._outcome.steps.append(outcome)
        modes = (step.agent_network, step.verifier_network)
        networks = {network_of(mode, self._bench.allow_public) for mode in modes}
        logs = log_folder(folder / "verifier")
        binds = self._agent.binds(step, folder)
        if not any(bind.target == INBOX for bind in binds):
            (folder / "inbox").mkdir()
            binds.append(Bind(folder / "inbox", INBOX))
        binds.append(Bind(logs, "/logs/verifier"))
        if self._isolation != "none":
            binds.append(Bind(log_folder(folder / "tests-seen"), "/tests"))
        binds += self._verifier.place_for_conditions(folder)
        network: Network = "public" if "public" in networks else "none"
        runtime = self._verifier.runtime(step, outcome, folder, network)
        binds += runtime.binds(mounted=True)
        try:
            with runtime.required(self._bench.sandbox), LivingContainer(self._layer, network, binds) as container:
                with timed("agent", step.name):
                    self._agent.act(container, step, outcome)
                with timed("verifier", step.name):
                    self._verifier.verify_together(container, step, outcome, folder, self._isolation, runtime)
        finally:
            self._agent.keep_logs(step, folder)
            self._verifier.note_conditions(outcome, folder)
        self._verifier.read(step, outcome, logs)
        return outcome
