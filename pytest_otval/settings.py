"""The settings of a run, in two lists: those that may change a verdict, and those that may not.

The first list is what ``settings_digest`` covers. A selftest fails on an ``--otval-*`` option that is in neither.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from pytest_otval.core import Isolation, Rules, Severity


@dataclass(frozen=True, slots=True)
class VerdictSettings:
    """What can change a verdict; equal settings, tasks and images must give equal verdicts."""

    rules: Rules = "default"
    """harbor: as Harbor 0.26 decides; default: ours; strict: solve.sh must end with 0 too."""
    network: str = "task"
    """task: what the task asks for; none: no network at all, tasks that need one are n/a."""
    linters: bool = False
    """Ask shellcheck and hadolint in the static stage, too."""
    force_build: bool = False
    """Build the Dockerfile even where ``docker_image`` is set."""
    timeout_multiplier: float = 1.0
    """Factor on every time limit of a task: for machines slower than those the limits were written for."""
    shuffle_tests: bool = False
    """Run the verifier's tests in random order, where the verifier runs pytest."""
    clock_shift: str = ""
    """How far the verifier's clock is put forward, as ``400d`` or ``-12h``; empty: not at all."""
    isolation: Isolation | Literal["auto"] | None = None
    """Of shared verifiers; auto: the strongest at which a task works; None: what task or dataset say, else fresh."""
    attacks: tuple[str, ...] = ()
    """Ids of the attacks that the adversary stage tries; none: the whole battery."""
    severity: Severity = Severity.ERROR
    """The mildest finding that fails the static stage."""
    agent: str = "mini-swe-agent"
    """Name of the agent that drives the teacher's models."""
    max_steps: int = 100
    """Answers of the model that an attempt may take."""
    flavour: str = ""
    """How the sandbox maps uids; probed once."""

    def digest(self) -> str:
        """Return a sha256 over what differs from the defaults, as 64 hex digits.

        So a new setting leaves the digests of before as they are.
        """
        return _digest(self)


@cache
def _digest(settings: VerdictSettings) -> str:
    """Return the digest of settings, made once: every line of a ledger has it."""
    usual = asdict(VerdictSettings())
    chosen = {name: value for name, value in asdict(settings).items() if value != usual[name]}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a question is asked, and of whom: more of it finds more, and none changes what one attempt gives."""

    repeat: int = 1
    """Attempts of a stage that can repeat."""
    teacher: tuple[str, ...] = ()
    """Models that make attempts, as their endpoints know them."""
    k: int = 1
    """Attempts of each model."""
    judge: str = ""
    """The model that reviews tasks and attempts, as its endpoint knows it."""
    votes: int = 1
    """How often it is asked at most about what it is not of one mind about."""
    rubric: tuple[str, ...] = ()
    """Files of rubrics, of each kind at most one; of a kind that has none here ours is taken."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What changes where and how a run goes, never its verdicts."""

    out: Path
    """The run folder."""
    cluster: str = "local"
    """Name of the cluster profile."""
    keep: bool = False
    """Keep the scratch folders of trials, and evidence as loose files."""
    fix: bool = False
    """Repair what the static stage finds and can repair; the repaired task is what is asked about."""
    save_runtimes: bool = False
    """Install and save the runtimes that scripts ask for and the cache does not have, and name them in the tasks."""
    offline: bool = False
    """Fetch nothing: what is missing is told before anything starts."""
    repeat: int = 1
    """As in ``Attempts``, as the next two."""
    teacher: tuple[str, ...] = ()
    k: int = 1
    judge: str = ""
    """As in ``Attempts``, as the next two: what its answers depend on stands in their ``inputs``."""
    votes: int = 1
    rubric: tuple[str, ...] = ()
    trials: str = ""
    """The run whose attempts are reviewed; empty: this one. They, too, stand in ``inputs``."""
    base_url: str = ""
    """Where models are asked; empty: where the cluster profile says."""
    budget_tokens: int = 0
    """Tokens that the models of the run may take in all; 0: as many as they do."""
    budget_usd: float = 0.0
    stop_if: str = ""
    """When to start no more items, as ``infra > 5%``."""
    limit: int = 0
    """How many tasks of each dataset are taken, by name; 0: all."""
    tasks: str = ""
    """Shell pattern that the names of tasks must match; empty: all."""
    resume: str = ""
    """The run that goes on; empty: a new one begins."""
    reuse: bool = False
    """Take answers to the very same questions from earlier runs."""
    contract: str = ""
    """The contract that says what is run; empty: the command line does."""
    shard: str = ""
    """Which part of it, as ``2/8``; empty: all."""
    strict_images: bool = False
    """A contract that is prepared fixes images by their bytes, too."""
    prepare_contract: str = ""
    """Where a contract is to be written, in place of a run."""
    submit: str = ""
    """Cluster profile by which the run is given to Slurm; empty: it runs here."""
    partition: str = ""
    cpus: int = 0
    """Cores of a job; 0: as few as the partition allows. So with the next three, what is empty or 0 is chosen."""
    time: str = ""
    """Time limit of a job, ``HH:MM:SS``."""
    shards: int = 0
    """Jobs."""
    wait: bool = False
    """Stay in front of what was submitted."""
    dry_run: bool = False
    """Write what would be submitted."""
    attach: str = ""
    """Come back to what was submitted: ``contract`` where that is to be kept, else ``run``."""
    writer: str = "main"
    """Name of this process's ledger file (the xdist worker's id)."""

    @property
    def attempts(self) -> Attempts:
        """What a contract fixes of it."""
        return Attempts(self.repeat, self.teacher, self.k, self.judge, self.votes, self.rubric)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a run."""

    run: RunSettings
    verdict: VerdictSettings = field(default_factory=VerdictSettings)
