"""Pages of attempts: their data, and what a person sees of them in Chromium."""

import json
from urllib.parse import urlencode

import pytest

from pytest_otval.llm.atif import NAME
from pytest_otval.report.html import write_html
from pytest_otval.report.html.talks import MOST_CALLS, MOST_STEPS, MOST_TEXT, shortened, talks
from pytest_otval.report.html.write_models import MOST_TRAJECTORIES
from pytest_otval.report.results import read_results
from selftests.report.chromium import GO, dom, needs_chromium
from selftests.report.ledgers import attempt, attempts, line, make_run
from selftests.report.talks import EVIL, atif, run_of, step
from selftests.report.test_report_pages import called

PLACE = f"agent/{NAME}"
FLAGS = ["touched-tests"]
SEVERAL = (
    *attempts("++--", "apple", "good"),
    *attempts("+--x", "banana", "good", flags=FLAGS),
    *attempts("---!", "apple", "bad", finish="steps", truncated=True),
    *attempts("+---", "banana", "bad"),
)


@pytest.fixture
def pages(tmp_path):
    """Write pages of lines and return their folder."""
    return lambda *lines: write_html(read_results(make_run(tmp_path / "run", *lines)), tmp_path / "pages", 4).parent


@pytest.fixture
def see(tmp_path):
    """Return the DOM of the page of models in a folder, for what its address asks for."""
    return lambda folder, **state: dom(folder / "models.html", tmp_path / "home", urlencode(state))


# --- what is written ---


def block(blocks, title):
    (found,) = [one for one in blocks if one["title"] == title]
    return found


def texts(row):
    return [cell if isinstance(cell, str) else cell["text"] for cell in row]


def test_without_attempts_there_are_no_pages_of_models(pages):
    folder = pages(*SEVERAL)
    assert (folder / "models.html").is_file() and called(folder / "rows.js", "index")[0]["attempts"]
    folder = write_html(read_results(make_run(folder.parent / "other", line())), folder).parent
    assert not called(folder / "rows.js", "index")[0]["attempts"]
    left = {path.name for path in folder.rglob("*") if path.is_file()}
    assert left == {"index.html", "page.css", "page.js", "rows.js", "0.js"}


def test_the_overview(pages):
    (data,) = called(pages(*SEVERAL) / "models-data.js", "overview")
    assert data["sets"] == [["demo", "bad"], ["demo", "good"]]
    assert data["tasks"] == [["demo", "apple"], ["demo", "banana"]]
    models, against = data["blocks"]
    bad, good = map(texts, models["rows"])
    assert bad[:8] == ["bad", "demo", "2", "8", "8", "1", "0", "1"]
    assert good[:8] == ["good", "demo", "2", "8", "8", "0", "1", "3"]
    assert (good[8].split()[0], good[9].split()[0], good[-1]) == ("0.375", "0.417", "1")
    assert texts(against["rows"][0])[:5] == ["demo", "bad", "good", "2", "-0.292 (-0.500 to -0.083)"]


def test_a_model_at_a_dataset(pages):
    number, blocks = called(pages(*SEVERAL) / "models/1.js", "model")
    assert number == 1
    assert blocks[0]["lines"] == ["8 planned, 8 ran, 1 excluded (0 errors, 1 invalid), 3 solved"]
    worth = block(blocks, "Worth")["lines"]
    assert worth[1:] == [
        "One success took 233 tokens and 2 s of attempts, over all tasks.",
        "All attempts cost 4.00 USD.",
    ]
    assert worth[0].startswith("Training signal p(1-p), the variance of the reward, in the mean over tasks: 0.333")
    assert texts(block(blocks, "pass@k and pass^k")["rows"][0])[:2] == ["1", "2"]
    assert block(blocks, "Difficulty")["rows"] == [
        ["never", [0]],
        ["hard", [0]],
        ["medium", [2]],
        ["easy", [0]],
        ["always", [0]],
    ]
    banana = texts(block(blocks, "Tasks")["rows"][1])
    assert banana[:9] == [
        *(
            "banana",
            "4",
            "1",
            "1",
            "0.333",
            "0.250 (0.046 to 0.699)",
            "0.333 (0.061 to 0.792)",
            "0.068 to 0.806",
            "medium",
        )
    ]
    assert block(blocks, "Why attempts ended")["rows"] == [["submitted", [3, 4, 1, 0]]]
    assert block(blocks, "Steps")["rows"] == [["4 to 7", [3, 4, 1, 0]]]
    assert block(blocks, "Flags, for the judge to look at")["rows"] == [["touched-tests", [1, 2, 1, 0]]]
    assert ["edit", [16]] in block(blocks, "What steps did")["rows"]


