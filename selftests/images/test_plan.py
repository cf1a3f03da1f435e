"""From a Dockerfile to steps and a key."""

import pytest

from pytest_otval.core import Conclusion
from pytest_otval.images.plan import dockerfile_plan
from pytest_otval.images.steps import CopyStep, RunStep, WorkdirStep, base_plan
from pytest_otval.sandbox.base import DEFAULT_PATH

FROM = "FROM debian:12\n"


@pytest.fixture
def plan(environment, bases):
    def make(dockerfile, files=None, all_root=False):
        return dockerfile_plan(environment(dockerfile, files), bases, all_root)

    return make


def test_run_sees_variables_workdir_user_and_shell(plan):
    made = plan(
        'ARG V=12\nFROM debian:$V\nARG V\nARG X=x-$V\nENV A="1 2" X=e\nENV A=3 B=$A\nWORKDIR /a\nWORKDIR b\nUSER app\n'
        'SHELL ["/bin/bash", "-ec"]\nRUN echo $A \\\n  # comment\n  && true\nRUN ["x", "$A"]\n'
    )
    workdir, deeper, shell, direct = made.steps
    assert (workdir.path, deeper.path) == ("/a", "/a/b")
    assert shell.argv == ("/bin/bash", "-ec", "echo $A   && true")
    assert direct.argv == ("x", "$A")
    assert shell.env == {"PATH": DEFAULT_PATH, "V": "12", "X": "e", "A": "3", "B": "1 2"}
    assert (shell.workdir, shell.user, shell.line) == ("/a/b", "app", 11)
    assert made.config.env == {"PATH": DEFAULT_PATH, "X": "e", "A": "3", "B": "1 2"}
    assert (made.config.workdir, made.config.user) == ("/a/b", "app")


def test_arg_scope(plan):
    made = plan("ARG G=1\nARG H=2\n" + FROM + "ARG G\nARG N\nARG TARGETARCH\nRUN x\n")
    env = made.steps[0].env
    assert env["G"] == "1"
    assert "H" not in env
    assert "N" not in env
    assert env["TARGETARCH"]


def test_recorded_only(plan):
    made = plan(
        FROM + 'LABEL a=b "c d"=$PATH\nEXPOSE 80 81/tcp\nVOLUME ["/v"]\nSTOPSIGNAL 9\nMAINTAINER me\n'
        "HEALTHCHECK --interval=3s CMD curl x\nCMD a b\n"
    )
    assert made.steps == ()
    config = made.config
    assert config.labels == {"a": "b", "c d": DEFAULT_PATH, "maintainer": "me"}
    assert (config.exposed, config.volumes, config.stop_signal) == (("80", "81/tcp"), ("/v",), "9")
    assert config.healthcheck == ("--interval=3s", "CMD", "curl x")
    assert config.cmd == ("/bin/sh", "-c", "a b")


def test_entrypoint_forgets_the_bases_cmd_but_not_ones_own(plan):
    assert plan(FROM + 'ENTRYPOINT ["e"]').config.cmd == ()
    assert plan(FROM + 'CMD ["c"]\nENTRYPOINT ["e"]').config.cmd == ("c",)


@pytest.mark.parametrize(
    ("line", "destination", "into_folder"),
    [
        ("COPY a.txt .", "/w", True),
        ("COPY a.txt /x/", "/x", True),
        ("COPY a.txt y", "/w/y", False),
        ("COPY a.txt b.txt y/", "/w/y", True),
        ("COPY *.txt /x", "/x", False),
        ("COPY sub //x", "/x", False),
        ('COPY ["a.txt", "/with space"]', "/with space", False),
        ("COPY $NAME ${DIR:-/d}/", "/d", True),
        ("ADD a.txt ../../up", "/up", False),
    ],
)
def test_copy_destinations(plan, line, destination, into_folder):
    files = {"a.txt": "a", "b.txt": "b", "sub/c": "c"}
    step = plan(FROM + "ENV NAME=a.txt\nWORKDIR /w\n" + line, files).steps[-1]
    assert isinstance(step, CopyStep)
    assert (step.destination, step.into_folder) == (destination, into_folder)


def test_copy_flags_and_heredoc(plan):
    made = plan(FROM + "ARG O=0\nCOPY --chown=$O:0 --chmod=0640 <<E <<'F' /d/\n$O\nE\n$O\nF\n")
    (step,) = made.steps
    assert (step.owner, step.mode) == ("0:0", "640")
    assert [(source.name, source.inline) for source in step.sources] == [("E", b"0\n"), ("F", b"$O\n")]
    assert made.needs_uid_mapping is None


