"""Which files an image has, as far as its Dockerfile tells: for a path yes, no, or only a build can tell."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from pytest_otval.checks import shell_ast
from pytest_otval.checks.context import CheckContext
from pytest_otval.checks.docker_view import images
from pytest_otval.checks.files import DEFINITIONS
from pytest_otval.checks.shell import known_text, parse_shell
from pytest_otval.checks.shell_commands import unwrapped
from pytest_otval.task.context import Context, has_wildcard
from pytest_otval.task.dockerfile import Instruction

_PLAIN_BASE = re.compile(
    r"(?:(?:docker\.io|public\.ecr\.aws/docker|mirror\.gcr\.io)/)?(?:library/)?"
    r"(?:debian|ubuntu|alpine|python|node|golang|rust|gcc|ruby|php|perl|openjdk|eclipse-temurin|maven|gradle|buildpack-deps"
    r"|busybox|fedora|centos|rockylinux|almalinux|julia|r-base|elixir|erlang|haskell|swift|bash)(?:[:@].*)?"
    r"|ghcr\.io/laude-institute/t-bench/.*"
)
"""Images that hold a system or a language and nothing of any task."""

_WORDS = re.compile(r"\S+")
_QUIET = frozenset(
    _WORDS.findall(
        "apt apt-get apk yum dnf pip pip3 uv gem corepack mkdir chmod chown chgrp rm rmdir true false : set cd export"
        " echo printf locale-gen update-alternatives useradd adduser usermod groupadd addgroup update-ca-certificates"
        " ldconfig test [ sleep exit apt-key add-apt-repository apt-mark dpkg-reconfigure ln sed touch cat tee command"
        " which cp mv install gpg rustup chsh passwd chpasswd"
    )
)
"""Programs that make no file which the instruction does not spell: packages install elsewhere than tasks work."""
_QUIET_PYTHON = (["-m", "pip"], ["-m", "venv"], ["-m", "ensurepip"], ["-m", "playwright"])
_ARCHIVE = re.compile(r"\.(?:tar|tgz|tbz2?|txz|tar\.\w+)$")


_MAX_COPIED = 100_000
"""Where more files are copied, some perhaps often, the image is not looked into."""


@dataclass
class ImageFiles:
    """What is known of one image's files."""

    opaque: bool = False
    """Something may have made any file."""
    plain_base: bool = True
    """The base holds a system or a language and nothing of any task."""
    files: set[str] = field(default_factory=set)
    """Absolute paths that are surely there, and the folders around them."""
    names: set[str] = field(default_factory=set)
    """The last parts of these paths."""
    opaque_folders: set[str] = field(default_factory=set)
    """Folders that got content nobody listed."""
    said: list[str] = field(default_factory=list)
    """Texts of instructions: a file they name may be made by them."""
    workdir: str = "/"
    copied: int = 0
    """How many files were taken in."""

    def add(self, path: str) -> None:
        """Take in an absolute path that is surely there."""
        self.names.add(posixpath.basename(path))
        while path not in self.files:
            self.files.add(path)
            path = posixpath.dirname(path)
        self.copied += 1
        self.opaque = self.opaque or self.copied > _MAX_COPIED

    def has(self, path: str) -> bool | None:
        """Whether the image has a file or folder at an absolute path; None where only a build can tell."""
        if path in self.files:
            return True
        if self.opaque or any(posixpath.basename(path) in text for text in self.said):
            return None
        folders = (path[: index or 1] for index, sign in enumerate(path) if sign == "/")
        return None if self.opaque_folders.intersection((path, *folders)) else False

    def may_have_name(self, name: str) -> bool:
        """Whether the image may have a file of a name anywhere but in folders that got content nobody listed."""
        return name in self.names or any(name in text for text in self.said)

    def may_fill(self, folder: str) -> bool:
        """Whether the base or an instruction may put anything into an absolute folder, by its name."""
        copied = folder in self.files or any(f"{one}/".startswith(f"{folder}/") for one in self.opaque_folders)
        return copied or not self.plain_base or any(folder in text for text in self.said)


@lru_cache(maxsize=4)
def known_image(context: CheckContext, folder: str) -> ImageFiles:
    """Return what is known of the image of a folder of the task; of a prebuilt or composed one nothing is."""
    config = context.task.config
    prebuilt = config is None or (folder == "environment" and bool(config.environment.docker_image))
    pulled = any(
        step.verifier_image is not None
        and step.verifier_image.docker_image is not None
        and context.relative(step.verifier_image.context) == folder
        for step in context.steps
    )
    if prebuilt or pulled or any(context.file(f"{folder}/{name}") for name in DEFINITIONS[1:]):
        return ImageFiles(opaque=True, plain_base=False)
    built = next((one for one in images(context) if one.definition.folder == folder), None)
    if built is None or built.build is None:
        return ImageFiles(opaque=True, plain_base=False)
    image = image_files([instruction for _, instruction in built.instructions], built.build)
    if folder == "environment" and (context.task.has_setup or any(step.workdir is not None for step in context.steps)):
        image.opaque = True
    image.said.extend(one.command for step in context.steps for one in step.collect)
    return image


