"""Our web pages: their data, and what a person sees of them in Chromium."""

import json
import re
from urllib.parse import quote

import pytest

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.html import write_html
from pytest_otval.report.html.data import DETAILS_A_PAGE, index_data
from pytest_otval.report.html.scripts import script_json
from pytest_otval.report.results import read_results, row_of
from selftests.report.chromium import GO, dom, needs_chromium
from selftests.report.ledgers import IMAGE, line, make_run

CANARY = "document.title='canary'"
EVIL = (
    f'</script><script>{CANARY}</script><img src=x onerror="{CANARY}">\u2028\u202e\x1b[2J\x00]]>--><!--\'"`${{1}}\ud800'
)


@pytest.fixture
def pages(tmp_path):
    """Write pages of lines and return the index."""

    def write(*lines):
        return write_html(read_results(make_run(tmp_path / "run", *lines)), tmp_path / "pages")

    return write


@pytest.fixture
def see(pages, tmp_path):
    """Write pages of lines and return the DOM of the index at a hash."""

    def look(hash, *lines):
        return dom(pages(*lines), tmp_path / "home", hash)

    return look


def called(path, function):
    """Return what a script of ours calls a function with."""
    text = path.read_text("ascii")
    (arguments,) = re.findall(rf'^"use strict";\notval\.{function}\((.*)\);\n$', text)
    return json.loads(f"[{arguments}]")


# --- what is written ---


def test_the_index_has_every_row_and_no_log(pages):
    index = pages(line("a", log="SECRET", reason="no-reward", headline="HEADLINE"), line("b", image=IMAGE, score=1.0))
    (data,) = called(index.with_name("rows.js"), "index")
    assert data["count"] == 2
    assert [data["texts"]["task"]["values"][at] for at in data["texts"]["task"]["index"]] == ["a", "b"]
    assert (data["score"], data["unexpected"]) == ([None, 1.0], [1, 0])
    for path in index.parent.iterdir():
        if path.is_file():
            assert "SECRET" not in path.read_text() and "HEADLINE" not in path.read_text()
    (number, details) = called(index.parent / "details/0.js", "details")
    assert number == 0 and details[0]["log"] == "SECRET" and details[0]["headline"] == "HEADLINE"


def test_details_are_in_pages(pages):
    index = pages(*(line(f"t{number:04}", headline=str(number)) for number in range(DETAILS_A_PAGE + 5)))
    assert sorted(path.name for path in (index.parent / "details").iterdir()) == ["0.js", "1.js"]
    number, details = called(index.parent / "details/1.js", "details")
    assert (number, len(details), details[0]["headline"]) == (1, 5, str(DETAILS_A_PAGE))


def test_written_again_nothing_old_is_left(pages):
    pages(*(line(f"t{number:04}") for number in range(DETAILS_A_PAGE + 5)))
    index = pages()
    assert len(list((index.parent / "details").iterdir())) == 2
    few = read_results(make_run(index.parent.parent / "few", line()))
    write_html(few, index.parent)
    assert [path.name for path in (index.parent / "details").iterdir()] == ["0.js"]