def test_of_many_tasks_rates_are_counted(pages):
    lines = [attempt("+" if number % 4 else "-", f"t{number:03}") for number in range(80)]
    _, blocks = called(pages(*lines) / "models/0.js", "model")
    tenths = block(blocks, "Rates of tasks")["rows"]
    assert (tenths[0], tenths[-1]) == (["0.0 to 0.1", [20]], ["0.9 to 1.0", [60]])


def test_a_task_and_its_attempts(pages):
    number, (apple, banana) = called(pages(*SEVERAL) / "tasks/0.js", "tasks")
    assert number == 0
    bad, good, rows = banana["blocks"]
    assert (bad["title"], texts(bad["rows"][0])) == ("bad", ["1", "0.250", "0.250", "0.250", "0.250"])
    assert texts(good["rows"][3]) == ["4", "1.000", "-", "0.000", "-"]
    assert "without invalid: 1 of 3, Wilson 0.061 to 0.792, Beta(1,1) 0.068 to 0.806" in good["note"]
    assert "reward: mean 0.333, variance 0.333, 1 of 3 reach 1" in good["note"]
    assert "0 of 3 still allows a rate up to 56 %" in apple["blocks"][0]["note"]
    assert texts(rows["rows"][7]) == [
        *("teacher[good-3]", "good", "invalid", "-", "5", "100", "1.0", "submitted", "touched-tests", "no-reward")
    ]
    assert [texts(row)[2] for row in apple["blocks"][2]["rows"]][3:5] == ["error", "solved"]


def test_only_errors_are_still_a_page(pages):
    _, blocks = called(pages(*attempts("!!")) / "models/0.js", "model")
    assert blocks[0]["lines"] == ["4 planned, 2 ran, 2 excluded (2 errors, 0 invalid), 0 solved"]


