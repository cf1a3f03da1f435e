"""Packages that a Dockerfile installs: lists that are gone, questions nobody answers, versions that move or vanish."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_runs import UNKNOWN, Command, word_set
from pytest_otval.checks.docker_view import Image, images
from pytest_otval.checks.registry import Place, check
from pytest_otval.core import Severity

_APT = ("apt-get", "apt")
_APT_VALUE_OPTIONS = frozenset(("-o", "--option", "-t", "--target-release", "--default-release", "-c", "--config-file"))
_NO_LISTS = re.compile(
    r"(?:(?:docker\.io|public\.ecr\.aws/docker|mirror\.gcr\.io)/)?(?:library/)?"
    r"(?:(?:debian|ubuntu)(?:[:@].*)?|(?:python|node|ruby|php|golang|rust|perl):(?!.*alpine).*slim.*)"
)
"""Official images without package lists and with nothing but a language on top of the system."""
_KNOWN_QUIET = word_set(
    "echo printf rm mkdir ln cp mv cd export set true : chmod chown pip pip3 curl wget tar gpg tee cat sed grep awk"
    " install dpkg git npm locale-gen update-locale useradd groupadd test [ ls find touch update-alternatives which"
    " unzip gunzip apt-mark apt-key corepack cargo rustup go make cmake update-ca-certificates ldconfig"
)
"""Programs that bring no package lists."""
_IN_BASE = word_set(
    "bash coreutils dpkg apt tar gzip sed grep findutils diffutils passwd login util-linux debianutils hostname mount"
    " libc6 libc-bin zlib1g perl-base base-files ncurses-base tzdata"
)
_SURE_YES = re.compile(
    r"-[a-z]*y[a-z]*|--yes|--assume-yes|-[a-z]*qq[a-z]*|-q=2|--force-yes|--assume-no|-[a-z]*s|--download-only|-[a-z]*d"
)


@check(
    "docker-apt-no-lists",
    severity=Severity.ERROR,
    family="docker",
    explains="Without package lists apt finds no package: the build ends with `Unable to locate package`.",
    fix="run apt-get update in the same RUN, in front of the installation",
)
def apt_no_lists(context: CheckContext) -> Iterator[Place]:
    """Look for installations by apt where the package lists are surely absent."""
    for image in images(context):
        for stage in image.needed:
            if image.parent(stage) is None and _NO_LISTS.fullmatch(image.base(stage)):
                yield from _without_lists(image, stage)


@dataclass(slots=True)
class _Lists:
    present: bool = False
    installed: set[str] = field(default_factory=set)


def _without_lists(image: Image, stage: int) -> Iterator[Place]:
    state = _Lists()
    for instruction in image.stages[stage]:
        run = image.runs.get(instruction.line)
        if instruction.kind in ("COPY", "ADD", "FROM", "ENV", "WORKDIR", "ARG", "LABEL", "USER", "CMD"):
            continue
        if run is None or run.body is None:
            state.present = state.present or instruction.kind in ("RUN", "SHELL")
            continue
        for command in run.commands:
            packages = [word.partition("=")[0] for word in _installs(command)]
            missing = [name for name in packages if name not in state.installed and name not in _IN_BASE]
            if missing and not state.present and command.certain and not command.ignored:
                message = f"apt has no package lists here, so it cannot install {missing[0]}"
                yield Place(image.path, message, command.line, image.definition.worst)
                return
            state.installed.update(packages)
            state.present = _lists_after(command, state.present)


def _lists_after(command: Command, present: bool) -> bool:
    """Whether there may be package lists after a command."""
    if command.name in _APT:
        return present or "update" in command.words
    if command.name == "rm" and any(word.startswith("/var/lib/apt/lists") for word in command.words):
        return not command.certain and present
    return present or not (not command.words or command.name in _KNOWN_QUIET)


def _installs(command: Command) -> Sequence[str]:
    """Return the packages that an apt command installs by name; none where one is a file or not known."""
    if command.name not in _APT or "install" not in command.words:
        return ()
    words = _plain(command.words[command.words.index("install") + 1 :], _APT_VALUE_OPTIONS)
    local = any(UNKNOWN in word or word.startswith((".", "/")) or word.endswith(".deb") for word in words)
    return () if local else words


def _plain(words: Sequence[str], with_value: frozenset[str]) -> list[str]:
    """Return the words that are no options and no values of them."""
    found, skip = list[str](), False
    for word in words:
        if not skip and not word.startswith("-"):
            found.append(word)
        skip = not skip and word in with_value
    return found


@check(
    "docker-apt-asks",
    severity=Severity.WARNING,
    family="docker",
    explains="Where apt wants more than the named packages it asks, gets no answer, and the build ends.",
    fix="write apt-get install -y",
)
def apt_asks(context: CheckContext) -> Iterator[Place]:
    """Look for apt-get install without -y, where nothing else says yes."""
    for image in images(context):
        for run in image.runs.values():
            if "Assume-Yes" in run.text or re.search(r"\byes\b[^|]*\|", run.text):
                continue
            for command in run.commands:
                sure = any(_SURE_YES.fullmatch(word) or UNKNOWN in word for word in command.words[1:])
                if _installs(command) and not sure:
                    yield Place(image.path, "apt install without -y", command.line)


@check(
    "docker-apt-pin",
    severity=Severity.WARNING,
    family="docker",
    explains="Mirrors keep one version of a package: when it is replaced the build ends.",
    fix="drop the version, or install from a snapshot of the archive",
)
def apt_pin(context: CheckContext) -> Iterator[Place]:
    """Look for exact versions of packages from mirrors that move on."""
    for image in images(context):
        texts = [instruction.original for _, instruction in image.instructions]
        if any("snapshot.debian.org" in text or "snapshot.ubuntu.com" in text for text in texts):
            continue
        for command in image.commands:
            pinned = [word for word in _installs(command) if re.search(r"=\d", word) and "*" not in word]
            if pinned:
                yield Place(image.path, f"apt installs {pinned[0]} and no other version", command.line)


@check(
    "docker-version-redirected",
    severity=Severity.WARNING,
    family="docker",
    explains="To a shell `>` and `<` are redirects: NAME>=1.2 installs any version and writes a file named `=1.2`.",
    fix="quote it: pip install 'NAME>=1.2'",
)
def version_redirected(context: CheckContext) -> Iterator[Place]:
    """Look for unquoted bounds of versions; an error where the shell would have to read a file of that name."""
    for image in images(context):
        for run in image.runs.values():
            if not re.search(r"\b(?:pip[\d.]*|uv) .{0,60}\binstall\b", run.text):
                continue
            # Of the same length, so that lines can be counted.
            text = _QUOTED.sub(lambda quoted: "'" * len(quoted[0]), run.text)
            found = _UNQUOTED.search(text)
            if found is not None:
                reads = found[2] == "<"
                said = f"the shell {'reads' if reads else 'writes'} a file {found[3]}"
                severity = image.definition.worst if reads and "||" not in text else Severity.WARNING
                line = run.first_line + text.count("\n", 0, found.start())
                yield Place(image.path, f"{found[0]} without quotes: {said}", line, severity)


_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_UNQUOTED = re.compile(r"(?<=\s)([A-Za-z][\w.\[\]-]*)([<>])(=?\d[\w.]*)(?=[\s,]|$)")


@check(
    "docker-packages-unpinned",
    severity=Severity.INFO,
    family="docker",
    explains="Tomorrow's version of a package may break the task, or make another one of it.",
    fix="name versions: pip install NAME==1.2, npm install NAME@1.2, cargo install NAME --version 1.2",
)
def packages_unpinned(context: CheckContext) -> Iterator[Place]:
    """Look for language packages without a version, once for each Dockerfile."""
    for image in images(context):
        found = [(command, name) for command in image.commands for name in _unpinned(command)]
        if found:
            names = list(dict.fromkeys(name for _, name in found))
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            yield Place(image.path, f"no exact version: {', '.join(names[:4])}{more}", found[0][0].line)


_PIP_VALUE_OPTIONS = word_set(
    "-r --requirement -c --constraint -e --editable -i --index-url --extra-index-url -f --find-links -t --target"
    " --prefix --root --python -p --platform --python-version --trusted-host --timeout --retries --no-binary"
    " --only-binary --progress-bar --cache-dir --build-option --config-settings --src --log --upgrade-strategy"
)
_PIP_TOOLS = frozenset(("pip", "setuptools", "wheel", "build", "uv"))
_NPM_VALUE_OPTIONS = frozenset(
    ("--prefix", "-C", "--registry", "--cache", "--userconfig", "--loglevel", "-w", "--filter", "-F")
)
_CARGO_VALUE_OPTIONS = word_set(
    "--version --vers --git --branch --tag --rev --path --root --features -F --bin --target --profile -j --jobs"
    " --index --registry"
)


def _unpinned(command: Command) -> Iterator[str]:
    """Yield the packages that a command installs in whatever version there is."""
    name, words = command.name, list(command.words[1:])
    if name.startswith("python") and words[:1] == ["-m"] and len(words) > 1:
        name, words = words[1], words[2:]
    if name == "uv" and words[:1] == ["pip"]:
        name, words = "pip", words[1:]
    verb, rest = words[0] if words else "", words[1:]
    if re.fullmatch(r"pip[\d.]*|pipx", name) and verb == "install":
        if {"-c", "--constraint"} & set(rest):
            return
        yield from (word for word in _plain(rest, _PIP_VALUE_OPTIONS) if _is_loose_requirement(word))
    elif (name in ("npm", "pnpm") and verb in ("install", "i", "add")) or (name == "yarn" and "add" in words[:2]):
        names = _plain(rest, _NPM_VALUE_OPTIONS)
        yield from (
            word for word in names if re.fullmatch(r"(?:@[\w.-]+/)?[a-z][\w.-]*(?:@latest)?", word) and word != "add"
        )
    elif name == "cargo" and verb == "install" and not {"--version", "--vers", "--git", "--path"} & set(rest):
        names = _plain(rest, _CARGO_VALUE_OPTIONS)
        options = any(word.startswith(("--version=", "--vers=", "--git=", "--path=")) for word in rest)
        yield from (word for word in names if not options and re.fullmatch(r"[\w-]+", word))
    elif name == "go" and verb in ("install", "get"):
        yield from (word for word in rest if word.endswith("@latest"))
    elif name == "gem" and verb == "install" and not {"-v", "--version"} & set(rest):
        yield from (word for word in rest if re.fullmatch(r"[a-z][\w-]*", word))


def _is_loose_requirement(word: str) -> bool:
    """Whether a requirement of pip names a package of an index without an exact version."""
    match = re.fullmatch(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?(.*)", word)
    if match is None or UNKNOWN in word or "/" in word or word.endswith((".whl", ".gz", ".zip")):
        return False
    return match[1].lower() not in _PIP_TOOLS and not re.match(r"\s*(?:===?|~=|@)", match[2])


@check(
    "docker-download-run",
    severity=Severity.INFO,
    family="docker",
    explains="What is piped into a shell is whatever the address gives that day.",
    fix="download a fixed version and check its sha256 before it runs",
)
def download_run(context: CheckContext) -> Iterator[Place]:
    """Look for downloads that are handed to a shell unseen."""
    for image in images(context):
        for run in image.runs.values():
            found = _PIPED.search(run.text)
            if found is not None:
                line = run.first_line + run.text.count("\n", 0, found.start())
                yield Place(image.path, f"runs what {found[1][:80]} gives", line)


_PIPED = re.compile(
    r"(?:curl|wget)\b[^|;&#]{0,300}?\b(https?://[^\s\"'|;)]{1,300})[^|;&#]{0,300}\|\s*(?:\\\n\s*)?(?:sudo\s+)?(?:-E\s+)?(?:env\s+)?"
    r"(?:\w+=\S+\s+)*(?:/(?:usr/)?bin/)?(?:ba|da|z)?sh\b"
)