def image_files(instructions: Iterable[Instruction], build: Context) -> ImageFiles:
    """Return what is known of the image that instructions build; raises nothing for any content."""
    image = ImageFiles()
    for instruction in _stages(instructions, image):
        if image.copied <= _MAX_COPIED:
            _apply(instruction, build, image)
    return image


def _stages(instructions: Iterable[Instruction], image: ImageFiles) -> Iterator[Instruction]:
    """Yield the instructions of the last stage and of those that it stands on, and judge the base below them."""
    stages: list[list[Instruction]] = []
    for instruction in instructions:
        if instruction.kind == "FROM":
            stages.append([instruction])
        elif stages:
            stages[-1].append(instruction)
    chain = [stages[-1]]
    earlier = stages[:-1]
    while True:
        base = chain[0][0].args[0]
        below = next((i for i, one in enumerate(earlier) if one[0].args[-1] == base and len(one[0].args) == 3), None)
        if below is None:
            break
        chain.insert(0, earlier[below])
        earlier = earlier[:below]
    image.plain_base = _PLAIN_BASE.fullmatch(chain[0][0].args[0]) is not None
    image.opaque = not image.plain_base
    for stage in chain:
        yield from stage[1:]


def _apply(instruction: Instruction, build: Context, image: ImageFiles) -> None:
    kind = instruction.kind
    if kind == "WORKDIR":
        path = instruction.args[0].strip("\"'")
        image.opaque = image.opaque or "$" in path
        image.workdir = posixpath.normpath(posixpath.join(image.workdir, path))
        image.add(image.workdir)
    elif kind in ("COPY", "ADD"):
        _copy(instruction, build, image)
    elif kind == "RUN":
        image.said.append(instruction.original)
        image.said.extend(heredoc.content for heredoc in instruction.heredocs)
        image.opaque = image.opaque or not _is_quiet(instruction)
    elif kind in ("ONBUILD", "VOLUME", "SHELL"):
        image.opaque = image.opaque or kind != "VOLUME"


def _is_quiet(instruction: Instruction) -> bool:
    """Whether a RUN makes no other files than those it names."""
    if not instruction.shell_form or instruction.heredocs or instruction.flags:
        return False
    script = parse_shell(instruction.args[0])
    if script is None:
        return False
    return all(_quiet_command(simple) for simple in shell_ast.simple_commands(script.body))


def _quiet_command(simple: shell_ast.Simple) -> bool:
    if any("\0" in known_text(redirect.target) for redirect in simple.redirects):
        return False
    words = unwrapped([known_text(word) for word in simple.words])
    if not words:
        return True
    name, args = posixpath.basename(words[0]), words[1:]
    if re.fullmatch(r"python[\d.]*", name):
        return args[:2] in _QUIET_PYTHON
    if name in ("sh", "bash"):  # the usual installers: curl ... | sh -s -- -y
        return all(arg.startswith("-") and not re.fullmatch(r"-[a-z]*c", arg) for arg in args if arg != "stable")
    if name == "git":
        return args[:1] in (["config"], ["init"], ["--version"])
    if name in ("curl", "wget"):
        return name == "curl" and not any(re.fullmatch(r"-\w*[OJ]\w*|--remote-name", arg) for arg in args)
    return name in _QUIET


def _copy(instruction: Instruction, build: Context, image: ImageFiles) -> None:
    words = [word.strip("\"'") if instruction.shell_form else word for word in instruction.args]
    *sources, target = words
    if any("$" in word for word in words):
        image.opaque = True
        return
    place = posixpath.normpath(posixpath.join(image.workdir, target))
    inline = {heredoc.name for heredoc in instruction.heredocs}
    image.said.extend(heredoc.content for heredoc in instruction.heredocs)
    if any(flag.startswith("--from") for flag in instruction.flags):
        image.opaque_folders.add(place)
        return
    for source in sources:
        if source.startswith("<<") and inline:
            image.add(place)
        elif "://" in source or source.startswith("git@") or (instruction.kind == "ADD" and _ARCHIVE.search(source)):
            image.opaque_folders.add(place)
        else:
            _copy_local(source, place, build, image)


def _copy_local(source: str, place: str, build: Context, image: ImageFiles) -> None:
    try:
        entries = build.match(source) if has_wildcard(source) else [build.find(source)]
    except ValueError:
        return
    for entry in entries:
        if entry is not None and entry.kind == "folder":
            image.add(place)
            for below, _ in build.below(entry):
                image.add(posixpath.join(place, below))
        elif entry is not None:  # where a folder stands at the target, the file goes into it
            image.add(place)
            image.add(posixpath.join(place, posixpath.basename(entry.path)))