def test_many_trajectories_are_in_few_files(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_otval.report.html.write_models.MOST_TRAJECTORIES", 3)
    monkeypatch.setattr("pytest_otval.report.html.write_models.TRAJECTORY_FILE_BYTES", 250)
    talk = {PLACE: atif(step(1, "user", "x" * 100))}
    flags = ([], FLAGS, [], [], FLAGS)
    run = run_of(tmp_path, *((attempt("+", number=at, flags=own), talk) for at, own in enumerate(flags)))
    folder = write_html(read_results(run), tmp_path / "pages").parent
    places = called(folder / "tasks/0.js", "tasks")[1][0]["places"]
    assert places == {"teacher[m-1]": [0, 0], "teacher[m-4]": [0, 1], "teacher[m-0]": [1, 0]}
    assert MOST_TRAJECTORIES >= 1000
    number, talks = called(folder / "trajectories/1.js", "trajectories")
    assert (number, len(talks), talks[0][0]["steps"][0]["text"]) == (1, 1, "x" * 100)


# --- trajectories ---


@pytest.fixture
def shown(tmp_path):
    """Return what is shown of the trajectory of an attempt's files."""

    def found(files):
        run = run_of(tmp_path, (attempt("+"), files))
        (result,) = read_results(run).lines()
        return talks(run, result["evidence"])

    return found


def test_a_trajectory_is_shown_step_by_step(shown):
    calls = [("ls\npwd", "a\n"), ("sleep 9", "")]
    ends = [{"status": 0, "seconds": 0.25, "timed_out": False}, {"status": None, "seconds": 9.0, "timed_out": True}]
    (found,) = shown(
        {
            PLACE: atif(
                step(1, "user", "do it"),
                step(
                    2,
                    message="look",
                    calls=calls,
                    reasoning_content="hm",
                    extra={"commands": ends},
                    metrics={"prompt_tokens": 7},
                ),
                step(3, message="?", extra={"malformed": "no call", "not_sent_back": True}),
            )
        }
    )
    assert found["title"] == "agent tools 1"
    assert found["steps"][0] == {"who": "1 user", "text": "do it"}
    agent = found["steps"][1]
    assert (agent["who"], agent["thought"], agent["note"]) == ("2 agent", "hm", "7 tokens")
    assert agent["calls"] == [
        {"tool": "shell", "command": "ls\npwd", "output": "a\n", "end": "status 0, 0.2 s"},
        {"tool": "shell", "command": "sleep 9", "output": "", "end": "timed out, 9.0 s"},
    ]
    assert found["steps"][2]["note"] == "not understood: no call, not sent back to the model"


def test_what_is_long_is_cut(shown):
    many = [step(at, message="m") for at in range(1, MOST_STEPS + 51)]
    many[0] = step(1, message="x" * 100_000, calls=[("c" * 50_000, "o" * 20_000)] * (MOST_CALLS + 5))
    (found,) = shown({PLACE: atif(*many)})
    assert len(found["steps"]) == MOST_STEPS + 1
    assert found["steps"][MOST_STEPS // 2] == {"who": "", "text": "[50 messages are left out here]"}
    first = found["steps"][0]
    assert len(first["calls"]) == MOST_CALLS and first["note"] == "5 more calls"
    assert max(map(len, (first["text"], first["calls"][0]["command"], first["calls"][0]["output"]))) < MOST_TEXT + 60


def test_arguments_that_are_no_command_are_shown_as_they_are(shown):
    call = {"tool_call_id": "1", "function_name": EVIL, "arguments": {"path": "ä", "command": 3}}
    (found,) = shown({PLACE: atif(step(1, tool_calls=[call], extra={"commands": "none"}))})
    assert found["steps"][0]["calls"][0]["command"] == '{"path": "ä", "command": 3}'


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "its evidence holds no trajectory"),
        ({PLACE: b"\x00"}, "'agent/trajectory.json' is no trajectory: Invalid JSON"),
        (
            {f"steps/{EVIL.replace('/', '').replace(chr(0), '')}/{PLACE}": b"{}"},
            "is no trajectory: agent: Field required",
        ),
    ],
)
def test_what_cannot_be_read_is_said(shown, files, said):
    (found,) = shown(files)
    assert said in found["title"] and found["steps"] == []


def test_text_is_cut_before_it_is_cleaned_and_clean():
    assert len(shortened("\x1b" * 1_000_000)) < 4 * MOST_TEXT + 60
    assert not set("\x1b\u202e\x00\u2028") & set(shortened(EVIL))


# --- what is seen ---

integration = pytest.mark.integration


@pytest.fixture
def drive(tmp_path):
    """Let a script use the page of models in a folder; return what it put into the title, as JSON."""

    def driven(folder, script, hash=""):
        (folder / "drive.js").write_text(script)
        text = (folder / "models.html").read_text()
        (folder / "models.html").write_text(text.replace("</body>", '<script defer src="drive.js"></script></body>'))
        return json.loads(dom(folder / "models.html", tmp_path / "home", hash).all("title")[0].text)

    return driven


@needs_chromium
@integration
def test_the_overview_leads_to_models_and_tasks(pages, see):
    folder = pages(*SEVERAL)
    page = see(folder)
    links = [one.attributes["href"] for one in page.id("blocks").all("a")]
    assert "#dataset=demo&model=good" in links
    model = see(folder, dataset="demo", model="good")
    titles = [one.text for one in model.id("blocks").all("h2")]
    assert {"Difficulty", "Tasks", "Why attempts ended", "Tokens", "What steps did"} <= set(titles)
    assert len(model.all("svg")) >= 6 and model.all("polyline")
    assert "#dataset=demo&task=banana" in [one.attributes["href"] for one in model.id("blocks").all("a")]
    # Every mark of a plot tells its numbers.
    assert "k = 1: 0.375 (0.250 to 0.500)" in [one.text for one in model.all("title")]
    task = see(folder, dataset="demo", task="banana")
    assert "#dataset=demo&task=banana&item=teacher%5Bgood-3%5D" in [one.attributes["href"] for one in task.all("a")]


