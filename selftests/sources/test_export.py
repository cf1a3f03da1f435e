"""What is published of a dataset, and why."""

import json
import os

import pytest
import tomli
from pyarrow import parquet

from pytest_otval.core import OtvalUsageError
from pytest_otval.report.results import read_results
from pytest_otval.sources.adapters.base import Refused
from pytest_otval.sources.export import Export, export
from pytest_otval.sources.fates import Fate, fates
from pytest_otval.sources.origin import LocalSource
from pytest_otval.sources.provenance import Origin, Prepared
from pytest_otval.task.digest import harbor_digest, task_digest
from pytest_otval.task.source import source_of
from selftests.checks.conftest import SOUND, write_task
from selftests.hub import OF_UPLOADS, TOKEN
from selftests.report.ledgers import IMAGE, line, make_run
from selftests.sources.test_patched_dataset import said, small  # noqa: F401

# ruff: noqa: F811 - fixtures

NAMES = ("bad", "bare", "good", "unknown")
LICENSED = (
    SOUND["task.toml"]
    + '[metadata]\nlicense = "MIT"\n[metadata.otval.patches]\nguard = "x"\n[task]\nname = "org/good-task"\n'
)
TOML = """\
# Ours.
[dataset]
name = "org/set"
version = "2"
[[tasks]]
name = "org/old"
digest = "x"
[otval]
adapter = "harbor"
oracle_min = 0.5 # of its own
[otval.source]
kind = "local"
path = "x"
[otval.known_bad.bad]
reason = "r"
[otval.known_bad.good]
reason = "kept"
"""
CHECKSUM = "1" * 64


@pytest.fixture
def folder(tmp_path):
    for name in NAMES:
        write_task(tmp_path / "set" / "tasks" / name, {"task.toml": LICENSED} if name == "good" else {})
    (tmp_path / "set" / "dataset.toml").write_text(TOML)
    return tmp_path / "set"


@pytest.fixture
def run(tmp_path, folder):
    def asked(task, *rest, **fields):
        return line(task, *rest, **{"task_digest": task_digest(folder / "tasks" / task), **fields})

    return make_run(
        tmp_path / "run",
        asked("good", "oracle", image=IMAGE, isolation="fresh", runtimes=[f"python-verifier-1@sha256:{CHECKSUM}"]),
        asked("good", "noop"),
        asked("bare", "oracle", "no-solution"),
        asked("bare", "noop"),
        asked("bad", "oracle", "wrong-reward", headline="score 0 | <b>\x1b[31m", known_bad="known bad until then"),
        asked("bad", "noop"),
        line("unknown", "oracle", "no-start", task_digest=""),
        asked("unknown", "noop"),
        asked("bad", "adversary", "attack-paid", attacks={"x": "paid"}, isolation="fresh"),
    )


@pytest.fixture
def out(folder, run, tmp_path):
    """Export and return the folder."""

    def make(*more, results=None, wanted=None, **options):
        results = results or [read_results(run)]
        rows = [row for one in results for row in one.rows]
        origin = LocalSource(kind="local", path="x", licence="Apache-2.0")
        what = Export("set", folder, source_of(folder), results, wanted or fates(rows), origin)
        make.tasks = export(what, tmp_path / "out", **options)
        return tmp_path / "out"

    return make


def test_a_task_is_kept_where_every_answer_is_a_pass_or_na(run):
    found = fates(read_results(run).rows)
    assert found["bare"] == Fate() == found["good"]
    assert found["bad"].category == "wrong-reward"
    assert found["bad"].reason.startswith("oracle: score 0") and "(known bad until then)" in found["bad"].reason
    assert "unknown" not in found


def test_an_error_counts_for_nothing_where_another_run_has_the_answer(tmp_path):
    failed, asked = (
        make_run(tmp_path / name, line("a", reason=reason)) for name, reason in (("f", "no-start"), ("a", "expected"))
    )
    assert fates([*read_results(failed).rows, *read_results(asked).rows]) == {"a": Fate()}


