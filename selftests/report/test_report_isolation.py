import pytest
import tomli

from pytest_otval.__main__ import main
from pytest_otval.ledger import Ledger
from selftests.test_ledger import line

PASSES = {"pristine": "expected"}
MASKED = {"pristine": "wrong-reward", "masked": "expected"}
NOWHERE = dict.fromkeys(("pristine", "masked", "fresh", "none"), "wrong-reward")


def answer(task, levels, verdict="pass", isolation="", **values):
    id = f"datasets/demo/tasks/{task}/task.toml::oracle"
    values = {"stage": "oracle", "kind": "result", "known_bad": "", "checks": [], "judge": [], **values}
    return line(id=id, verdict=verdict, levels=levels, isolation=isolation, **values)


@pytest.fixture
def run(tmp_path):
    ledger = Ledger(tmp_path / "run", "main")
    ledger.write(answer("a", PASSES))
    ledger.write(answer("b", MASKED))
    ledger.write(answer("c", NOWHERE, "fail", "fresh"))
    ledger.write(answer("d", {"fresh": "expected"}, isolation="separate"))
    ledger.write(answer("e", {"fresh": "other-scope"}, isolation="none"))
    ledger.write(answer("f\x1b[31m", {"pristine": "x", "masked": "x", "fresh": "expected"}, isolation="fresh"))
    ledger.write(answer("g", {}, isolation="fresh"))
    return tmp_path / "run"


def test_table(run, capsys):
    assert main(["isolation", str(run)]) == 0
    out = capsys.readouterr().out
    rows = {words[0]: words[1:] for words in map(str.split, out.splitlines()) if len(words) == 4}
    assert rows == {
        "pristine": ["1", "1", "2"],
        "masked": ["1", "2", "1"],
        "fresh": ["1", "3", "0"],
        "none": ["0", "3", "0"],
    }
    assert "1 with a separate verifier" in out and "1 work at no level" in out and "1 with services" in out
    assert "  b: masked (pristine wrong-reward, masked expected)" in out
    assert "  c: no level (pristine wrong-reward" in out
    assert "\x1b" not in out


def test_written(run, tmp_path, capsys):
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "dataset.toml").write_text('# mine\n[otval]\nisolation = "masked"\n')
    assert main(["isolation", str(run), "--write", str(folder)]) == 0
    text = (folder / "dataset.toml").read_text()
    levels = tomli.loads(text)["otval"]["levels"]
    assert (text.startswith("# mine\n"), levels["a"], "b" in levels, "e" in levels) == (True, "pristine", False, False)
    assert main(["isolation", str(run), "--write", str(folder)]) == 0
    assert (folder / "dataset.toml").read_text() == text


def test_a_level_that_no_longer_holds_is_replaced(run, tmp_path, capsys):
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "dataset.toml").write_text('[otval]\nisolation = "pristine"\n[otval.levels]\na = "none"\n')
    assert main(["isolation", str(run), "--write", str(folder)]) == 0
    levels = tomli.loads((folder / "dataset.toml").read_text())["otval"]["levels"]
    assert (levels["a"], levels["b"]) == ("pristine", "masked")


def test_another_dataset(run, tmp_path, capsys):
    (tmp_path / "dataset.toml").write_text("")
    assert main(["isolation", str(run), "--write", str(tmp_path)]) == 4
    assert "it has those of demo" in capsys.readouterr().err


def test_no_dataset(run, tmp_path, capsys):
    assert main(["isolation", str(run), "--write", str(tmp_path)]) == 4
    assert "has no dataset.toml" in capsys.readouterr().err


def test_a_run_without(tmp_path, capsys):
    Ledger(tmp_path / "run", "main").write(answer("g", {}))
    assert main(["isolation", str(tmp_path / "run")]) == 4
    assert "has no answer of oracle at --otval-isolation auto" in capsys.readouterr().err
