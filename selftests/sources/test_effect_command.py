"""``patch.py effect`` over answers that are made up: what is asked of which task, and what is told."""

import re
from dataclasses import replace

import pytest

from pytest_otval.report.results import read_results
from pytest_otval.sources import effect_forms
from pytest_otval.sources.effect_forms import alone
from pytest_otval.sources.files import SourceError
from pytest_otval.sources.patches import Patch
from pytest_otval.task.source import source_of
from selftests.report.chromium import dom, needs_chromium
from selftests.report.ledgers import line, make_run
from selftests.sources.test_patched_dataset import said, small  # noqa: F401
from selftests.sources.test_patches import patch

# ruff: noqa: F811 - fixtures

BAD = "no-reward"


def append(id, after=()):
    """A patch of tasks a and c that leaves a line of its own in a file that others have, too."""

    def change(task):
        task.write("notes.txt", f"{task.text('notes.txt')}{id}\n")

    def needed(task):
        return task.name != "b" and id not in task.text("notes.txt")

    return Patch(id, "f", change, needed, after=after)


class Stages:
    """Answers as told, in place of a pytest: ``answer(form, task, stage, number)`` is a class or a line."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def __call__(self, forms, form, arguments, stages, repeat, more):
        items = []
        for argument in arguments:
            task, stage = re.fullmatch(r".*/tasks/(\w+)(?:/task.toml::(\w+))?", argument).groups()
            assert source_of(form.folder).has(task)
            items += [(task, one) for one in ([stage] if stage else stages)]
        number = len(self.asked)
        self.asked.append((form.name, items, repeat, more))
        lines = [self.line(form.name, task, stage, number) for task, stage in items]
        return make_run(forms._dataset.workspace.runs / str(number), *lines)

    def line(self, form, task, stage, number):
        answer = self.answer(form, task, stage, number)
        return line(task, stage, answer) if isinstance(answer, str) else answer


@pytest.fixture
def effect(small, capsys, monkeypatch):
    """Run it: ``effect(ANSWER, WORD...)`` returns exit status, lines, and what was asked."""

    def run(answer, *words, patches=None):
        stages = Stages(answer)
        monkeypatch.setattr(effect_forms.Forms, "_pytest", lambda *given: stages(*given))
        status, out, err = said(capsys, small(patches or [patch()]), "effect", *words)
        assert err == []
        return status, out, stages.asked

    run.root = small.root
    return run


def good(form, task, stage, number):
    return "expected"


def test_only_tasks_that_patches_change_are_asked_and_known_answers_are_taken(effect):
    status, out, asked = effect(good, "--stages", "oracle,noop")
    items = [(task, stage) for task in "ac" for stage in ("oracle", "noop")]
    assert asked == [("before", items, 1, ["--otval-reuse"]), ("after", items, 1, ["--otval-reuse"])]
    assert status == 0
    assert out[0] == "Patches change 2 of 3 tasks. Asked before and after: oracle, noop."
    assert out[-2:] == [
        "| spelling | oracle | 0 | 0 | 0 | 0 | 0 | 2 | 0 |",
        "| spelling | noop | 0 | 0 | 0 | 0 | 0 | 2 | 0 |",
    ]


def test_a_regression_is_asked_again_on_both_sides_and_told(effect):
    def answer(form, task, stage, number):
        return BAD if (form, task, stage) == ("after", "c", "noop") else "expected"

    status, out, asked = effect(answer, "--stages", "oracle,noop")
    assert asked[2:] == [("before", [("c", "noop")], 3, []), ("after", [("c", "noop")], 3, [])]
    assert status == 1
    assert out[-1] == "regressed: c noop by spelling: pass -> fail no-reward:"


def test_what_does_not_hold_is_none(effect):
    def answer(form, task, stage, number):
        return BAD if number == 1 and task == "c" else "expected"

    status, out, asked = effect(answer, "--stages", "oracle", "--repeat", "5")
    assert [one[2] for one in asked] == [5, 5, 5, 5]
    assert (status, out[-1]) == (0, "| spelling | oracle | 0 | 0 | 0 | 1 | 0 | 1 | 0 |")


def test_without_an_answer_nothing_is_said_to_be_well(effect):
    status, out, _ = effect(lambda form, *_: "no-start" if form == "after" else "expected", "--stages", "oracle")
    assert (status, out[-1]) == (8, "no answer to 2 items: see what pytest said")


def test_patches_of_one_task_are_told_apart_where_that_is_asked_for(effect):
    patches = [append("one"), append("two", after=("one",))]

    def answer(form, task, stage, number):
        return BAD if form in ("after", "alone-two") else "expected"

    status, out, asked = effect(answer, "--stages", "noop", patches=patches)
    assert "| one + two | noop | 0 | 0 | 2 | 0 | 0 | 0 | 0 |" in out
    assert any(text.startswith("A row of several patches") for text in out)
    status, out, asked = effect(answer, "--stages", "noop", "--each", patches=patches)
    # The second alone is both: nothing is asked twice.
    assert [one[0] for one in asked if one[3]] == ["before", "after", "alone-one"]
    assert [one[0] for one in asked if not one[3]] == ["before", "after"]
    assert "| one | noop | 0 | 0 | 0 | 0 | 0 | 2 | 0 |" in out
    assert status == 1


def test_a_patch_that_needs_another_cannot_be_told_apart(effect):
    second = append("two")
    needed = second.needed
    # It is of a file that the first one makes, which nobody said.
    second = replace(second, needed=lambda task: task.has("made") and needed(task), tasks=("a",))
    first = Patch(
        "one", "f", lambda task: task.write("made", "x"), lambda task: task.name == "a" and not task.has("made")
    )
    status, out, asked = effect(good, "--stages", "noop", "--each", patches=[first, second])
    assert status == 0
    assert out[-1] == "cannot be told apart: a: two: is no longer needed: the source was repaired, remove the patch"
    assert [one[0] for one in asked] == ["before", "after", "alone-one"]


def test_a_patch_with_those_whose_files_it_changes():
    patches = [append("one"), append("two", ("one",)), append("three"), append("four", ("two",))]
    assert [one.id for one in alone(patches, patches[3])] == ["one", "two", "four"]
    assert [one.id for one in alone(patches, patches[2])] == ["three"]


def test_a_patch_that_cannot_be_applied_is_an_error(effect):
    status, out, _ = effect(good, "--stages", "noop", patches=[patch(), append("x")])
    assert status == 1
    assert out[-2].startswith("error: a: x: conflicts with spelling: both change notes.txt")


@pytest.mark.parametrize(
    ("words", "patches", "status", "said_of_it"),
    [
        ((), (), 4, "error: small has no patches"),
        (("--repeat", "0"), (patch(),), 4, "error: --repeat takes a number from 1"),
        ((), (patch(old="absent"),), 1, "error: no patch changes a task"),
    ],
)
def test_what_cannot_be_asked(small, capsys, words, patches, status, said_of_it):
    assert said(capsys, small(patches), "effect", *words)[::2] == (status, [said_of_it])


def test_a_pytest_that_breaks_off_is_told(small, capsys, monkeypatch):
    def broken(*_):
        raise SourceError("pytest ended with status 2")

    monkeypatch.setattr(effect_forms.Forms, "_pytest", broken)
    assert said(capsys, small([patch()]), "effect")[0] == 1


def test_the_tables_stand_in_the_readme(effect, small):
    readme = small.root / "datasets" / "small" / "README.md"
    readme.write_text("# small\n\n<!-- effect -->\n<!-- /effect -->\n")
    _, out, _ = effect(good, "--stages", "noop", "--readme")
    assert readme.read_text().splitlines() == ["# small", "", "<!-- effect -->", *out, "<!-- /effect -->"]


EVIL = "<script>document.title='canary'</script>\x1b[2J\u202e"


def mixed(form, task, stage, number):
    if form == "before":
        return line(task, stage, BAD if task == "a" else "expected", headline=EVIL)
    return line(task, stage, "expected" if task == "a" else BAD, headline=EVIL)


def pages(effect, name="pages"):
    _, out, _ = effect(mixed, "--stages", "oracle,noop", "--html", str(effect.root / name))
    (said_of_it,) = [text for text in out if text.startswith("html: ")]
    assert said_of_it == f"html: {effect.root}/{name}/index.html"
    return effect.root / name / "index.html"


def test_pages_are_text_and_lead_to_both_runs(effect):
    index = pages(effect)
    text = index.read_text()
    assert "<script>document" not in text and "\x1b" not in text and "\u202e" not in text
    assert 'href="before/index.html#row=datasets%2Fdemo%2Ftasks%2Fc%2Ftask.toml%3A%3Anoop"' in text
    for form in ("before", "after"):
        assert (index.parent / form / "index.html").is_file()
    assert len(read_results(effect.root / "ws" / "runs" / "0").rows) == 4
    pages(effect)


def test_before_anything_is_asked_it_is_known_that_the_answer_has_a_place(small, capsys):
    mine = small.root / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    status, _, err = said(capsys, small([patch()]), "effect", "--html", str(mine))
    assert (status, err) == (4, [f"error: {mine} holds other files than such pages: give a new folder"])
    status, _, err = said(capsys, small([patch()]), "effect", "--readme")
    assert status == 4 and "has no place for the table" in err[0]


@needs_chromium
def test_what_a_person_sees(effect, tmp_path):
    index = pages(effect)
    page = dom(index, tmp_path / "home")
    items = page.id("items")
    assert page.all("title")[0].text == "Effect of the patches of small"
    # The worst comes first.
    assert [cell.text for cell in items.all("td", class_="task")] == ["c", "c", "a", "a"]
    assert page.id("count").text == "4 of 4 items"
    assert "no-reward" in items.text and "<script>document" in items.text
    filtered = dom(index, tmp_path / "home", "became=fixed&stage=noop&patch=spelling")
    shown = [row for row in filtered.id("items").all("tr") if "hidden" not in row.attributes]
    assert [row.all("td", class_="task")[0].text for row in shown[1:]] == ["a"]
    assert filtered.id("count").text == "1 of 4 items"
    assert dom(index, tmp_path / "home", "q=zz").id("count").text == "0 of 4 items"