def test_the_files(out, folder):
    made = out()
    kept, archived = (parquet.read_table(made / name) for name in ("data/kept.parquet", "archived/archived.parquet"))
    assert kept.column_names == ["path", "task_binary", "digest", "licence", "patches"]
    assert kept.column("path").to_pylist() == ["bare", "good"]
    assert kept.column("digest").to_pylist()[1] == task_digest(folder / "tasks" / "good")
    assert (kept.column("licence").to_pylist(), kept.column("patches").to_pylist()) == (["", "MIT"], ["", "guard"])
    assert archived.column_names == [*kept.column_names, "category", "reason"]
    assert archived.column("category").to_pylist() == ["wrong-reward"]
    assert parquet.read_table(made / "evidence" / "verdicts.parquet").num_rows == 9
    assert sorted(path.name for path in made.iterdir()) == ["README.md", "archived", "data", "dataset.toml", "evidence"]
    with pytest.raises(OtvalUsageError, match="is there already"):
        out()


def test_the_manifest_is_harbors_with_our_settings(out, folder):
    text = (out() / "dataset.toml").read_text()
    assert text.startswith("# Ours.\n") and "# of its own" in text
    manifest = tomli.loads(text)
    assert manifest["dataset"] == {"name": "org/set", "version": "2"}
    assert manifest["otval"] == {"oracle_min": 0.5, "known_bad": {"good": {"reason": "kept"}}}
    assert manifest["tasks"] == [
        {"name": "otval/bare", "digest": harbor_digest(folder / "tasks" / "bare")},
        {"name": "org/good-task", "digest": harbor_digest(folder / "tasks" / "good")},
    ]


def test_a_task_that_harbor_refuses_is_kept_and_named(out, folder, run):
    os.symlink("/etc/passwd", folder / "tasks" / "good" / "tests" / "link")
    results = [make_results(run, folder)]
    made = out(results=results)
    assert [one["name"] for one in tomli.loads((made / "dataset.toml").read_text())["tasks"]] == ["otval/bare"]
    assert (
        "- good: tests/link is a link that leaves the task: replace it by the file" in (made / "README.md").read_text()
    )


def make_results(run, folder):
    digests = [(name, task_digest(folder / "tasks" / name)) for name in ("bare", "good")]
    return read_results(make_run(run.with_name("other"), *(line(name, task_digest=digest) for name, digest in digests)))


def test_as_folders_for_harbor(out, folder):
    made = folder.parent / "harbor"
    out(folders=made)
    assert sorted(path.name for path in made.iterdir()) == ["bare", "dataset.toml", "good"]
    for name in ("bare", "good"):
        assert task_digest(made / name) == task_digest(folder / "tasks" / name)


def test_folders_cannot_hold_pipes(out, folder, run):
    os.mkfifo(folder / "tasks" / "good" / "pipe")
    with pytest.raises(OtvalUsageError, match="good has what is no file: leave out --folders"):
        out(results=[make_results(run, folder)], folders=folder.parent / "harbor")
    assert not {path.name for path in folder.parent.iterdir()} & {"out", "harbor", ".out.part", ".harbor.part"}


def test_images_and_runtimes_are_named_by_digest_and_file(out, tmp_path):
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / f"{CHECKSUM}.sqfs").touch()
    references = json.loads((out(bundles=[bundle]) / "evidence" / "references.json").read_text())
    assert references == {
        "images": {
            IMAGE["key"]: {
                "content": IMAGE["content"],
                "base": IMAGE["base"],
                "file": f"{IMAGE['key']}.sqfs",
                "bundles": [],
            }
        },
        "runtimes": {"python-verifier-1": {"sha256": CHECKSUM, "file": f"{CHECKSUM}.sqfs", "bundles": ["bundle"]}},
    }


def test_the_card_tells_the_evidence(out, folder):
    Prepared(Origin("none"), refused=[Refused("r", "cut-ids", "x")]).write(folder)
    made = out()
    text = (made / "README.md").read_text()
    assert 'license: "apache-2.0"' in text
    assert "| oracle | 2 | 1 | 6.1% to 93.9% | 1 |" in text
    assert "Attacks that solve nothing were paid on 1 of 1 tasks." in text
    assert "| x | paid |" in text
    assert "- wrong-reward: bad" in text
    assert "| guard | 1 |" in text
    assert "Records of the source that gave no task: cut-ids 1 (`evidence/provenance.jsonl`)." in text
    assert "- licences that tasks name themselves: MIT 1; 2 name none (column `licence`)" in text
    assert "- 1 images, 1 runtimes, by digest" in text
    assert "\x1b" not in text and "<b>" not in text
    assert (made / "evidence" / "provenance.jsonl").read_bytes() == (folder / "provenance.jsonl").read_bytes()