def test_run_heredocs(plan):
    alone, script, piped = plan(
        FROM + "RUN <<E\na\nb\nE\nRUN <<-E\n\t#!/bin/x\n\ty\nE\nRUN cat <<A > f && cat <<B\n1\nA\n2\nB\n"
    ).steps
    assert alone.argv == ("/bin/sh", "-c", "a\nb\n")
    assert (script.argv, script.script) == (("/.otval-build/heredoc-1",), "#!/bin/x\ny\n")
    assert piped.argv[-1] == "cat <<A > f && cat <<B\n1\nA\n2\nB"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("COPY --link a b", "Dockerfile:2: COPY --link"),
        ("RUN --mount=type=cache,target=/x ls", "Dockerfile:2: RUN --mount"),
        ("ADD https://example.org/x /x", "Dockerfile:2: ADD URL without --checksum"),
        ("ONBUILD RUN ls", "Dockerfile:2: ONBUILD RUN"),
    ],
)
def test_unsupported(plan, lines, words):
    with pytest.raises(Conclusion) as caught:
        plan(FROM + lines)
    assert caught.value.reason == "unsupported-instruction"
    assert caught.value.headline == f"environment/{words} is not supported yet"


@pytest.mark.parametrize("dockerfile", ["FROM scratch", "FROM --platform=linux/s390x debian:12"])
def test_unsupported_from(plan, dockerfile):
    with pytest.raises(Conclusion) as caught:
        plan(dockerfile)
    assert caught.value.reason == "unsupported-instruction"


def test_platform_of_this_machine(plan):
    assert plan("FROM --platform=$BUILDPLATFORM debian:12").steps == ()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("COPY nope /", "Dockerfile:2: COPY: 'nope' is not in the build context"),
        ("ENV A=${B", "Dockerfile:2: ENV: "),
        ("FOO", "Dockerfile:2: unknown instruction: FOO"),
    ],
)
def test_faults_of_the_task(plan, lines, words):
    with pytest.raises(Conclusion) as caught:
        plan(FROM + lines, {"a.txt": "a", "sub/c": "c"})
    assert caught.value.reason == "build-failed"
    assert words in caught.value.headline
    assert "\n" not in caught.value.headline


def test_secret_beside_the_context_cannot_be_copied(plan, environment, tmp_path):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "secret").write_text("s")
    folder = environment(FROM)
    (folder / "link").symlink_to("../secret")
    for source in ("../secret", "link"):
        with pytest.raises(Conclusion, match="not in the build context"):
            plan(FROM + f"COPY {source} /")


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("USER app", "user app"),
        ("COPY --chown=1000 a.txt /", "COPY --chown=1000"),
        ("RUN useradd app", "RUN uses useradd"),
        ('RUN ["chown", "app", "/x"]', "RUN uses chown"),
        ("RUN <<E\nls\nchown app x\nE", "RUN uses chown"),
    ],
)
def test_needs_uid_mapping(plan, lines, what):
    assert plan(FROM + lines, {"a.txt": "a"}).needs_uid_mapping == f"environment/Dockerfile:2: {what}"


@pytest.mark.parametrize("lines", ["USER root", "RUN apt-get install -y x", "RUN chown root:root /x"])
def test_needs_no_uid_mapping(plan, lines):
    assert plan(FROM + lines).needs_uid_mapping is None


SAME = FROM + "ENV A=1\nRUN echo $A\nCOPY a.txt /x\nLABEL a=b\n"


@pytest.mark.parametrize(
    "other",
    [
        "# comment\nARG TAG=12\nFROM debian:$TAG\n\nENV A 1\nRUN    echo $A\nCOPY ./a.txt /x\n",
        SAME.replace("debian:12", "debian:bookworm"),
        SAME + "EXPOSE 80\n",
    ],
)
def test_equal_keys(plan, other):
    assert plan(other, {"a.txt": "a"}).key == plan(SAME, {"a.txt": "a"}).key


@pytest.mark.parametrize(
    ("dockerfile", "files", "all_root"),
    [
        (SAME.replace("A=1", "A=2"), {"a.txt": "a"}, False),
        (SAME.replace("echo", "echo  x"), {"a.txt": "a"}, False),
        (SAME.replace("/x", "/y"), {"a.txt": "a"}, False),
        (SAME + "CMD z", {"a.txt": "a"}, False),
        (SAME + "WORKDIR /a", {"a.txt": "a"}, False),
        (SAME, {"a.txt": "b"}, False),
        (SAME, {"a.txt": "a"}, True),
    ],
)
def test_other_keys(plan, dockerfile, files, all_root):
    assert plan(dockerfile, files, all_root).key != plan(SAME, {"a.txt": "a"}).key


def test_key_ignores_files_that_are_not_used(plan):
    assert plan(SAME, {"a.txt": "a", "other": "o"}).key == plan(SAME, {"a.txt": "a"}).key


def test_bare_from_is_its_base(plan):
    made = plan(FROM + "LABEL a=b")
    assert made.key == base_plan(made.base, all_root=False).key


def test_step_kinds(plan):
    made = plan(FROM + "WORKDIR /a\nRUN x\nCOPY a.txt .", {"a.txt": "a"})
    assert [type(step) for step in made.steps] == [WorkdirStep, RunStep, CopyStep]
