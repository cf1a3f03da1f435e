"""What a Dockerfile tells about the files of its image."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.image_files import known_image
from pytest_otval.task.load import load_task

BASE = "FROM debian:bookworm-slim\nWORKDIR /app\n"


def image_of(task, dockerfile):
    """What is known of the image that the task's Dockerfile builds."""
    (task / "environment").mkdir(exist_ok=True)
    (task / "environment" / "Dockerfile").write_text(dockerfile)
    (task / "task.toml").touch()
    return known_image(CheckContext(load_task(task, "data")), "environment")


@pytest.fixture
def known(tmp_path):
    def build(*lines: str, base: str = BASE):
        data = tmp_path / "environment" / "data" / "sub"
        data.mkdir(parents=True, exist_ok=True)
        (data / "in.txt").write_text("1")
        (tmp_path / "environment" / "one.py").write_text("1")
        return image_of(tmp_path, base + "".join(f"{line}\n" for line in lines))

    return build


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("COPY data /app/data", "/app/data/sub/in.txt"),
        ("COPY data/ data", "/app/data/sub"),
        ("COPY . .", "/app/one.py"),
        ("COPY *.py src/", "/app/src/one.py"),
        ("COPY one.py /app/two.py", "/app/two.py"),
        ("COPY one.py /opt", "/opt/one.py"),
        ("COPY <<EOF three.py\n1\nEOF", "/app/three.py"),
        ("WORKDIR sub\nCOPY one.py .", "/app/sub/one.py"),
    ],
)
def test_what_is_there(known, line, path):
    assert known(line).has(path) is True


@pytest.mark.parametrize(
    "line",
    [
        "RUN echo 1 > /app/x.txt",
        "RUN python3 gen.py",
        "RUN git clone https://example.org/a .",
        "RUN curl -sO https://example.org/a",
        "RUN wget https://example.org/a",
        "RUN cat a > $TARGET",
        "RUN <<EOF\ntouch y\nEOF",
        "RUN --mount=type=bind,target=/s cp -r /s .",
        "COPY --from=other /a /app",
        "ADD a.tar.gz /app",
        "ADD https://example.org/a /app/",
        "ARG D=/app\nCOPY one.py $D/x.txt",
        "ONBUILD COPY . .",
        "RUN (",
    ],
)
def test_what_only_a_build_tells(known, line):
    assert known(line).has("/app/x.txt") is None


@pytest.mark.parametrize(
    "line",
    [
        "RUN apt-get update && apt-get install -y curl && rm -rf /var/lib/apt/lists/*",
        "RUN pip install --no-cache-dir pytest==8 && mkdir -p /app/out && chmod 777 /app",
        "RUN curl -LsSf https://astral.sh/uv/install.sh | sh",
        "RUN python3 -m venv /opt/venv && useradd -m app",
        "COPY data /app/x",
        "COPY --from=other /a /opt",
        "ENV A=1",
    ],
)
def test_what_is_not_there(known, line):
    assert known(line).has("/app/x.txt") is False


def test_a_base_of_somebody_may_hold_anything(known):
    assert known(base="FROM registry.example.org/task:1\n").has("/app/x.txt") is None
    assert known(base="FROM ubuntu:24.04@sha256:" + "a" * 64 + "\n").has("/app/x.txt") is False


def test_a_stage_stands_on_another(known):
    stages = "FROM debian AS one\nCOPY one.py /one/\nFROM debian AS two\nCOPY one.py /two/\nFROM one\n"
    image = known(base=stages)
    assert (image.has("/one/one.py"), image.has("/two/one.py")) == (True, False)


LINES = st.sampled_from(
    [
        "FROM debian",
        "FROM a AS b",
        "FROM b",
        "COPY . /",
        "COPY [a",
        "COPY x* /y",
        "RUN x",
        "WORKDIR ..",
        "WORKDIR $X",
        "\0",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(LINES, max_size=6))
def test_no_dockerfile_crashes(tmp_path, lines):
    image = image_of(tmp_path, "\n".join(lines))
    assert image.has("/a/b") in (True, False, None)
    assert image.may_fill("/tests") in (True, False)
