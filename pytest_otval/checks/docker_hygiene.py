"""Dockerfiles: what makes a build differ by day or machine, fail, or say that it worked where it did not."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from pytest_otval.checks.bash_syntax import shell_error
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_files import URL, delivered
from pytest_otval.checks.docker_runs import UNKNOWN, Command, join, word_set
from pytest_otval.checks.docker_view import agent_image, expand, images
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity
from pytest_otval.task.dockerfile import Instruction

_STAGE_FLAG = re.compile(r"--from=(.+)")
_AMD64 = re.compile(
    r"(?:https?|ftp)://\S{0,300}(?:x86_64|x86-64|amd64|linux-?x64|linux64)(?![a-z0-9])[^\s\"';|&]{0,100}", re.I
)
_OTHER_ARCH = re.compile(
    r"aarch64|arm64|armv7|TARGETARCH|TARGETPLATFORM|BUILDARCH|\buname\b|dpkg\s+--print-architecture|\$\(arch\)|`arch`"
)
_COVERED = ("/tests", "/solution", "/oracle", "/logs/verifier")
"""Folders that belong to the harness: it puts its own files there for the verifier or for the reference solution."""
_IDLE = word_set(
    "bash sh ash zsh sleep tail true cat python python3 ipython node irb psql sqlite3 tini dumb-init env su exec"
)
_BUILDERS = re.compile(
    r"(?:(?:apt-get|apt|apk|yum|dnf|pip[\d.]*|uv|npm|yarn|pnpm|bundle|gem|composer|conda|mamba|opam|luarocks|cpanm)"
    r" .*\b(?:install|add|ci|sync|update)\b"
    r"|(?:yarn|pnpm|npm|bun) (?:install|ci|run build|build)\b|(?:yarn|pnpm)$|make\b|cmake\b|ninja\b|(?:\./)?configure\b"
    r"|cargo (?:build|fetch|test|check|install)\b|go (?:build|mod|get|install|test)\b|dotnet (?:restore|build)\b"
    r"|(?:\./)?(?:mvnw?|gradlew?)\b|(?:stack|cabal|dune|mix|sbt|lein|rebar3) \w"
    r"|python[\d.]* (?:setup\.py|-m (?:pip|build))"
    r"|git (?:clone|apply|fetch)\b|patch\b|curl\b|wget\b|tar\b|unzip\b)"
)


@check(
    "docker-base-unpinned",
    severity=Severity.WARNING,
    family="docker",
    explains="`latest`, or no tag at all, is another image some day: the task can change or stop building by itself.",
    fix="name a version: image:1.2, or image@sha256:...",
)
def base_unpinned(context: CheckContext) -> Iterator[Place]:
    """Look for images of FROM, COPY --from and docker_image without a tag or with ``latest``."""
    for image in images(context):
        names = {image.names(stage) for stage in range(len(image.stages))}
        for stage, instruction in image.instructions:
            if instruction.kind == "FROM":
                base = image.base(stage) if image.parent(stage) is None else ""
            else:
                found = next((match for flag in instruction.flags if (match := _STAGE_FLAG.fullmatch(flag))), None)
                base = expand(found[1], image.arguments) if found and instruction.kind == "COPY" else ""
            if base and base.lower() not in names and not base.isdigit() and _moves(base):
                yield Place(image.path, f"{instruction.kind} takes {base}, which names no version", instruction.line)
    config = context.task.config
    if config is not None and (name := config.environment.docker_image) and _moves(name):
        line = next((i for i, text in enumerate(context.task.source.split("\n"), 1) if name in text), None)
        yield Place("task.toml", f"docker_image is {name}, which names no version", line)


def _moves(image: str) -> bool:
    """Whether an image is named without a version; what is filled in at build time is not known."""
    if image == "scratch" or "@" in image or UNKNOWN in image or "{" in image:
        return False
    tag = posixpath.basename(image).partition(":")[2]
    return tag in ("", "latest")


@check(
    "docker-platform-pinned",
    severity=Severity.WARNING,
    family="docker",
    explains="Elsewhere than on this platform the image runs in an emulator, or not at all.",
    fix="drop --platform, or say in task.toml or README.md why the task needs it",
)
def platform_pinned(context: CheckContext) -> Iterator[Place]:
    """Look for ``FROM --platform`` with a literal platform."""
    for image in images(context):
        for stage in sorted(image.needed):
            first = image.stages[stage][0]
            for flag in first.flags:
                if flag.startswith("--platform=") and "$" not in flag:
                    yield Place(image.path, f"FROM {flag}", first.line)


@check(
    "docker-one-architecture",
    severity=Severity.INFO,
    family="docker",
    explains="The file is for x86-64 alone: on ARM the image builds and its programs do not start.",
    fix='choose it by architecture: case "$(uname -m)" in ...',
)
def one_architecture(context: CheckContext) -> Iterator[Place]:
    """Look for downloads of x86-64 files in Dockerfiles that never ask for the architecture."""
    for image in images(context):
        texts = [instruction.original for _, instruction in image.instructions]
        if any(_OTHER_ARCH.search(text) for text in texts):
            continue
        for run in image.runs.values():
            found = _AMD64.search(run.text)
            if found is not None:
                line = run.first_line + run.text.count("\n", 0, found.start())
                yield Place(image.path, f"downloads {posixpath.basename(found[0])[:80]}, which is for x86-64", line)
                break


@check(
    "docker-harness-folder",
    severity=Severity.WARNING,
    family="docker",
    explains="The agent can read and change what is in its image, and the verifier may see other files there.",
    fix="leave the folder to the harness, which fills it when the verifier or the solution starts",
)
def harness_folder(context: CheckContext) -> Iterator[Place]:
    """Look for files that a COPY puts into /tests, /solution or /logs/verifier of the agent's image."""
    image = agent_image(context)
    if image is None:
        return
    for instruction in image.final:
        if instruction.kind in ("COPY", "ADD"):
            place = join(image.folders[instruction.line], expand(instruction.args[-1], {}))
            for covered in _COVERED:
                if place == covered or place.startswith(f"{covered}/"):
                    yield Place(
                        image.path, f"{instruction.kind} fills {covered} of the agent's image", instruction.line
                    )


