import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_otval.core import REASONS, Conclusion, Verdict
from pytest_otval.images.failed import FailedImages
from pytest_otval.sandbox.base import Limits


def known(images, key, seconds=60.0, **limits):
    try:
        images.require_unknown(key, seconds, Limits(**limits))
    except Conclusion as conclusion:
        return conclusion.reason, conclusion.headline, conclusion.log
    return None


FAULT = ("build-failed", "environment/Dockerfile:2: RUN \N{SNOWMAN}", "a\nb\udcff")


@pytest.mark.parametrize("reason", [reason for reason in REASONS if reason != "expected"])
def test_only_faults_of_the_task_are_remembered(tmp_path, reason):
    FailedImages(tmp_path / "f").remember("k", Conclusion(reason, "why", "log"), 60.0, Limits())
    fault = REASONS[reason].verdict is Verdict.FAIL
    assert known(FailedImages(tmp_path / "f"), "k") == ((reason, "why", "log") if fault else None)


@pytest.mark.parametrize(
    ("reason", "seconds", "given", "more"),
    [
        ("build-timeout", 60.0, {}, {"seconds": 61.0}),
        ("memory-limit", 60.0, {"memory_mb": 256}, {"memory_mb": 512}),
        ("storage-limit", 60.0, {"storage_mb": 256}, {}),
    ],
)
def test_whoever_gives_more_tries_again(tmp_path, reason, seconds, given, more):
    FailedImages(tmp_path).remember("k", Conclusion(reason, "why", "log"), seconds, Limits(**given))
    reader = FailedImages(tmp_path)
    assert known(reader, "k", **{"seconds": seconds, **given}) == (reason, "why", "log")
    assert known(reader, "k", **more) is None


def test_another_process_sees_it_at_once(tmp_path):
    writer, reader = FailedImages(tmp_path), FailedImages(tmp_path)
    assert known(reader, "a") is None
    for key in "abc":
        writer.remember(key, Conclusion(*FAULT), 60.0, Limits())
        assert known(reader, key) == FAULT
    assert known(reader, "d") is None
    assert len(os.listdir(tmp_path)) == 1


def test_many_failures_are_one_file(tmp_path):
    images = FailedImages(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda number: FailedImages(tmp_path).remember(f"k{number}", Conclusion(*FAULT), 60.0, Limits()),
                range(200),
            )
        )
    assert len(os.listdir(tmp_path)) == 1
    assert all(known(images, f"k{number}") for number in range(200))


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_line_of_a_killed_process(tmp_path, cut):
    images = FailedImages(tmp_path)
    images.remember("first", Conclusion(*FAULT), 60.0, Limits())
    images.remember("torn", Conclusion(*FAULT), 60.0, Limits())
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    reader = FailedImages(tmp_path)
    assert known(reader, "first") == FAULT and known(reader, "torn") is None
    images.remember("next", Conclusion(*FAULT), 60.0, Limits())
    assert known(reader, "next") == FAULT


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", "[[], 1, 2, 3]", '["a"]', "no", "\xff", "null", '"abcd"'])
def test_foreign_lines_are_skipped(tmp_path, text):
    (tmp_path / "x.jsonl").write_bytes(text.encode("latin-1") + b"\n")
    images = FailedImages(tmp_path)
    images.remember("k", Conclusion(*FAULT), 60.0, Limits())
    assert known(images, "k") == FAULT
    assert known(images, "other") is None
