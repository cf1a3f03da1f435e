"""Several attacks at once."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from pytest_otval.attacks.battery import NEEDS, Attack, battery
from pytest_otval.attacks.union import MARKS, agent_of, applied, bisect, unions
from pytest_otval.trial.agents.attack import PLACE, RUN


@given(st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, size - 1), min_size=1))))
def test_bisecting_finds_each_that_hits_by_itself(case):
    size, payers = case
    asked = []

    def hits(part):
        asked.append(part)
        return not payers.isdisjoint(part)

    assert sorted(bisect(range(size), hits)) == [[payer] for payer in sorted(payers)]
    assert len(asked) <= 2 * size
    assert size == 1 or len(asked) <= 2 * len(payers) * size.bit_length()


def test_what_hits_together_only_stays_together():
    needed = {1, 6}
    assert bisect(range(8), lambda part: needed <= set(part)) == [list(range(8))]
    assert bisect(range(8), lambda part: {1, 2} <= set(part)) == [[0, 1, 2, 3]]


def test_unions_keep_the_order_and_hold_each_once():
    groups = unions(battery().values())
    assert sorted(attack.id for group in groups.values() for attack in group) == sorted(battery())
    assert {name for name in groups if name.startswith("union-")} == {"union-exits", "union-passes"}
    alone = [group for name, group in groups.items() if not name.startswith("union-")]
    assert all(len(group) == 1 for group in alone)
    # docs/adversary.md tells how many trials a battery without a hit takes.
    assert (len(alone), sum("modules" in attack.needs for (attack,) in alone)) == (13, 7)


def run(tmp_path, attacks, modules=(), workdir=None):
    """Run the agent's files on this machine, at another place."""
    agent = agent_of("attack-x", attacks, list(modules), [])
    (bind,) = agent.binds(None, None, tmp_path)
    assert bind.target == PLACE
    text = (bind.source / RUN).read_text()
    text = text.replace(PLACE, str(bind.source)).replace("/.otval/sh", "sh").replace("/logs/agent", str(tmp_path))
    done = subprocess.run(["sh", "-c", text], cwd=workdir or tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout


def attack(id, script, needs=()):
    return Attack(id, "family", "shows", "shell", script, needs)


def test_one_that_breaks_off_or_lacks_something_leaves_no_mark(tmp_path):
    scripts = [attack("a", "true"), attack("b", "false\ntrue"), attack("c", "true", ("modules",)), attack("d", "true")]
    run(tmp_path, scripts)
    (tmp_path / "agent").mkdir()
    (tmp_path / MARKS).rename(tmp_path / "agent" / MARKS)
    assert applied([tmp_path, tmp_path / "nowhere"]) == {"a", "d"}


def test_each_need_is_looked_at_before_anything_is_changed(tmp_path, monkeypatch):
    monkeypatch.setitem(NEEDS, "root", f"test ! -e {tmp_path}/changed")
    monkeypatch.setitem(NEEDS, "glibc", "true")
    first, second = attack("a", f"touch {tmp_path}/changed", ("root",)), attack("b", "true", ("root", "glibc"))
    assert run(tmp_path, [first, second]).split() == ["a", "b"]


def test_modules_are_found_below_the_workdir(tmp_path):
    work = tmp_path / "work"
    for name in ("src/pkg/mod.py", "top.py", "other/mod.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("")
    shown = attack("a", 'echo "<$MODULES>"', ("modules",))
    names = ["pkg/mod.py", "top.py", str(work / "other/mod.py"), "absent.py", "/absent.py", "*.py"]
    found = run(tmp_path, [shown], names, work)
    assert found.splitlines()[-1].startswith(f"<{work}/src/pkg/mod.py {work}/top.py {work}/other/mod.py ")
    assert "absent" not in found


def test_modules_whose_paths_have_blanks_are_left_out(tmp_path):
    """Scripts take the list apart at blanks: they would write to another file and call that applied."""
    work = tmp_path / "my work"
    work.mkdir()
    (work / "top.py").write_text("")
    assert "<>" not in run(tmp_path, [attack("a", 'echo "<$MODULES>"', ("modules",))], ["top.py"], work)
    assert applied([tmp_path]) == set()


def test_scripts_are_run_in_the_workdir_with_payloads(tmp_path):
    (tmp_path / "w").mkdir()
    run(tmp_path, [attack("a", 'cp "$PAYLOADS/passes.txt" here')], workdir=tmp_path / "w")
    assert "makereport" in (tmp_path / "w" / "here").read_text()
