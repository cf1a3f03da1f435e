"""The linters: what they are given, what they say, limits, and the cache that several runs share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_otval.checks import linters
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.lint import DOCKER_RULES, SH_RULES, SHELL_RULES, docker_texts, lint_checks, shell_texts
from pytest_otval.checks.linters import Linter, Remark, hadolint, shellcheck
from pytest_otval.core import Conclusion, Severity
from pytest_otval.task.load import load_task
from selftests.checks.conftest import write_task

SPACELESS = '#!/bin/bash\nif [ $a="b" ]; then true; fi\n'


@pytest.fixture
def context(tmp_path):
    def make(edits):
        write_task(tmp_path / "task", edits)
        return CheckContext(load_task(tmp_path / "task", "data"))

    return make


def found(context, check):
    return [(one.path, one.line, one.severity, one.message.split(":")[0]) for one in lint_checks()[check](context)]


def test_a_remark_has_code_line_and_message():
    assert shellcheck(["SC2077"]).remarks([SPACELESS, "#!/bin/sh\n"]) == [
        (Remark("SC2077", 2, "You need spaces around the comparison operator."),),
        (),
    ]


def test_only_the_asked_codes_are_told():
    assert shellcheck(["SC2034"]).remarks([SPACELESS]) == [()]


def test_a_text_is_asked_about_once(monkeypatch):
    linter = shellcheck(["SC2077"])
    runs = []
    monkeypatch.setattr(linters, "_limited", lambda command, home, texts: runs.append(texts) or '{"comments": []}')
    assert linter.remarks(["a", "b", "a"]) == [(), (), ()]
    assert linter.remarks(["b", "c"]) == [(), ()]
    assert runs == [2, 1]


def test_answers_are_kept_in_a_folder(tmp_path, monkeypatch):
    first = shellcheck(["SC2077"], tmp_path / "lint")
    said = first.remarks([SPACELESS])
    assert len(list((tmp_path / "lint").iterdir())) == 1
    monkeypatch.setattr(linters, "_limited", None)
    assert shellcheck(["SC2077"], tmp_path / "lint").remarks([SPACELESS]) == said


def test_a_torn_or_foreign_line_of_the_cache_is_passed_over(tmp_path):
    linter = shellcheck(["SC2077"], tmp_path)
    said = linter.remarks([SPACELESS])
    kept = next(tmp_path.iterdir())
    kept.write_bytes(b'{"digest": "a", "rem\n[]\n\xff\n{"digest": "b", "remarks": [[1]]}\n' + kept.read_bytes())
    assert shellcheck(["SC2077"], tmp_path).remarks([SPACELESS]) == said


def test_other_codes_and_versions_have_answers_of_their_own(tmp_path):
    linter, other = shellcheck(["SC2077"], tmp_path), shellcheck(["SC2034"], tmp_path)
    other.__dict__["version"] = linter.version
    linter.remarks([SPACELESS])
    assert other.remarks([SPACELESS]) == [()]


def test_a_text_without_an_answer_costs_the_others_nothing(monkeypatch):
    real = linters._limited

    def limited(command, home, texts):
        if any("hang" in Path(path).read_text() for path in command if path.startswith(home)):
            return None
        return real(command, home, texts)

    monkeypatch.setattr(linters, "_limited", limited)
    said = shellcheck(["SC2077"]).remarks([SPACELESS, "hang", SPACELESS, "#!/bin/sh\n"])
    assert [one if one is None else len(one) for one in said] == [1, None, 1, 0]


def test_processor_time_is_limited(monkeypatch):
    monkeypatch.setattr(linters, "_SECONDS", 1)
    monkeypatch.setattr(linters, "_SECONDS_A_TEXT", 0)
    assert shellcheck(["SC2077"]).remarks(["#!/bin/bash\n" + "$((" * 300 + "\n"]) == [None]


@pytest.mark.parametrize("output", ["", "x", "{}", '{"comments": 1}', "3"])
def test_output_that_is_no_answer(monkeypatch, output):
    monkeypatch.setattr(linters, "_limited", lambda *_: output)
    assert shellcheck(["SC2077"]).remarks(["a"]) == [None]


def test_a_linter_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(linters.shutil, "which", lambda name: None)
    with pytest.raises(Conclusion, match="no-such-linter is not on this machine") as caught:
        Linter("no-such-linter", (), ".x").remarks(["a"])
    assert caught.value.reason == "missing-tool"


def test_settings_of_the_user_do_not_count(tmp_path, monkeypatch):
    (tmp_path / ".hadolint.yaml").write_text("ignored: [DL3021]\n")
    (tmp_path / ".shellcheckrc").write_text("disable=SC2077\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELLCHECK_OPTS", "--exclude=SC2077")
    monkeypatch.setenv("HADOLINT_IGNORE", "DL3021")
    assert [one.code for one in hadolint().remarks(["FROM debian:12\nWORKDIR /\nCOPY a b c\n"])[0]] == ["DL3021"]
    assert [one.code for one in shellcheck(["SC2077"]).remarks([SPACELESS])[0]] == ["SC2077"]


def test_a_script_cannot_include_another_text(tmp_path):
    other = tmp_path / "secret.sh"
    other.write_text(SPACELESS)
    texts = [f"#!/bin/bash\n. {other}\n", "#!/bin/bash\n. ./0.sh\n. 0.sh\n", SPACELESS]
    assert [len(one or ()) for one in shellcheck(["SC2077"]).remarks(texts)] == [0, 0, 1]


def test_scripts_are_told_with_their_lines(context):
    edits = {"tests/test.sh": "echo\n" + SPACELESS, "solution/solve.sh": SPACELESS}
    assert found(context(edits), "lint-shell") == [
        ("tests/test.sh", 3, Severity.ERROR, "SC2077"),
        ("solution/solve.sh", 2, Severity.ERROR, "SC2077"),
    ]


def test_runs_are_told_with_the_lines_of_the_dockerfile(context):
    dockerfile = "FROM debian:12\nRUN true && \\\n  [ $a=b ]\n\nRUN source /x\nRUN <<EOF\ntrue\n[ $a=b ]\nEOF\n"
    assert found(context({"environment/Dockerfile": dockerfile}), "lint-shell") == [
        ("environment/Dockerfile", 3, Severity.ERROR, "SC2077"),
        ("environment/Dockerfile", 5, Severity.WARNING, "SC3046"),
        ("environment/Dockerfile", 8, Severity.ERROR, "SC2077"),
    ]


@pytest.mark.parametrize(
    "dockerfile",
    [
        'FROM debian:12\nSHELL ["/bin/bash", "-c"]\nRUN source /x\n',
        "FROM fedora:41\nRUN source /x\n",
        "FROM python:3.12-alpine\nRUN source /x\n",
        "FROM debian:12\nRUN bash -c 'source /x'\n",
        'FROM debian:12 AS one\nSHELL ["/bin/bash", "-c"]\nFROM one\nRUN [[ -e /x ]]\n',
    ],
)
def test_bash_is_allowed_where_no_dash_runs_it(context, dockerfile):
    assert found(context({"environment/Dockerfile": dockerfile}), "lint-shell") == []


def test_instructions_are_told_with_their_lines(context):
    dockerfile = "FROM debian:12\nWORKDIR /\nRUN a && \\\n  b\nCOPY a b c\nCMD x\nCMD y\n"
    task = context({"environment/Dockerfile": dockerfile, "environment/a": "", "environment/b": ""})
    assert found(task, "lint-dockerfile") == [
        ("environment/Dockerfile", 5, Severity.WARNING, "DL3021"),
        ("environment/Dockerfile", 7, Severity.INFO, "DL4003"),
    ]
    assert next(docker_texts(task)).text.count("\n") == dockerfile.count("\n")


def test_what_would_not_be_built_is_no_error(context):
    edits = {
        "task.toml": 'schema_version = "1.4"\n[environment]\ndocker_image = "x:1"\n',
        "environment/Dockerfile": "FROM debian:12\nRUN [ $a=b ]\n",
    }
    assert [severity for _, _, severity, _ in found(context(edits), "lint-shell")] == [Severity.WARNING]


def test_the_sound_task_has_no_remark(context):
    task = context({})
    assert [list(check(task)) for check in lint_checks().values()] == [[], []]


def test_no_answer_is_said(context, monkeypatch):
    monkeypatch.setattr(linters, "_limited", lambda *_: None)
    task = context({"environment/Dockerfile": "FROM debian:12\nCMD a\nCMD b\n"})
    said = [one for check in lint_checks().values() for one in check(task)]
    assert {(one.severity, "gave no answer" in one.message) for one in said} == {(Severity.INFO, True)}


SHELL_EXAMPLES = {
    "SC2050": 'if [[ "a" == "b" ]]; then true; fi',
    "SC2157": '[ -n "text" ] && true',
    "SC2078": '[[ "text" ]] && true',
    "SC2055": 'if [ "$a" != x -o "$a" != y ]; then true; fi',
    "SC2070": "[ -n $a ] && true",
    "SC2077": '[ $a="b" ] && true',
    "SC2071": '[[ "$a" > 10 ]] && true',
    "SC2072": '[ "$a" -gt 1.5 ] && true',
    "SC2170": "[ word -eq 1 ] && true",
    "SC2319": "pytest\nif [ $? -ne 0 ]; then exit $?; fi",
    "SC2320": "pytest\necho done\nexit $?",
    "SC2093": "exec pytest\nls",
    "SC2194": "case word in word) true ;; esac",
    "SC2259": "echo a |\n  cat < file",
    "SC2261": "echo a > one > two",
    "SC2281": "$name=1",
    "SC2283": "name = 1",
    "SC2242": 'exit "no"',
    "SC2104": "f() { break; }\nf",
}
SH_EXAMPLES = {
    "SC3001": "cat <(echo a)",
    "SC3010": "[[ -e x ]] && true",
    "SC3011": "cat <<< a",
    "SC3014": '[ "$a" == b ] && true',
    "SC3020": "echo a &> file",
    "SC3030": 'a=(1 2)\necho "${a[0]}"',
    "SC3040": "set -o pipefail",
    "SC3046": "source ./x",
}
DOCKER_EXAMPLES = {
    "DL3021": "COPY a b c",
    "DL3022": "COPY --from=nowhere /a /b",
    "DL3023": "FROM debian:12 AS x\nCOPY --from=x /a /b",
    "DL3024": "FROM debian:12 AS x\nFROM debian:12 AS x",
    "DL3043": "ONBUILD FROM debian:12",
    "DL3044": "ENV A=1 B=$A",
    "DL4003": "CMD a\nCMD b",
    "DL4004": 'ENTRYPOINT ["a"]\nENTRYPOINT ["b"]',
}


def test_there_is_an_example_of_every_rule():
    assert (SHELL_EXAMPLES.keys(), SH_EXAMPLES.keys()) == (SHELL_RULES.keys(), SH_RULES.keys())
    assert DOCKER_EXAMPLES.keys() == DOCKER_RULES.keys()


@pytest.mark.parametrize("code", [*SHELL_EXAMPLES, *SH_EXAMPLES])
def test_scripts_that_a_rule_speaks_of_are_asked_about(context, code):
    shell, example = ("sh", SH_EXAMPLES[code]) if code in SH_EXAMPLES else ("bash", SHELL_EXAMPLES[code])
    told = found(context({"solution/solve.sh": f"#!/bin/{shell}\n{example}\n"}), "lint-shell")
    assert code in {said for path, _, _, said in told if path == "solution/solve.sh"}


@pytest.mark.parametrize("code", DOCKER_EXAMPLES)
def test_dockerfiles_that_a_rule_speaks_of_are_asked_about(context, code):
    task = context({"environment/Dockerfile": f"FROM debian:12\n{DOCKER_EXAMPLES[code]}\n"})
    if code == "DL3043":  # our parser refuses it, and docker-parse says so
        assert list(docker_texts(task)) == []
    else:
        assert code in {said for _, _, _, said in found(task, "lint-dockerfile")}


def test_what_no_rule_speaks_of_is_not_asked_about(context):
    edits = {
        "tests/test.sh": "#!/bin/bash\npytest > log || true\n",
        "environment/Dockerfile": "FROM fedora:41\nRUN dnf install -y git || true\nRUN curl x.org | sh -s -- -y\n",
    }
    task = context(edits)
    assert (list(shell_texts(task)), list(docker_texts(task))) == ([], [])


@pytest.mark.parametrize(
    "raw", [b"\0", b"\xff\xfe", b"#!/bin/bash\n\xe9\n", b"#!/bin/bash\n" + b"$(" * 500, b"`" * 5000]
)
def test_no_content_makes_it_raise(context, raw):
    task = context({"tests/test.sh": raw, "environment/Dockerfile": b"FROM debian:12\nRUN " + raw + b"\n"})
    for check in lint_checks().values():
        list(check(task))


def test_hostile_names_stay_outside(context):
    task = context({"solution/solve.sh": ("link", "../tests/test.sh"), "tests/-o \n$(x).sh": SPACELESS})
    assert found(task, "lint-shell") == []


def test_every_rule_has_a_reason():
    for rules in (SHELL_RULES, SH_RULES, DOCKER_RULES):
        assert all(reason and "\n" not in reason for _, reason in rules.values())
    assert json.dumps(sorted({*SHELL_RULES, *SH_RULES, *DOCKER_RULES}))
