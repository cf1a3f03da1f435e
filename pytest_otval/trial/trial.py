"""One trial: set-up, then for each step the agent, the hand-over and the verifier, in this order."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_otval.core import Conclusion
from pytest_otval.images.model import Image
from pytest_otval.sandbox.base import Bind
from pytest_otval.task.dataset import DatasetSettings
from pytest_otval.task.load import Step, Task
from pytest_otval.trial.agent_phase import INBOX, AgentPhase
from pytest_otval.trial.agents.base import Agent
from pytest_otval.trial.files import log_folder
from pytest_otval.trial.layer import Bench, Layer, limits_of, network_of
from pytest_otval.trial.outcome import Scope, StepOutcome, TrialOutcome
from pytest_otval.trial.reward import RewardFault, Rewards, Side, harbors_answer, our_rewards, reaches
from pytest_otval.trial.verifier_phase import VerifierPhase


def run_trial(
    bench: Bench, task: Task, image: Image, agent: Agent, scope: Scope, settings: DatasetSettings, evidence: Path
) -> TrialOutcome:
    """Run one trial of a task whose image is ready; it never raises for what the task does.

    ``evidence`` gets the logs; what an earlier try left there goes. Where the trial could not come to its end, the outcome's ``conclusion`` says why.
    """
    outcome = TrialOutcome(agent.name, scope, evidence)
    folder = bench.scratch.new("trial")
    shutil.rmtree(evidence, ignore_errors=True)
    evidence.mkdir(parents=True)
    try:
        with outcome.timed("total"):
            _Trial(bench, task, image, agent, settings, outcome, folder).run()
    except Conclusion as conclusion:
        outcome.conclusion = conclusion
    finally:
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
    ) -> None:
        assert task.config is not None
        self._bench = bench
        self._task = task
        self._outcome = outcome
        self._folder = folder
        self._settings = settings
        self._side: Side = "low" if agent.acts else "high"
        self._layer = Layer(bench, image, limits_of(task.config.environment), folder)
        self._agent = AgentPhase(task, agent, self._layer, outcome.evidence)
        self._verifier = VerifierPhase(bench, task, self._layer, outcome.evidence)

    def run(self) -> None:
        with self._outcome.timed("setup"):
            self._agent.upload_environment()
            self._agent.set_up()
        fault: RewardFault | None = None
        for number, step in enumerate(self._task.steps):
            folder = self._folder / f"step-{number}"
            folder.mkdir()
            run_step = self._together if self._outcome.scope == "trial" else self._apart
            outcome = run_step(step, folder)
            assert outcome.files is not None
            rewards: Rewards | RewardFault | None = our_rewards(outcome.files, self._settings, self._side)
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

    def _apart(self, step: Step, folder: Path) -> StepOutcome:
        timed = self._outcome.timed
        with timed("agent", step.name):
            outcome = self._agent.run(step, folder)
        self._outcome.steps.append(outcome)
        with timed("hand_over", step.name):
            artifacts = self._verifier.hand_over(step, folder)
        with timed("verifier", step.name):
            self._verifier.verify(step, outcome, folder, artifacts)
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
        binds += [Bind(log_folder(folder / "tests-seen"), "/tests"), Bind(logs, "/logs/verifier")]
        try:
            with self._layer.container("public" if "public" in networks else "none", binds) as container:
                with timed("agent", step.name):
                    self._agent.act(container, step, outcome)
                with timed("verifier", step.name):
                    self._verifier.verify_together(container, step, outcome, folder)
        finally:
            self._agent.keep_logs(step, folder)
        self._verifier.read(step, outcome, logs)
        return outcome
