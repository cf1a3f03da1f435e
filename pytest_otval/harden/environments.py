"""Environments that a script activates: by PATH alone, without running a file that the agent may have changed."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from pytest_otval.harden.tree import UNKNOWN, Command, Word

_ACTIVATE = "/bin/activate"
_CONDA_SH = "/etc/profile.d/conda.sh"
_CONDA = re.compile(r"conda|mamba|miniforge")
_NAME = re.compile(r"[\w.-]+")
_PLAIN = re.compile(r"[\w./${}~+-]+")


@dataclass(frozen=True, slots=True)
class Activation:
    """What a command that activates something comes to."""

    text: str
    """The command in its place."""
    home: str = ""
    """The environment's folder, as it stands between double quotes; empty where none is activated yet."""
    conda: str = ""
    """The folder of conda itself."""


def activation_of(command: Command, conda: str) -> Activation | str | None:
    """Return what a command activates; why that cannot be told; or None where it activates nothing.

    ``conda`` is the folder of conda, if the script has told it.
    """
    texts, words = command.texts, command.words
    if texts[:1] in (["source"], ["."]) and len(texts) > 1:
        if texts[1].endswith(_ACTIVATE):
            return _sourced(words, texts)
        if texts[1].endswith(_CONDA_SH):
            home = _written(words[1], _CONDA_SH)
            return Activation(":", conda=home) if home else "what it sources cannot be told"
        return None
    if texts[:2] == ["conda", "activate"]:
        if not conda:
            return "conda activates an environment, and the script does not tell where conda is"
        return _of_conda(conda, texts[2] if len(texts) > 2 else "base")
    if texts[:1] == ["eval"] and "conda" in command.source and "hook" in command.source:
        return "conda writes what the script runs: activate the environment by PATH"
    return None


def _sourced(words: tuple[Word, ...], texts: list[str]) -> Activation | str:
    home = _written(words[1], _ACTIVATE)
    if not home:
        return "what it activates cannot be told"
    if len(texts) > 2 or _CONDA.search(home):
        return _of_conda(home, texts[2] if len(texts) > 2 else "base")
    return Activation(_exported("VIRTUAL_ENV", home), home)


def _of_conda(conda: str, name: str) -> Activation | str:
    if name == "base":
        home = conda
    elif _NAME.fullmatch(name):
        home = f"{conda}/envs/{name}"
    elif UNKNOWN not in name and _PLAIN.fullmatch(name):
        home = name
    else:
        return "which environment it activates cannot be told"
    return Activation(_exported("CONDA_PREFIX", home), home, conda)


def _exported(variable: str, home: str) -> str:
    return f'export {variable}="{home}" PATH="{home}/bin:$PATH"'


def _written(word: Word, tail: str) -> str:
    """Return a word without its tail, as it may stand between double quotes; empty where that is not plain."""
    inner = word.source.strip("\"'") if word.source[:1] == word.source[-1:] else word.source
    if not inner.endswith(tail) or not _PLAIN.fullmatch(inner) or (word.source[:1] == "'" and "$" in inner):
        return ""
    home = inner.removesuffix(tail)
    if home.startswith("~/"):
        return f"$HOME{home[1:]}"
    return home if home.startswith(("/", "$")) else f"$PWD/{posixpath.normpath(home)}"
