"""What is published of a dataset, and why."""

import json

import pytest
import tomli
from pyarrow import parquet

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.results import read_results
from pytest_otval.sources.export import Fate, export, fates
from pytest_otval.task.digest import harbor_digest
from pytest_otval.task.source import source_of
from selftests.checks.conftest import write_task
from selftests.hub import OF_UPLOADS
from selftests.report.ledgers import IMAGE, line, make_run
from selftests.sources.test_patched_dataset import said, small  # noqa: F401

# ruff: noqa: F811 - fixtures


@pytest.fixture
def run(tmp_path):
    return make_run(
        tmp_path / "run",
        line("good", "oracle", image=IMAGE, isolation="fresh", runtimes=["python-verifier-1@sha256:1"]),
        line("good", "noop"),
        line("bare", "oracle", "no-solution"),
        line("bare", "noop"),
        line("bad", "oracle", "wrong-reward", headline="score 0 | <b>\x1b[31m"),
        line("bad", "noop"),
        line("unknown", "oracle", "no-start"),
        line("unknown", "noop"),
        line("good", "adversary", "attack-paid", attacks={"x": "paid"}, known_bad="accepted"),
    )


@pytest.fixture
def tasks(tmp_path):
    for name in ("good", "bad", "bare", "unknown"):
        write_task(tmp_path / "set" / "tasks" / name, {})
    return source_of(tmp_path / "set")


def test_a_task_is_kept_where_every_answer_is_a_pass_or_na(run):
    found = fates(read_results(run).rows)
    assert found["bare"] == Fate()
    assert found["bad"].category == "wrong-reward"
    assert found["good"].category == "attack-paid"
    assert "unknown" not in found


def test_the_files(run, tasks, tmp_path):
    out = tmp_path / "out"
    results = [read_results(run)]
    wanted = {"good": Fate(), "bare": Fate(), "bad": Fate("wrong-reward", "oracle: score 0")}
    assert export("set", tasks, results, wanted, "MIT", out) == {"kept": 2, "archived": 1}
    assert parquet.read_table(out / "kept.parquet").column("path").to_pylist() == ["bare", "good"]
    archived = parquet.read_table(out / "archived.parquet")
    assert archived.column_names == ["path", "task_binary", "category", "reason"]
    assert archived.column("category").to_pylist() == ["wrong-reward"]
    manifest = tomli.loads((out / "dataset.toml").read_text())
    assert manifest["tasks"][1] == {"name": "otval/good", "digest": harbor_digest(tmp_path / "set" / "tasks" / "good")}
    references = json.loads((out / "references.json").read_text())
    assert references["images"] == {IMAGE["key"]: {"content": IMAGE["content"], "base": IMAGE["base"]}}
    assert references["runtimes"] == ["python-verifier-1@sha256:1"]
    assert parquet.read_table(out / "verdicts.parquet").num_rows == 9
    with pytest.raises(OtvalUsageError, match="is there already"):
        export("set", tasks, results, wanted, "MIT", out)
    assert source_of_kept(out, tmp_path) == ["bare", "good"]


def source_of_kept(out, tmp_path):
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "tasks.parquet").write_bytes((out / "kept.parquet").read_bytes())
    return source_of(tmp_path / "again").names()[0]


def test_the_card_tells_the_evidence(run, tasks, tmp_path):
    out = tmp_path / "out"
    export("set", tasks, [read_results(run)], fates(read_results(run).rows), "Apache-2.0", out)
    text = (out / "README.md").read_text()
    assert 'license: "apache-2.0"' in text
    assert "| oracle | 2 | 1 | 6.1% to 93.9% | 1 |" in text
    assert "Attacks that solve nothing were paid on 1 of 1 tasks." in text
    assert "- wrong-reward: bad" in text
    assert "\x1b" not in text and "<b>" not in text


def test_results_of_tasks_that_are_gone_are_refused(run, tasks, tmp_path):
    with pytest.raises(OtvalUsageError, match="which the dataset does not have"):
        export("set", tasks, [read_results(run)], {"gone": Fate()}, "", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@OF_UPLOADS
def test_the_command_pushes(small, capsys, tmp_path, any_hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_of_these_tests")
    any_hub.add("datasets/org/out")
    dataset = small()
    said(capsys, dataset, "prepare")
    run = make_run(tmp_path / "run", *(line(name, "oracle") for name in "abc"))
    # A run of this dataset.
    ledger = run / "ledger" / "main.jsonl"
    ledger.write_text(ledger.read_text().replace("datasets/demo/", "datasets/small/"))
    words = ["export", str(tmp_path / "out"), "--run", str(run), "--select", "task != 'b'", "--push", "org/out"]
    status, out, err = said(capsys, dataset, *words)
    assert (status, err) == (0, [])
    assert out == [f"{tmp_path}/out: 2 kept, 0 archived", "pushed to org/out"]
    assert set(any_hub.repositories["datasets/org/out"].files) >= {"kept.parquet", "README.md", "dataset.toml"}
    assert said(capsys, dataset, "export", str(tmp_path / "more"), "--run", str(run), "--select", "task == 'z'")[0] == 4
