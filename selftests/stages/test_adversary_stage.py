"""adversary over a fake sandbox: which trials there are, and what becomes of them."""

import datetime
import re

import pytest

from pytest_otval.attacks.battery import battery
from pytest_otval.core import Conclusion, Severity
from pytest_otval.stages.question import Question
from pytest_otval.task.dataset import Accepted, DatasetSettings
from pytest_otval.trial.agents.attack import PLACE, RUN
from selftests.fakes import TOML, Answer, FakeImages, ask, make_task

ALONE = [attack.id for attack in battery().values() if not attack.union and not attack.remedy]
INSIDE = [attack.id for attack in battery().values() if attack.remedy]


class World:
    """A container whose verifier pays the solution, and the attacks named."""

    def __init__(self, pays=(), lacks=(), together=(), breaks=(), oracle="1", noop="0", **ends):
        self.pays, self.lacks, self.together, self.breaks = map(set, (pays, lacks, together, breaks))
        self.oracle, self.noop, self.ends = oracle, noop, ends
        self.tried = []
        self.now = None

    def __call__(self, container, command):
        if command.argv[-1] == "/solution/solve.sh":
            self.now = None
            self.solved = True
        elif command.argv[-1] == f"{PLACE}/{RUN}":
            return self._attack(container, command)
        elif command.argv[-1] == "/tests/test.sh":
            return self._grade(container)

    def _attack(self, container, command):
        ids = re.findall(r"then echo (\S+) >>", (container.bound(PLACE) / RUN).read_text())
        self.tried.append(ids)
        self.now = {id for id in ids if id not in self.lacks}
        (container.bound("/logs/agent") / "otval-attacks.txt").write_text("\n".join(self.now))
        self.seconds = command.seconds
        return (
            Answer(*self.ends["agent"]) if self.now & set(self.ends.get("who", ())) and "agent" in self.ends else None
        )

    def _grade(self, container):
        if self.now is None:
            text, self.solved = (self.oracle if getattr(self, "solved", False) else self.noop), False
        else:
            paid = self.now & self.pays or (self.together and self.together <= self.now)
            text = "" if self.now & self.breaks else "1" if paid else "0"
            self.now = None
        if text:
            (container.bound("/logs/verifier") / "reward.txt").write_text(text)


@pytest.fixture
def adversary(fake_machine, tmp_path):
    def run(world, solve="true", settings=None, instruction="x\n", toml=TOML, **verdict):
        task = make_task(tmp_path, solve, files={"instruction.md": instruction}, toml=toml)
        machine = fake_machine(world, **verdict)
        result, _ = ask("adversary", machine, Question(task, settings or DatasetSettings(), tmp_path / "evidence"))
        return result

    return run


def cells(result, *states):
    return sorted(id for id, state in result.facts["attacks"].items() if state in states)


def test_all_is_stopped(adversary):
    world = World()
    result = adversary(world)
    assert result.reason == "expected"
    assert result.facts["attacks"].keys() == battery().keys()
    assert cells(result, "stopped") == sorted(battery().keys() - set(INSIDE))
    assert cells(result, "not-applied") == sorted(INSIDE), "the texts of the task name no module"
    assert len(world.tried) == 2 + len(ALONE)
    assert [trial["agent"] for trial in result.facts["trials"]][:2] == ["oracle", "noop"]
    assert world.seconds == 30.0, "the agent's own limit, as it is below a minute"


def test_time_of_an_agent_with_hours(adversary):
    world = World()
    adversary(world, toml=TOML.replace("30.0", "7200.0", 1), attacks=("pth",))
    assert world.seconds == 60.0


@pytest.mark.parametrize("id", [one.id for one in battery().values() if not one.remedy])
def test_each_that_is_paid_is_found(adversary, id):
    result = adversary(World(pays=[id]))
    assert (result.reason, cells(result, "paid")) == ("attack-paid", [id])
    assert id in result.headline
    assert result.log.startswith(f"attack-{id}: score 1")


def test_several(adversary):
    pays = {"pth", "sitecustomize", "git-hook", "curl", "reward-json"}
    result = adversary(World(pays=pays))
    assert cells(result, "paid") == sorted(pays)
    assert cells(result, "stopped") == sorted(battery().keys() - pays - set(INSIDE))


def test_what_did_not_run_is_not_stopped(adversary):
    result = adversary(World(lacks=["git-hook", "curl"]))
    assert cells(result, "not-applied") == sorted(["git-hook", "curl", *INSIDE])


def test_where_none_ran_there_is_no_answer(adversary):
    result = adversary(World(lacks=battery()))
    assert (result.reason, result.verdict) == ("no-attack", "n/a")
    assert set(result.facts["attacks"].values()) == {"not-applied"}


