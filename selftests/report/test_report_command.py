"""``python -m pytest_otval report``."""

import json
import os
import subprocess
import sys

import pytest

from pytest_otval.__main__ import main
from selftests.report.ledgers import IMAGE, line, make_run


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("OT_WORKSPACE", str(tmp_path))
    (tmp_path / "runs").mkdir()
    return tmp_path


@pytest.fixture
def run(workspace):
    return make_run(workspace / "runs/one", line("a", image=IMAGE), line("b", reason="wrong-reward", log="why\n"))


def refusal(capsys, *argv):
    assert main(["report", *map(str, argv)]) == 4
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    return err


def test_it_shows_the_summary(run, capsys):
    assert main(["report", str(run)]) == 0
    out = capsys.readouterr().out
    assert "     1 x oracle: wrong-reward: why\n         b\n" in out
    assert out.endswith(f"ledger: {run}/ledger\n")
    assert "\x1b" not in out


def test_latest_is_the_run_begun_last(workspace, run, capsys):
    later = make_run(workspace / "runs/another", line("c"))
    os.utime(run / "run.json", ns=(1, 1))
    (workspace / "runs/stray").mkdir()
    assert main(["report", "latest"]) == 0
    assert f"ledger: {later}/ledger" in capsys.readouterr().out


def test_json_holds_the_selected_lines_whole(run, capsys, tmp_path):
    assert main(["report", str(run), "--json", "-", "--select", "verdict == 'fail'"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["run"]["flavour"] == "userns"
    assert told["results"] == [json.loads(line("b", reason="wrong-reward", log="why\n").as_json())]
    assert main(["report", str(run), "--json", str(tmp_path / "all.json")]) == 0
    assert len(json.loads((tmp_path / "all.json").read_text())["results"]) == 2


def test_all_outputs_at_once(run, capsys, tmp_path):
    words = ["--html", tmp_path / "pages", "--junit", tmp_path / "j.xml", "--json", "-", "--select", "task ~ 'a'"]
    assert main(["report", str(run), *map(str, words)]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["results"]) == 1
    assert f"html: {tmp_path}/pages/index.html" in err
    assert (tmp_path / "j.xml").read_text().count("<testcase ") == 1
    assert '"count":1' in (tmp_path / "pages/rows.js").read_text()


def test_diff(run, workspace, capsys, tmp_path):
    other = make_run(workspace / "runs/two", line("a", reason="killed"), line("b", reason="wrong-reward"), line("c"))
    assert main(["report", "diff", str(run), str(other), "--json", str(tmp_path / "d.json")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:2] == [
        "nothing changed: flaky, or the machine: 1",
        "  datasets/demo/tasks/a/task.toml::oracle: pass -> error killed",
    ]
    told = json.loads((tmp_path / "d.json").read_text())
    assert [(change["id"], change["cause"]) for change in told["changes"]] == [
        (line("a").id, "nothing"),
        (line("c").id, "new"),
    ]
    assert main(["report", "diff", str(run), str(other), "--select", "task == 'b'"]) == 0
    assert capsys.readouterr().out == "no verdict changed\n"


def test_what_is_wrong_is_said(run, workspace, capsys, tmp_path, monkeypatch):
    assert "is no run folder" in refusal(capsys, tmp_path / "nowhere")
    assert "takes one RUN" in refusal(capsys, run, run)
    assert "takes two runs" in refusal(capsys, "diff", run)
    assert "--select and --json only" in refusal(capsys, "diff", run, run, "--junit", "x")
    assert "there is no field 'x'" in refusal(capsys, run, "--select", "x")
    assert "no result of" in refusal(capsys, run, "--select", "verdict == 'n/a'")
    run.joinpath("run.json").unlink()
    assert "there is no run in" in refusal(capsys, "latest")
    monkeypatch.delenv("OT_WORKSPACE")
    assert "OT_WORKSPACE is not set" in refusal(capsys, "latest")


@pytest.mark.parametrize("option", ["--junit", "--json", "--html"])
def test_what_cannot_be_written_is_said(run, capsys, tmp_path, option):
    (tmp_path / "file").touch()
    assert main(["report", str(run), option, str(tmp_path / "file/x")]) == 4
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_a_reader_may_stop_early(workspace):
    run = make_run(workspace / "runs/long", *(line(f"t{number}", headline="x" * 200) for number in range(500)))
    script = f"{sys.executable} -m pytest_otval report {run} --json - | head -c 100"
    ended = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