def test_results_of_other_files_are_refused(out, folder, tmp_path):
    with pytest.raises(OtvalUsageError, match="which the dataset does not have"):
        out(wanted={"gone": Fate()})
    (folder / "tasks" / "good" / "more").touch()
    with pytest.raises(OtvalUsageError, match="results are of other files of good: run its tasks again"):
        out()
    assert not (tmp_path / "out").exists()


# --- the command ---


@pytest.fixture
def answered(small, capsys, tmp_path):
    """Return the dataset, prepared, and a run of it."""
    dataset = small()
    said(capsys, dataset, "prepare")
    source = source_of(small.target)
    digests = {name: task_digest(source.folder(name, tmp_path / "unpacked")) for name in "abc"}
    run = make_run(tmp_path / "run", *(line(name, task_digest=digest) for name, digest in digests.items()))
    ledger = run / "ledger" / "main.jsonl"
    ledger.write_text(ledger.read_text().replace("datasets/demo/", "datasets/small/"))
    return dataset, ["export", str(tmp_path / "out"), "--run", str(run)], digests


@OF_UPLOADS
@pytest.mark.parametrize("private", [False, True])
def test_the_command_pushes(answered, capsys, tmp_path, any_hub, monkeypatch, private):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    if not private:
        any_hub.add("datasets/org/out")
    dataset, words, _ = answered
    words += ["--select", "task != 'b'", "--push", "org/out", *(["--private"] if private else [])]
    status, out, err = said(capsys, dataset, *words)
    assert (status, err) == (0, [])
    assert out == [f"{tmp_path}/out: 2 kept, 0 archived", "pushed to org/out"]
    there = any_hub.repositories["datasets/org/out"]
    assert there.private is private
    assert set(there.files) >= {"data/kept.parquet", "README.md", "dataset.toml", "evidence/verdicts.parquet"}
    assert parquet.read_table(tmp_path / "out" / "evidence" / "verdicts.parquet").num_rows == 2


@OF_UPLOADS
def test_a_public_repository_gets_nothing_that_is_to_be_private(answered, capsys, any_hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    any_hub.add("datasets/org/out")
    dataset, words, _ = answered
    status, _, err = said(capsys, dataset, *words, "--push", "org/out", "--private")
    assert (status, err) == (4, ["error: org/out is there and public: nothing was sent; name another one"])
    assert any_hub.repositories["datasets/org/out"].files == {}


@OF_UPLOADS
def test_a_push_that_broke_off_goes_on_and_tells_no_token(answered, capsys, any_hub, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    any_hub.add("datasets/org/out")
    any_hub.fails("/commit/", method="POST", status=403, times=1)
    dataset, words, _ = answered
    status, out, err = said(capsys, dataset, *words, "--push", "org/out")
    assert status == 4 and TOKEN not in "".join((*out, *err))
    # What is exported is there, and is pushed by its name.
    status, out, err = said(capsys, dataset, "push", str(tmp_path / "out"), "org/out")
    assert (status, out, err) == (0, ["pushed to org/out"], [])


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (["--select", "task == 'z'"], "no task of small has an answer in these runs"),
        (["--private"], "--private says how to --push: name the repository"),
    ],
)
def test_what_cannot_be_exported(answered, capsys, words, said_of_it):
    dataset, given, _ = answered
    assert said(capsys, dataset, *given, *words)[::2] == (4, [f"error: {said_of_it}"])


def test_what_is_not_prepared_cannot_be_exported(small, capsys):
    status, _, err = said(capsys, small(), "export", "out")
    assert (status, err) == (4, ["error: small is not prepared: patch.py prepare"])


@pytest.mark.parametrize(
    ("form", "adapter"),
    [("out", "harbor"), ("out/data/kept.parquet", "harbor-parquet"), ("small", "harbor")],
)
def test_imported_again_every_digest_is_the_same(answered, small, capsys, tmp_path, form, adapter):
    """As a source of another dataset: the whole export, its file of tasks, or its folders."""
    dataset, words, digests = answered
    assert said(capsys, dataset, *words, "--folders", str(tmp_path / "small"))[0] == 0
    again = small(source=f'kind = "local"\npath = "{tmp_path / form}"\n[otval]\nadapter = "{adapter}"')
    said(capsys, again, "prepare")
    source = source_of(small.target)
    assert {name: task_digest(source.folder(name, tmp_path / "more")) for name in source.names()[0]} == digests