@check(
    "docker-entrypoint",
    severity=Severity.INFO,
    family="docker",
    explains="The harness starts a command of its own: a service that only ENTRYPOINT or CMD starts never runs.",
    fix="start it in the instruction, in a health check, or say in the instruction that it is not running",
)
def entrypoint(context: CheckContext) -> Iterator[Place]:
    """Look for an ENTRYPOINT or CMD that starts more than a shell or a sleep."""
    image = agent_image(context)
    if image is None:
        return
    last: dict[str, Instruction] = {one.kind: one for one in image.final if one.kind in ("ENTRYPOINT", "CMD")}
    one = last.get("ENTRYPOINT") or last.get("CMD")
    words = _started(one) if one is not None else []
    if one is None or not words:
        return
    name = posixpath.basename(words[0])
    if name not in _IDLE or (len(words) > 1 and re.fullmatch(r"python[\d.]*|node", name)):
        yield Place(image.path, f"{one.kind} starts {' '.join(words)[:60]}, the harness does not", one.line)


def _started(one: Instruction) -> list[str]:
    words = [*one.args] if not one.shell_form else one.args[0].split() if one.args else []
    if words[:1] and posixpath.basename(words[0]) in ("sh", "bash") and words[1:2] in (["-c"], ["-lc"]):
        words = " ".join(words[2:]).split()
    if words[:1] == ["exec"]:
        words = words[1:]
    return words