def test_what_is_not_ours_is_not_written_over(pages, tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.html").write_text("mine")
    with pytest.raises(OtvalUsageError, match="holds other files"):
        pages(line())
    assert (tmp_path / "pages/index.html").read_text() == "mine"


def test_json_in_a_script_stays_data():
    text = script_json({EVIL: [EVIL]})
    assert text.isascii() and not set(text) & set("<>&")
    assert json.loads(text) == {EVIL: [EVIL]}


def test_nothing_invisible_or_bidirectional_is_written(pages):
    index = pages(line(reason="no-reward", headline=EVIL, log=EVIL, columns={EVIL: EVIL}, evidence=EVIL))
    for name, function in (("rows.js", "index"), ("details/0.js", "details")):
        texts = json.dumps(called(index.parent / name, function), ensure_ascii=False)
        assert not set("\u2028\u202e\x1b\x00\ud800") & set(texts) and "canary" in texts
        # JSON writes control characters out itself.
        assert "\\u001b" not in texts.replace("\\\\", "")


def test_the_index_takes_little_for_a_row(tmp_path):
    names = [f"organisation-name__repository-name-{number:05}" for number in range(500)]
    stages = ("static", "build", "oracle", "noop")
    rows = [
        row_of(line(name, stage, image=IMAGE, score=0.0, log="x" * 2000).as_dict())
        for name in names
        for stage in stages
    ]
    # All that is the same is there once; a name stands there once for its four stages.
    assert len(script_json(index_data(rows, tmp_path, {}))) < len(rows) * 60


# --- what is seen ---

integration = pytest.mark.integration


def ids(page):
    return [row.attributes["data-id"].split("/")[3] for row in page.id("rows").all("tr")]


SOME = (
    line("apple", score=1.0, seconds={"total": 3.0}, image=IMAGE),
    line("apple", "build", "build-failed", seconds={"total": 9.0}),
    line("banana", reason="wrong-reward", score=0.5, seconds={"total": 2.0}, columns={"Size": "big"}),
    line("cherry", reason="flaky", attempts={"passed": 1, "count": 3, "low": 0.1, "high": 0.7}),
    line("plum", reason="wrong-reward", known_bad="why"),
)


@needs_chromium
@integration
def test_all_rows_those_to_look_at_first(see):
    page = see("", *SOME)
    assert ids(page) == ["apple", "banana", "cherry", "apple", "plum"]
    assert page.id("counts").text == "5 of 5 results: 4 fail, 1 pass, 3 unexpected"
    heads = [head.text for head in page.id("head").all("th")]
    assert heads == ["Task", "Stage", "Verdict", "Class", "Score", "Seconds", "Image", "Attempts", "Note", "Size"]
    banana = page.id("rows").all("tr")[1]
    cells = [cell.text for cell in banana.all("td")]
    assert cells == ["banana", "oracle", "fail", "wrong-reward", "0.500", "2.00", "", "", "", "big"]
    assert "unexpected" in banana.attributes["class"].split()
    assert page.id("details").attributes.get("hidden") == ""
    assert "pytest datasets/demo" in page.id("run").text


SHOWN = {
    "verdict=fail&stage=oracle": ["banana", "cherry", "plum"],
    "class=flaky": ["cherry"],
    "q=AN&unexpected=1": ["banana"],
    "unexpected=1&sort=-seconds": ["apple", "banana", "cherry"],
    "sort=score": ["banana", "apple", "apple", "cherry", "plum"],
    "sort=-score": ["apple", "banana", "apple", "cherry", "plum"],
    "q=%3Cb%3E": [],
    "verdict=never": [],
    "page=99&sort=nothing&foreign=1": ["apple", "banana", "cherry", "apple", "plum"],
}
"""Tasks whose rows are shown, by what stands behind # in the address."""


@pytest.fixture
def driven(pages, tmp_path):
    """Write pages of lines and return the DOM of the index once a script has used it."""

    def drive(script, *lines):
        index = pages(*lines)
        (index.parent / "drive.js").write_text(script)
        text = index.read_text().replace("</body>", '<script defer src="drive.js"></script></body>')
        index.write_text(text)
        return dom(index, tmp_path / "home")

    return drive


@needs_chromium
@integration
def test_the_address_says_what_is_shown(driven):
    script = """
        const told = {};
        const hashes = HASHES;
        const tasks = () => [...document.querySelectorAll("#rows tr")].map((row) => row.dataset.id.split("/")[3]);
        hashes.forEach((hash, at) => {
          setTimeout(() => { go(hash); }, 200 * at);
          setTimeout(() => { told[hash] = tasks(); }, 200 * at + 100);
        });
        setTimeout(() => { document.title = JSON.stringify(told); }, 200 * hashes.length);
        """
    page = driven(GO + script.replace("HASHES", json.dumps(list(SHOWN))), *SOME)
    assert json.loads(page.all("title")[0].text) == SHOWN


@needs_chromium
@integration
def test_many_rows_come_in_pages(see):
    many = [line(f"t{number:04}", headline=f"of {number}") for number in range(450)]
    row = quote(many[433].id, safe="")
    page = see(f"page=5&row={row}", *many)
    assert ids(page) == [f"t{number:04}" for number in range(400, 450)]
    assert page.id("pages").text == "previouspage 5 of 5"
    # Only the page of details that is looked at was loaded.
    scripts = [script.attributes["src"] for script in page.all("script")]
    assert scripts == ["page.js", "rows.js", "details/2.js"]
    assert "of 433" in page.id("details").text


@needs_chromium
@integration
def test_details_tell_all_of_a_result(see):
    where = {"path": "tests/test.sh", "line": 3}
    finding = {"check": "shell-exit", "severity": "error", "message": "exits", "fix": "do not", **where}
    one = line(
        reason="no-reward",
        headline="the verifier ended",
        log="first\nlast\n",
        checks=[finding],
        seconds={"agent": 1.25, "total": 2.0},
        attempts={"passed": 1, "count": 3, "low": 0.1, "high": 0.7},
        image=IMAGE,
        evidence="evidence/demo/a/oracle",
        reproduce="apptainer exec x.sqfs sh",
        harbor={"rewards": None, "error": "RewardFileNotFoundError", "pass": False},
        columns={"Size": "big"},
    )
    text = see("row=" + quote(one.id, safe=""), one).id("details").text
    for part in (
        "fail: no-reward",
        "the verifier ended",
        "first\nlast",
        "tests/test.sh:3: error: shell-exit: exits (do not)",
        "agent1.250",
        "1 of 3 gave the expected answer, rate 0.10 to 0.70",
        "k" * 64,
        "evidence/demo/a/oracle",
        'pytest "datasets/demo/tasks/a/task.toml::oracle" --otval-keep',
        "apptainer exec x.sqfs sh",
        "fail: RewardFileNotFoundError",
        "s" * 64,
        "Sizebig",
    ):
        assert part in text


@needs_chromium
@integration
def test_what_cannot_be_shown_is_said(pages, tmp_path):
    index = pages(*SOME)
    there_is_none = dom(index, tmp_path / "home", "row=datasets/demo/tasks/none/task.toml::oracle")
    assert "no result of this run has this id" in there_is_none.id("details").text
    (index.parent / "details/0.js").unlink()
    missing = dom(index, tmp_path / "home", "row=" + quote(SOME[0].id, safe=""))
    assert "details/0.js is missing beside this page" in missing.id("details").text


@needs_chromium
@integration
def test_typing_and_clicking_change_the_address(driven):
    page = driven(
        """
        const steps = [
          () => { q.value = "an"; q.dispatchEvent(new Event("input")); },
          () => { stage.value = "oracle"; stage.dispatchEvent(new Event("change")); },
          () => document.querySelector("#rows a").click(),
          () => document.querySelectorAll("#head a")[5].click(),
        ];
        steps.forEach((step, at) => setTimeout(step, 100 * (at + 1)));
        setTimeout(() => { document.title = location.hash; }, 1000);
        """,
        *SOME,
    )
    row = quote(SOME[2].id, safe="")
    assert page.all("title")[0].text == f"#stage=oracle&q=an&sort=seconds&row={row}"
    assert ids(page) == ["banana"]
    assert "wrong-reward" in page.id("details").text


@needs_chromium
@integration
def test_nothing_of_a_task_is_markup_or_runs(see):
    id = f"datasets/{EVIL.replace('/', '|')}/tasks/{EVIL.replace('/', '|')}/task.toml::{EVIL}"
    finding = {"check": EVIL, "severity": EVIL, "message": EVIL, "path": EVIL, "line": None, "fix": EVIL}
    one = line(
        id=id, stage=EVIL, verdict=EVIL, reason="no-reward", headline=EVIL, log=EVIL, checks=[finding], evidence=EVIL,
        image=dict.fromkeys(IMAGE, EVIL), seconds={EVIL: 1.0}, reproduce=EVIL, columns={EVIL: EVIL},
        known_bad=EVIL, stricter=EVIL, runtimes=[EVIL], rewards={EVIL: 1.0}, network=EVIL, time=EVIL,
    )  # fmt: skip
    plain = see("", one)
    (shown,) = plain.id("rows").all("tr")
    assert shown.all("a")[0].text.startswith("<|script><script>document.title='canary'")
    row = shown.all("a")[0].attributes["href"].partition("row=")[2]
    opened = see(f"row={row}&q={quote('<img src=x')}", one)
    assert "</script><script>document.title='canary'" in opened.id("details").text
    for page in (plain, opened):
        assert page.all("title")[0].text == "otval"
        assert not page.all("img")
        scripts = {script.attributes.get("src", "inline") for script in page.all("script")}
        assert scripts <= {"page.js", "rows.js", "details/0.js"}
        assert not [element for element in page.all() if any(name.startswith("on") for name in element.attributes)]


@needs_chromium
@integration
def test_the_policy_lets_no_inline_script_run(pages, tmp_path):
    index = pages(*SOME)
    text = index.read_text()
    evil = text.replace("<h1>", f'<script>{CANARY}</script><img src=x onerror="{CANARY}"><h1>')
    index.write_text(evil)
    assert dom(index, tmp_path / "home").all("title")[0].text == "otval"
    # The same without the policy runs, so this test can fail.
    index.write_text(re.sub("<meta http-equiv=[^>]*>", "", evil))
    assert dom(index, tmp_path / "home").all("title")[0].text == "canary"


# --- attacks ---


def attacked(task, level, **cells):
    return line(task, "adversary", isolation=level, attacks=cells)


@needs_chromium
@integration
def test_attacks_by_level(see):
    given = [
        attacked("a", "none", pth="paid"),
        attacked("b", "none", pth="stopped"),
        attacked("c", "fresh", pth="stopped"),
    ]
    page = see("", *given)
    section = page.id("attacks")
    assert "hidden" not in section.attributes
    assert [head.text for head in page.id("levels").children] == ["Attack", "none", "fresh"]
    (row,) = page.id("matrix").all("tr")
    assert [cell.text for cell in row.children] == ["pth", "1 paid, 1 stopped", "stopped"]
    assert [cell.text for cell in row.all("td", class_="paid")] == ["1 paid, 1 stopped"]


@needs_chromium
@integration
def test_attacks_of_one_task_are_among_its_details(see):
    one = attacked("a", "none", **{"pth": "paid", EVIL: EVIL})
    page = see(f"row={quote(one.id, safe='')}", one)
    shown = page.id("details").text
    assert "attacks" in shown and "pthpaid" in shown
    assert "canary" in page.id("matrix").text and not page.all("img") and page.all("title")[0].text != "canary"


@needs_chromium
@integration
def test_without_attacks_there_is_no_matrix(see):
    assert "hidden" in see("", line()).id("attacks").attributes