def test_together_only(adversary):
    result = adversary(World(together={"pth", "activate"}))
    assert result.reason == "attack-paid"
    assert {"pth", "activate"} <= set(cells(result, "paid"))
    assert "only together: " in result.headline


def test_weaknesses_are_told_with_the_remedy(adversary):
    result = adversary(World(pays=INSIDE), instruction="edit /app/mod.py\n")
    assert (result.reason, cells(result, "paid")) == ("expected", sorted(INSIDE))
    findings = result.facts["checks"]
    assert {(one["check"], one["severity"]) for one in findings} == {("weak-in-process", "warning")}
    assert [one["fix"] for one in findings] == [battery()[id].remedy for id in INSIDE]
    strict = adversary(World(pays=INSIDE), instruction="edit /app/mod.py\n", severity=Severity.WARNING)
    assert strict.reason == "attack-paid"


def test_accepted(adversary):
    known = {"bash-replaced": Accepted("known", "me", datetime.date(2100, 1, 1))}
    world = World(pays=["bash-replaced"])
    result = adversary(world, settings=DatasetSettings(accepted=known))
    assert (result.reason, cells(result, "accepted")) == ("expected", ["bash-replaced"])
    assert world.tried[0] == ["bash-replaced"], "alone, so that the union shows the others"
    again = adversary(World(pays=["bash-replaced", "pth"]), settings=DatasetSettings(accepted=known))
    assert (again.reason, cells(again, "paid")) == ("attack-paid", ["pth"])
    assert again.log.startswith("attack-pth: "), "the log is of what fails"


def test_chosen(adversary):
    world = World()
    result = adversary(world, attacks=("activate", "curl"))
    assert result.facts["attacks"] == {"activate": "stopped", "curl": "stopped"}
    assert sorted(world.tried) == [["activate"], ["curl"]]


@pytest.mark.parametrize(
    ("rewards", "reason"),
    [({"oracle": "0"}, "wrong-reward"), ({"oracle": ""}, "no-reward"), ({"noop": "1"}, "wrong-reward")],
)
def test_where_the_controls_fail_nothing_is_shown(adversary, rewards, reason):
    world = World(**rewards)
    result = adversary(world)
    assert (result.reason, world.tried) == (reason, [])
    assert set(result.facts["attacks"].values()) == {"not-applied"}
    assert "no attack was tried" in result.headline


def test_nothing_without_a_reward_is_no_hindrance(adversary):
    assert adversary(World(noop="")).reason == "expected"


def test_without_a_solution_a_zero_shows_little(adversary):
    result = adversary(World(pays=["curl"]), solve=None)
    assert (result.reason, cells(result, "paid"), cells(result, "stopped")) == ("attack-paid", ["curl"], [])
    assert "pth" in cells(result, "applied")


def test_one_that_breaks_the_verifier_hides_no_other(adversary):
    """Where it does not come to its usual end, it says nothing of the others."""
    result = adversary(World(pays=["pth"], breaks=["activate"]))
    assert cells(result, "paid") == ["pth"]
    assert result.facts["attacks"]["activate"] == "stopped"


def test_one_that_never_ends_hides_no_other(adversary):
    world = World(pays=["pth"], lacks=[], agent=("timeout", None), who=["activate"])
    result = adversary(world)
    assert cells(result, "paid") == ["pth"]
    assert result.facts["attacks"]["activate"] == "stopped"


def test_a_container_that_no_longer_starts(adversary, fake_machine):
    """The hand-over after an attack does not start: that is tampering, seen by the harness."""

    class Tampering(World):
        def _attack(self, container, command):
            super()._attack(container, command)
            if "curl" in self.now:
                raise Conclusion("tampered", "no container starts")

    result = adversary(Tampering())
    assert (result.reason, cells(result, "tampered")) == ("expected", ["curl"])


def test_the_machines_fault_is_no_answer(adversary):
    result = adversary(World(agent=("killed", None), who=["curl"]), attacks=("curl",))
    assert result.verdict == "error"


@pytest.mark.parametrize(("level", "cell"), [("none", "paid"), ("fresh", "stopped")])
def test_at_none_rewards_are_read_as_harbor_reads_them(adversary, level, cell):
    class Planted(World):
        def _grade(self, container):
            planted = bool(self.now)
            super()._grade(container)
            if planted:
                (container.bound("/logs/verifier") / "reward.json").write_text('{"reward": 1}')

    result = adversary(Planted(), isolation=level, attacks=("reward-json",))
    assert result.facts["attacks"] == {"reward-json": cell}
    assert result.facts["isolation"] == level


def test_image_that_cannot_be_built_blocks(fake_machine, tmp_path):
    machine = fake_machine(images=FakeImages(fault=lambda request: Conclusion("build-failed", "x")))
    result, _ = ask("adversary", machine, Question(make_task(tmp_path), DatasetSettings(), tmp_path / "evidence"))
    assert result.reason == "image-failed"