@check(
    "docker-run-not-executable",
    severity=Severity.ERROR,
    family="docker",
    explains="The file has no execute permission in the context, so RUN ends with status 126.",
    fix="chmod +x the file in the task, or run it by its interpreter: RUN bash FILE",
)
def run_not_executable(context: CheckContext) -> Iterator[Place]:
    """Look for RUN of a copied file that is not executable and that no chmod made so."""
    image = agent_image(context)
    if image is None:
        return
    plain = {one.place: one for one in delivered(context) if not one.executable}
    final = {instruction.line for instruction in image.final}
    changed: set[str] = set()
    for line, run in sorted(image.runs.items()) if plain else ():
        for command in run.commands if line in final else ():
            if command.name in ("chmod", "install", "find", "xargs", "cp", "mv", "ln"):
                changed.update(posixpath.basename(word) for word in command.words[1:])
            place = join(command.folder, command.words[0]) if command.words and "/" in command.words[0] else ""
            one = plain.get(place)
            if one is None or one.line > line or not command.certain or command.ignored:
                continue
            # A pattern, -R, a folder or a name that is not known may mean any file.
            many = any(UNKNOWN in word or re.search(r"[*?]|^-\w*R|^\.?$", word) for word in changed)
            if not many and not changed & {posixpath.basename(place), posixpath.basename(posixpath.dirname(place))}:
                message = f"RUN of {place}, and {one.path} is not executable"
                yield Place(image.path, message, command.line, image.definition.worst)
                return


@check(
    "docker-run-syntax",
    severity=Severity.ERROR,
    family="docker",
    explains="The shell refuses what RUN hands to it, so the build ends there.",
    fix="correct the command: bash -n shows the place",
)
def run_syntax(context: CheckContext) -> Iterator[Place]:
    """Parse what RUN hands to a shell, by bash where our own parser does not understand it."""
    for image in images(context):
        needed = image.needed
        if context.windows or any(instruction.kind == "SHELL" for _, instruction in image.instructions):
            continue
        for stage, instruction in image.instructions:
            run = image.runs.get(instruction.line)
            if run is None or run.body is not None or stage not in needed or not run.text:
                continue
            error = shell_error(run.text)
            if error is not None:
                # At the end of the text bash tells the line below.
                line = run.first_line + min((error[0] or 1) - 1, run.text.count("\n"))
                yield Place(image.path, f"no shell reads it: {error[1]}", line, image.definition.worst)


@check(
    "docker-error-hidden",
    severity=Severity.INFO,
    family="docker",
    explains="Where this step fails the image is built all the same, and the task is another one.",
    fix="drop `|| true`, or test for what may be missing",
)
def error_hidden(context: CheckContext) -> Iterator[Place]:
    """Look for installations, builds and downloads whose failure a RUN ignores."""
    for image in images(context):
        for run in image.runs.values():
            hidden = next(filter(hides_error, run.commands), None)
            if hidden is not None:
                shown = " ".join(hidden.words).replace(UNKNOWN, "...")[:50]
                yield Place(image.path, f"goes on where `{shown}` fails", hidden.line)


def hides_error(command: Command) -> bool:
    """Whether a command installs, builds or downloads something, and the build goes on where it fails."""
    words = " ".join(command.words)
    return command.ignored and command.certain and bool(_BUILDERS.match(words)) and "--version" not in words


@check(
    "docker-add-url",
    severity=Severity.WARNING,
    family="docker",
    explains="What the address gives can change or vanish, and nothing notices.",
    fix="give ADD --checksum=sha256:..., or ship the file",
)
def add_url(context: CheckContext) -> Iterator[Place]:
    """Look for ADD of an address without a checksum; a commit behind ``#`` fixes a git address."""
    for image in images(context):
        for _, instruction in image.instructions:
            if instruction.kind != "ADD" or any(flag.startswith("--checksum") for flag in instruction.flags):
                continue
            for word in instruction.args[:-1]:
                if URL.match(word.strip("\"'")) and not re.search(r"#[0-9a-f]{7,40}\b|\$", word):
                    yield Place(image.path, f"ADD of {word[:80]} without a checksum", instruction.line)