@needs_chromium
@integration
def test_what_is_not_there_is_said(pages, drive):
    said = {
        "dataset=demo&model=none": "no model of this run has this name",
        "dataset=demo&task=none": "no task of this run has this name",
        "dataset=demo&task=apple&item=teacher[good-9]": "is not among these pages",
        "dataset=demo&model=bad": "models/0.js is missing beside this page",
    }
    folder = pages(*SEVERAL)
    (folder / "models/0.js").unlink()
    script = """
        const told = {};
        HASHES.forEach((hash, at) => {
          setTimeout(() => { go(hash); }, 400 * at);
          setTimeout(() => { told[hash] = document.getElementById("blocks").textContent; }, 400 * at + 300);
        });
        setTimeout(() => { document.title = JSON.stringify(told); }, 400 * HASHES.length);
        """
    told = drive(folder, GO + script.replace("HASHES", json.dumps(list(said))))
    for hash, text in said.items():
        assert text in told[hash]


@needs_chromium
@integration
def test_hostile_names_and_trajectories_are_text(tmp_path, see):
    talk = {PLACE: atif(step(1, "user", EVIL), step(2, message=EVIL, calls=[(EVIL, EVIL)], reasoning_content=EVIL))}
    hostile = attempt("+", model=EVIL, flags=[EVIL], finish=EVIL, statistics={"verbs": {EVIL: 3}, "kinds": {EVIL: 2}})
    run = run_of(tmp_path, (hostile, talk), (attempt("-", number=1), talk))
    folder = write_html(read_results(run), tmp_path / "pages").parent
    (data,) = called(folder / "models-data.js", "overview")
    seen = [see(folder), see(folder, dataset="demo", model=data["sets"][0][1]), see(folder, dataset="demo", task="a")]
    item = see(folder, dataset="demo", task="a", item="teacher[m-1]")
    for page in [*seen, item]:
        assert page.all("title")[0].text == "otval: attempts of models"
        assert not page.all("img") and "canary" in page.id("blocks").text
        assert not set("\u2028\u202e\x1b\x00") & set(page.id("blocks").text)
    # Outputs of commands are folded.
    folded = item.all("details")
    assert len(folded) == 3 and all("open" not in one.attributes for one in folded)


@needs_chromium
@integration
def test_tables_are_sorted_by_their_numbers(pages, drive):
    lines = [one for at in range(120) for one in attempts("+" * (at % 9) + "-" * (9 - at % 9), f"t{at:03}")]
    folder = pages(*lines)
    script = """
        setTimeout(() => {
          const title = (section) => section.querySelector("h2")?.textContent;
          const tasks = [...document.querySelectorAll("section")].find((one) => title(one) === "Tasks");
          tasks.querySelectorAll("th a")[3].click();
          const first = [...tasks.querySelectorAll("tr")].slice(1, 4).map((row) => row.textContent.slice(0, 4));
          tasks.querySelector("nav a").click();
          const second = tasks.querySelectorAll("tr").length - 1;
          document.title = JSON.stringify([first, second, tasks.querySelector("nav").textContent]);
        }, 500);
        """
    told = drive(folder, script, "dataset=demo&model=m")
    assert told == [["t008", "t017", "t026"], 20, "previouspage 2 of 2"]


@needs_chromium
@integration
def test_the_page_of_all_results_leads_to_a_trajectory(tmp_path):
    run = run_of(tmp_path, (attempt("+"), {PLACE: atif(step(1, "user", "do it"))}))
    index = write_html(read_results(run), tmp_path / "pages")
    page = dom(index, tmp_path / "home", urlencode({"row": attempt("+").id}))
    assert "hidden" not in page.id("models").attributes
    links = [one.attributes["href"] for one in page.id("details").all("a")]
    assert "models.html#dataset=demo&task=a&item=teacher%5Bm-0%5D" in links
