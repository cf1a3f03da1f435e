"""What of a task in Terminal-Bench's old format goes where: into the image, into /tests, into the solution."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_otval.sources.adapters.base import Reason, RefusalError
from pytest_otval.sources.adapters.compose import FILE
from pytest_otval.sources.adapters.fields import check_text
from pytest_otval.sources.adapters.yamls import load_yaml
from pytest_otval.sources.files import File, Files
from pytest_otval.task.dockerfile import DockerfileError, parse_dockerfile

TASK_YAML = "task.yaml"
RUN_TESTS = "run-tests.sh"
SOLUTIONS = ("solution.sh", "solution.yaml")

_NOT_OF_IMAGE = (TASK_YAML, RUN_TESTS, FILE, *SOLUTIONS)
"""Files of a task that its image has no use for. All others are the build's, since its context is the whole task."""
_TAKEN = ("tests/test.sh", "tests/setup.sh", "tests/Dockerfile", f"tests/{FILE}", "tests/ot-verifier-runtime.json")
"""Names in tests/ that would be run, built or read by themselves in the new format."""


def _file(files: Files, path: str, reason: Reason = "unreadable") -> File:
    if path not in files:
        raise RefusalError(reason, f"has no {path}")
    return files[path]


def text_file(files: Files, path: str) -> str:
    """Return a text of the task. Raises RefusalError."""
    try:
        content = _file(files, path).content.decode()
    except UnicodeDecodeError:
        raise RefusalError("unreadable", f"{path} is no UTF-8") from None
    check_text(content, path, controls=True)
    return content


def image_files(files: Files) -> Files:
    """Return the build context. A Dockerfile that copies tests or the solution does not build, and is refused."""
    for source in _copied(text_file(files, "Dockerfile")):
        plain = source.strip("\"'").removeprefix("./").rstrip("/")
        if plain in ("tests", *_NOT_OF_IMAGE) or plain.startswith("tests/"):
            raise RefusalError("unsupported-tests", f"the Dockerfile copies {plain}, which no agent may see")
    return {path: file for path, file in files.items() if path not in _NOT_OF_IMAGE and not path.startswith("tests/")}


def _copied(dockerfile: str) -> Iterator[str]:
    """Yield what COPY and ADD take from the build context. Raises RefusalError."""
    try:
        parsed = parse_dockerfile(dockerfile)
    except DockerfileError as error:
        raise RefusalError("unreadable", f"Dockerfile: {error}") from None
    for instruction in parsed.instructions:
        if instruction.kind in ("COPY", "ADD") and not any(flag.startswith("--from=") for flag in instruction.flags):
            yield from instruction.args[:-1]


def test_files(files: Files) -> Files:
    """Return the files of /tests, by their paths in it: tests/ and the script beside it. Raises RefusalError."""
    for path in _TAKEN:
        if path in files:
            raise RefusalError("unsupported-tests", f"has {path}, which would be run or built by itself")
    run_tests = _file(files, RUN_TESTS, "no-tests")
    if files.get(f"tests/{RUN_TESTS}", run_tests).content != run_tests.content:
        raise RefusalError("unsupported-tests", f"has two different {RUN_TESTS}, beside tests/ and in it")
    _require_named(text_file(files, RUN_TESTS), files)
    own = {path.removeprefix("tests/"): file for path, file in files.items() if path.startswith("tests/")}
    return {**own, RUN_TESTS: run_tests}


def _require_named(script: str, files: Files) -> None:
    """Refuse a script that names files of tests/ which the source lacks."""
    for word in script.replace('"', " ").replace("'", " ").split():
        for prefix in ("$TEST_DIR/", "${TEST_DIR}/", "/tests/"):
            path = word.removeprefix(prefix)
            if path != word and path.endswith((".py", ".sh")) and path.isprintable() and not set(path) & set("*?$`;"):
                known = f"tests/{path}" in files or path == RUN_TESTS
                if not known and f"> {word}" not in script and f">{word}" not in script:
                    raise RefusalError("no-tests", f"{RUN_TESTS} runs {word[:80]}, which the source does not have")


def solution(files: Files) -> str:
    """Return solve.sh, which is solution.sh, or the commands of solution.yaml one after the other."""
    if SOLUTIONS[0] in files:
        script = text_file(files, SOLUTIONS[0])
        return script if script.startswith("#!") else f"#!/bin/bash\n{script}"
    if SOLUTIONS[1] in files:
        return _script(text_file(files, SOLUTIONS[1]))
    raise RefusalError("no-solution", f"has neither {' nor '.join(SOLUTIONS)}")


def _script(source: str) -> str:
    """Return a script of the commands of solution.yaml; those that are keys for a terminal are refused."""
    commands = load_yaml(source, "solution.yaml", "no-solution")
    if not isinstance(commands, list) or not commands:
        raise RefusalError("no-solution", "solution.yaml holds no list of commands")
    lines: list[str] = []
    for number, command in enumerate(commands, 1):
        plain = isinstance(command, dict) and all(command.get(key, True) is True for key in ("append_enter", "block"))
        typed = command.get("command") if plain else None
        if not isinstance(typed, str):
            why = f"solution.yaml: command {number} is typed into a program, which a script cannot do"
            raise RefusalError("no-solution", why)
        check_text(typed, "solution.yaml")
        lines.append(typed)
    # One shell for all of them, as in a terminal: a folder or a variable set by one is there for the next.
    return "#!/bin/bash\n" + "".join(f"{line}\n" for line in lines)
