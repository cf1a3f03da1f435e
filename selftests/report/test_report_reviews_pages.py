"""Pages of reviews: their data, and what a person sees of them in Chromium."""

import os
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from pytest_otval.core import OtvalUsageError, node_id
from pytest_otval.llm.atif import NAME
from pytest_otval.report.html import write_html
from pytest_otval.report.html.write_reviews import MOST_BYTES
from pytest_otval.report.results import read_results
from pytest_otval.task.digest import task_digest
from selftests.report.chromium import dom, needs_chromium
from selftests.report.ledgers import attempt, line, make_run
from selftests.report.reviewed import fail, judged, judgement, review
from selftests.report.talks import EVIL, atif, run_of, step
from selftests.report.test_report_pages import called

ID = node_id("demo", "a", "judge_task")
TEST_SH = "#!/bin/bash\nexit 0\n<b>bold</b>\n"


@pytest.fixture
def task(tmp_path, monkeypatch):
    """The folder of the task, where the run's pages look for it."""
    folder = tmp_path / "datasets" / "demo" / "tasks" / "a"
    (folder / "tests").mkdir(parents=True)
    (folder / "task.toml").write_text("")
    (folder / "tests" / "test.sh").write_text(TEST_SH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OT_WORKSPACE", raising=False)
    return folder


@pytest.fixture
def pages(tmp_path):
    """Write pages of lines and return their folder."""
    return lambda *lines: write_html(read_results(make_run(tmp_path / "run", *lines)), tmp_path / "pages").parent


def reviewed(task, *judgements, **fields):
    """The line of a task whose files are as they were."""
    return judged(review(*judgements), task_digest=task_digest(task), **fields)


def blocks_of(folder, number=0):
    page = called(folder / "reviews/0.js", "reviews")[1][number]
    return page["blocks"], page["files"]


def test_without_reviews_there_are_no_pages_of_them(pages, task):
    folder = pages(reviewed(task, judgement("fine")))
    assert (folder / "reviews.html").is_file() and called(folder / "rows.js", "index")[0]["reviews"]
    folder = write_html(read_results(make_run(folder.parent / "other", line())), folder).parent
    assert not called(folder / "rows.js", "index")[0]["reviews"]
    left = {path.name for path in folder.rglob("*") if path.is_file()}
    assert left == {"index.html", "page.css", "page.js", "rows.js", "0.js"}


def test_the_overview(pages, task):
    trace = judged(review(fail("hack"), kind="trace", classification="hack"), stage="judge_trace")
    folder = pages(reviewed(task, fail("weak", "executed"), judgement("fine")), trace)
    (data,) = called(folder / "reviews-data.js", "overview")
    told, counts, traced, _, tasks = data["blocks"]
    assert told["title"] == "Reviews of tasks by j: 1"
    assert told["lines"] == ["They took 2 answers, 1 from the cache, 1000 tokens, 0.0100 USD."]
    assert [[cell if isinstance(cell, str) else cell["text"] for cell in row] for row in counts["rows"]] == [
        ["weak", *"00000100001"],
        ["fine", *"10000000000"],
    ]
    assert traced["lines"][1] == "With their rewards they are: hack 1."
    assert tasks["rows"][0][0] == {"text": "demo/a", "state": {"dataset": "demo", "task": "a"}}
    assert data["tasks"] == [["demo", "a"]]


def test_a_quote_leads_to_the_line_of_a_file(pages, task):
    weak = replace(fail("weak"), measured="not measured with a model")
    blocks, sources = blocks_of(pages(reviewed(task, weak, fail("other", "refuted"), judgement("fine"))))
    findings, criteria = blocks
    first, second = findings["rows"]
    assert (first["measured"], second["measured"]) == ("not measured with a model", "")
    assert (first["head"], first["loud"], second["loud"]) == ("weak: fail, stands", True, False)
    (quote,) = first["quotes"]
    assert quote == {
        "where": "tests/test.sh:2",
        "quote": "exit 0",
        "state": {"dataset": "demo", "task": "a", "file": "tests/test.sh", "line": "2"},
    }
    assert sources == {"tests/test.sh": TEST_SH}
    assert criteria["rows"] == [
        ["weak", "fail", "stands", ""],
        ["other", "fail", "refuted", ""],
        ["fine", "pass", "", ""],
    ]


def test_a_quote_leads_to_the_step_of_an_attempt(pages, task):
    made = attempt("+", task="a")
    found = review(fail("hack", document="step 3"), kind="trace", subject=made.id, classification="hack")
    elsewhere = replace(found, subject=made.id.replace("m-0", "m-9"))
    blocks, _ = blocks_of(pages(made, judged(found, elsewhere, stage="judge_trace")))
    here, there = (blocks[at]["rows"][0]["quotes"][0] for at in (0, 2))
    assert blocks[0]["title"] == "teacher[m-0]: hack, reviewed by j"
    assert here["href"] == "models.html#dataset=demo&task=a&item=teacher%5Bm-0%5D&step=3"
    assert there == {"where": "step 3:2", "quote": "exit 0"}


def test_a_task_that_changed_shows_no_lines(pages, task):
    written = reviewed(task, fail("weak"))
    (task / "tests" / "test.sh").write_text("other")
    blocks, sources = blocks_of(pages(written))
    assert (blocks[0]["rows"][0]["quotes"], sources) == ([{"where": "tests/test.sh:2", "quote": "exit 0"}], {})


def test_what_is_no_file_of_the_task_is_not_shown(pages, task, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (task / "out").symlink_to(tmp_path)
    (task / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(task / "fifo")
    (task / "huge").write_bytes(b"x" * (MOST_BYTES + 1000))
    names = (
        "../../../../secret",
        "out/secret",
        "link",
        "fifo",
        "tests",
        "nothing",
        str(tmp_path / "secret"),
        "huge",
        "a\0b",
    )
    lines = pages(reviewed(task, *(fail(f"c{at}", document=name) for at, name in enumerate(names))))
    _, sources = blocks_of(lines)
    assert {name: len(text) for name, text in sources.items()} == {"huge": MOST_BYTES}


@pytest.mark.parametrize(
    "broken", [{"judgements": [{"criterion": "x", "outcome": "fail", "standing": None}]}, {"kind": 3}]
)
def test_reviews_that_no_version_wrote(pages, task, broken):
    made = reviewed(task, fail("weak"))
    with pytest.raises(OtvalUsageError, match="no version of ours wrote"):
        pages(replace(made, judge=[{**made.judge[0], **broken}]))


@pytest.fixture
def see(tmp_path):
    return lambda folder, page="reviews.html", **state: dom(folder / page, tmp_path / "home", urlencode(state))


@needs_chromium
@pytest.mark.integration
def test_nothing_of_a_task_or_a_model_becomes_markup(pages, see, task):
    (task / EVIL.replace("/", "").replace("\0", "")).write_text(EVIL)
    name = EVIL.replace("/", "").replace("\0", "")
    evil = fail(EVIL, document=name, quote=EVIL, at=1)
    words = replace(evil.opinion, explanation=EVIL, fix=EVIL, candidate=EVIL)
    made = review(replace(evil, opinion=words, why=EVIL, measured=EVIL), model=EVIL, left_out=(EVIL,))
    folder = pages(judged(made, task_digest=task_digest(task)))
    (file,) = blocks_of(folder)[1]
    about = {"dataset": "demo", "task": "a"}
    for state in ({}, about, {**about, "file": file, "line": "1"}, {**about, "file": "constructor"}):
        page = see(folder, **state)
        assert page.all("title")[0].text == "otval: reviews"
        assert not page.all("img") and not page.all("b")
        assert not set("\u2028\u202e\x1b\x00") & set(page.id("blocks").text)
        assert ("canary" in page.id("blocks").text) == (state.get("file") != "constructor")


@needs_chromium
@pytest.mark.integration
def test_from_the_results_to_a_line(pages, see, task):
    folder = pages(reviewed(task, fail("weak")))
    assert "hidden" not in see(folder, "index.html").id("reviews").attributes
    (link,) = [one for one in see(folder, "index.html", row=ID).id("details").all("a") if one.text == "its reviews"]
    assert link.attributes["href"] == "reviews.html#dataset=demo&task=a"
    links = {one.text: one.attributes["href"] for one in see(folder, dataset="demo", task="a").id("blocks").all("a")}
    assert links["tests/test.sh:2"] == "#dataset=demo&task=a&file=tests%2Ftest.sh&line=2"
    page = see(folder, dataset="demo", task="a", file="tests/test.sh", line="2")
    assert page.id("blocks").all("mark")[0].text == "   2  exit 0\n"
    assert "   3  <b>bold</b>" in page.id("blocks").text


@needs_chromium
@pytest.mark.integration
def test_a_step_of_an_attempt(tmp_path, see):
    talk = {f"agent/{NAME}": atif(step(1, "user", "do it"), step(2, message="look"))}
    run = run_of(tmp_path, (attempt("+"), talk))
    folder = write_html(read_results(run), tmp_path / "pages").parent
    page = see(folder, "models.html", dataset="demo", task="a", item="teacher[m-0]", step="2")
    (goal,) = page.id("blocks").all(data_step="2")
    assert "look" in goal.text
