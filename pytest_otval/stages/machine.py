"""What stages need of the machine, made when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_otval.checks.cache import FindingsCache
from pytest_otval.checks.lint import SH_RULES, SHELL_RULES, lint_checks
from pytest_otval.checks.linters import hadolint, shellcheck
from pytest_otval.checks.registry import Check, all_checks
from pytest_otval.checks.version import checks_version
from pytest_otval.core import Conclusion, Network, OtvalUsageError
from pytest_otval.images.bases import Bases, ImageSource, chosen_sources, own_sources
from pytest_otval.images.locks import sweep_half
from pytest_otval.images.model import Image, ImageRequest
from pytest_otval.images.pulling import Puller
from pytest_otval.images.record import usable_record
from pytest_otval.images.registry import Registry
from pytest_otval.images.staging import Staging, staging_of, sweep_staged
from pytest_otval.images.steps import base_plan
from pytest_otval.images.store import Images
from pytest_otval.judge.cache import VERSION as ANSWERS_VERSION
from pytest_otval.judge.calibration import Calibration, latest
from pytest_otval.judge.model import Kind, Rubric
from pytest_otval.judge.rubric import rubrics
from pytest_otval.kept import Kept
from pytest_otval.leaks.scan import scan_version
from pytest_otval.llm.agents.base import ModelAgent, agent_named
from pytest_otval.llm.agents.mini import MiniSweAgent
from pytest_otval.llm.agents.tools import ToolAgent
from pytest_otval.llm.budget import Budget
from pytest_otval.llm.client import EndpointChat, numbered_chat, section_for
from pytest_otval.profile import ModelSection, Profile
from pytest_otval.runtimes.build import Installer
from pytest_otval.runtimes.store import Runtimes
from pytest_otval.sandbox.admission import Admission
from pytest_otval.sandbox.apptainer import FLAVOURS, ApptainerSandbox
from pytest_otval.sandbox.budget import node_budget
from pytest_otval.sandbox.launch import Child, Launcher, Step
from pytest_otval.sandbox.leftovers import OwnScratch, sweep
from pytest_otval.sandbox.probe import apptainer_maker, choose_flavour
from pytest_otval.sandbox.slots import Slots
from pytest_otval.sandbox.toolbox import ensure_toolbox
from pytest_otval.settings import Settings
from pytest_otval.stages.attempted import AttemptLines
from pytest_otval.trial.agents.base import Agent
from pytest_otval.trial.agents.noop import Noop
from pytest_otval.trial.agents.oracle import Oracle
from pytest_otval.trial.layer import Bench
from pytest_otval.workspace import Workspace, node_folder, scratch


@dataclass(frozen=True, slots=True)
class Extensions:
    """What plugins, ours among them, add to a machine."""

    checks: Mapping[str, Check]
    """By id."""
    agents: Mapping[str, Agent]
    """By name."""
    image_sources: Callable[[Profile, Path, bool], Mapping[str, ImageSource]]
    """By name; called with the profile, the image store, and whether the run is offline."""
    model_agents: Mapping[str, ModelAgent]
    """By name."""


def own_extensions() -> Extensions:
    """Return our own part."""
    return Extensions(
        all_checks(),
        {agent.name: agent for agent in (Oracle(), Noop())},
        lambda profile, store, offline: {source.name: source for source in own_sources(store, profile, offline)},
        {agent.name: agent for agent in (MiniSweAgent(), ToolAgent())},
    )


class Machine:
    """Sandbox, images and scratch of one process of a run."""

    def __init__(
        self,
        settings: Settings,
        workspace: Workspace,
        profile: Profile,
        extensions: Extensions,
        root: Path | None = None,
    ) -> None:
        """``settings.verdict.flavour`` is the probed one. ``root``: the project's folder, where it may have rubrics."""
        self.settings = settings
        self.profile = profile
        self._checks = extensions.checks
        self._agents = extensions.agents
        self._image_sources = extensions.image_sources
        self._model_agents = extensions.model_agents
        self._workspace = workspace
        self._root = root

    @cached_property
    def checks(self) -> Mapping[str, Check]:
        """Every check by id, those that ask the linters where they are wanted."""
        if not self.settings.verdict.linters:
            return self._checks
        answers = self._workspace.cache / "lint"
        shell = shellcheck([*SHELL_RULES, *SH_RULES], answers)
        return {**self._checks, **lint_checks(shell, hadolint(answers))}

    def agent(self, name: str) -> Agent:
        """Return an agent. Raises OtvalUsageError for a name no plugin gives."""
        if name not in self._agents:
            raise OtvalUsageError(f"there is no agent {name!r}: plugins give {', '.join(self._agents)}")
        return self._agents[name]

    @property
    def model_agent(self) -> ModelAgent:
        """What drives the teacher's models. Raises OtvalUsageError for a name no plugin gives."""
        return agent_named(self._model_agents, self.settings.verdict.agent)

    @cached_property
    def budget(self) -> Budget:
        """What the run may spend on models."""
        run = self.settings.run
        return Budget(run.out, run.budget_tokens or None, run.budget_usd or None)

    def model_section(self, model: str) -> ModelSection:
        """Return what the profile says of a model. Raises OtvalUsageError."""
        return section_for(self.profile, model, self.settings.run.base_url)

    def chat(self, model: str, attempt: int) -> EndpointChat:
        """Return a model for one attempt: a seed of the profile counts up with it. Raises OtvalUsageError."""
        return numbered_chat(model, self.model_section(model), self.budget, attempt)

    def rubric(self, kind: Kind) -> Rubric:
        """Return what is judged by: the command line's, project's, workspace's, else ours. Raises OtvalUsageError."""
        return self._rubrics[kind]

    @cached_property
    def _rubrics(self) -> Mapping[Kind, Rubric]:
        places = [*([self._root] if self._root else []), self._workspace.root]
        return rubrics(self.settings.run.rubric, places)

    def calibration(self, kind: Kind) -> Calibration | None:
        """Return what was measured of the run's judge by the rubric of this kind. Raises OtvalUsageError."""
        return self._calibrations[kind]

    @cached_property
    def _calibrations(self) -> Mapping[Kind, Calibration | None]:
        judge, folder = self.settings.run.judge, self._workspace.judges
        model = self.model_section(judge).served_name or judge
        try:
            return {kind: latest(folder, model, rubric.digest) for kind, rubric in self._rubrics.items()}
        except OSError as error:
            raise OtvalUsageError(f"{folder}: calibrations cannot be read: {error.strerror or error}") from None

    @cached_property
    def judge_answers(self) -> Kept:
        """What a judge answered before."""
        return Kept(self._workspace.cache / "judge", ANSWERS_VERSION)

    @cached_property
    def attempts(self) -> AttemptLines:
        """Those that are reviewed."""
        run = self.settings.run
        return AttemptLines(Path(run.trials) if run.trials else run.out)

    @cached_property
    def scratch(self) -> OwnScratch:
        """Node-local folders of this process."""
        return OwnScratch(scratch(self.profile.scratch.path))

    @cached_property
    def checks_version(self) -> str | None:
        """A digest of the checks; None where what they find must not be kept."""
        return checks_version(self.checks.values())

    @cached_property
    def findings(self) -> FindingsCache | None:
        """What checks found before; None where that must not be kept."""
        version = self.checks_version
        return FindingsCache(self._workspace.cache / "static", version) if version else None

    @cached_property
    def leaks(self) -> FindingsCache:
        """What was found before in images."""
        return FindingsCache(self._workspace.cache / "image-leaks", scan_version())

    @cached_property
    def sandbox(self) -> ApptainerSandbox:
        """The sandbox in the run's flavour. Raises Conclusion ``missing-tool``."""
        toolbox = ensure_toolbox(self._workspace.images)
        flavour = FLAVOURS[self.settings.verdict.flavour]
        slurm = self.profile.slurm
        starts = Slots(node_folder(), "start", slurm.container_starts if slurm is not None else None)
        steps = slurm is not None and slurm.trial_step == "srun" and "SLURM_JOB_ID" in os.environ
        launch: Launcher = Step if steps else Child
        return ApptainerSandbox(flavour, toolbox, self.scratch, self.profile.network.public, starts, launch)

    @cached_property
    def admission(self) -> Admission:
        """Who may run what on this node, and when."""
        return Admission(scratch(self.profile.scratch.path), node_budget(self.profile.budget))

    @cached_property
    def images(self) -> Images:
        """The image store. Raises OtvalUsageError where the profile names an unknown source."""
        store, offline = self._workspace.images, not self.fetches
        sources = self._image_sources(self.profile, store, offline)
        return Images(
            store,
            self.sandbox,
            self.profile,
            self.scratch.folder,
            self.settings.run.out,
            force_build=self.settings.verdict.force_build,
            offline=offline,
            sources=chosen_sources(self.profile, sources),
            pull=self._puller(),
            admission=self.admission,
        )

    @cached_property
    def runtimes(self) -> Runtimes:
        """The cache of runtimes."""
        return Runtimes(self._workspace.runtimes)

    @cached_property
    def installer(self) -> Installer:
        """Who puts runtimes into the cache."""
        network: Network = "public" if self.fetches else "none"
        site, scratch_folder = self.profile.build, self.scratch.folder
        return Installer(self.runtimes, self.sandbox, site, scratch_folder, self.admission, network)

    def _puller(self) -> Puller:
        slots, at_once = scratch(self.profile.scratch.path), self.profile.registries.pulls
        return Puller(Registry.of(self.profile), self.sandbox, self.scratch.folder, slots, at_once)

    def bases_not_here(self, names: Iterable[str]) -> list[str]:
        """Return the base images that are not in the store, as far as is known without asking any network."""
        store = self._workspace.images
        bases = Bases(self.profile, chosen_sources(self.profile, self._image_sources(self.profile, store, True)))
        return [name for name in names if not _is_here(name, bases, store)]

    @property
    def allow_public(self) -> bool:
        """Whether anything may have the public network."""
        return self.settings.verdict.network != "none" and self.profile.network.public != "none"

    @property
    def fetches(self) -> bool:
        """Whether a run may fetch images, packages, runtimes for itself; what phases of tasks get is another matter."""
        return self.allow_public and not self.settings.run.offline

    def bench(self) -> Bench:
        """Return what trials need."""
        keep = self.settings.run.keep
        public, admission = self.allow_public, self.admission
        return Bench(self.sandbox, self.scratch, self._trial_image, public, admission, self.runtimes, keep)

    def _trial_image(self, request: ImageRequest) -> Image:
        image = self.images.ensure(request)
        return image if self._staging is None else self._staging.staged(image)

    @cached_property
    def _staging(self) -> Staging | None:
        return staging_of(self.profile, self._workspace.images)

    def close(self) -> None:
        """Write down what waits, and give back the scratch folder but for what the user wants to keep."""
        budget: Budget | None = self.__dict__.get("budget")
        if budget is not None:
            budget.close()
        for name in ("findings", "leaks", "judge_answers"):
            found: FindingsCache | Kept | None = self.__dict__.get(name)
            if found is not None:
                found.close()
        if "scratch" in self.__dict__:
            if self.settings.run.keep:
                self.scratch.keep()
            self.scratch.close()


def _is_here(name: str, bases: Bases, store: Path) -> bool:
    try:
        base = bases.docker_image(name, Path.cwd())
    except Conclusion:
        return False
    keys = (base_plan(base, all_root).key for all_root in (False, True))
    return any(usable_record(store, key) is not None for key in keys)


def probe_flavour(workspace: Workspace, profile: Profile) -> tuple[str, list[str]]:
    """Sweep what killed runs left, and find the flavour this user has here.

    Returns its name and a line for each folder swept. Raises Conclusion ``missing-tool`` or ``no-start``.
    """
    own = OwnScratch(scratch(profile.scratch.path))
    try:
        toolbox = ensure_toolbox(workspace.images)
        make = apptainer_maker(toolbox, own, profile.network.public)
        flavour = choose_flavour(profile.sandbox.flavours, make, toolbox, own)
        swept = sweep(own.folder.parent, make(flavour).remove)
        files = sweep_half(workspace.images) + sweep_staged(own.folder.parent) + sweep_half(workspace.runtimes)
        return flavour.name, [*swept, f"images, runtimes: {files} files of killed builds removed"] if files else swept
    finally:
        own.close()
