"""Documentation names commands, options, variables and files that there are."""

import io
import os
import re
import runpy
import shlex
import sys
from contextlib import redirect_stdout
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from pytest_otval.__main__ import make_parser
from pytest_otval.stages.spec import OWN_MARKS

CHECKOUT = Path(__file__).parents[1]
FILES = sorted(
    path.relative_to(CHECKOUT)
    for pattern in ("*.md", "docs/*.md", "datasets/*.md", "datasets/*/*.md", "clusters/*.md", "runtimes/*/*.md")
    for path in CHECKOUT.glob(pattern)
)
PATCHES = sorted(
    path.relative_to(CHECKOUT)
    for pattern in ("datasets/*/patch.py", "docs/examples/*/*.py")
    for path in CHECKOUT.glob(pattern)
)
OURS = ("python", "-m", "pytest_otval")
BEGINS = re.compile(r"(?:\$ )?(python -m pytest_otval |python \S*patch\.py |(?:.* -- )?pytest )")
NOTATION = {"...": "", "N": "2", "CPUS": "2", "ACTION": "list"}
ENDS = frozenset({"|", "||", "&&", ";", ">"})


def shown(text):
    """Yield what a document shows as code, and whether it is a block's line or a span within one."""
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip(), True
        else:
            yield from ((span, False) for span in re.findall(r"`([^`]+)`", line))


def commands(text):
    """Yield the words of each command that is shown, and whether it is one to be typed.

    Notation is resolved: ``[--x]`` is taken, ``a|b`` is two, ``N`` is a number.
    """
    for code, typed in shown(text):
        found = BEGINS.match(code)
        if not found:
            continue
        try:
            words = shlex.split(code[found.start(1) :].rpartition(" -- ")[2], comments=True)
        except ValueError:
            # Cut off at the end of a line of text.
            continue
        end = next((number for number, word in enumerate(words) if word in ENDS), len(words))
        bare = [word.strip("[]") if word[:1] in "[" or word[-1:] in "]" else word for word in words[:end]]
        some = [NOTATION.get(word, word) for word in bare]
        kept = [word.split("|") if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word) else [word] for word in some if word]
        yield from ((list(one), typed) for one in product(*kept))


COMMANDS = sorted(
    {(str(file), typed, *words) for file in FILES for words, typed in commands((CHECKOUT / file).read_text())}
)


def test_commands_are_found():
    text = "Do `python -m pytest_otval upstream a|b [X ...]`:\n\n    $ ./setup.sh W -- pytest x -m 'a or b' # c\n"
    assert list(commands(text)) == [
        (["python", "-m", "pytest_otval", "upstream", "a", "X"], False),
        (["python", "-m", "pytest_otval", "upstream", "b", "X"], False),
        (["pytest", "x", "-m", "a or b"], True),
    ]
    assert len(COMMANDS) > 50


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(str, command)))
def test_a_command_is_understood(command, pytestconfig, capsys):
    file, typed, *words = command
    if tuple(words[:3]) == OURS:
        try:
            make_parser().parse_args(words[3:])
        except SystemExit as ended:
            # Text may mention a command without what it is given.
            error = capsys.readouterr().err
            assert not ended.code or (not typed and "arguments are required" in error), f"{file}: {error}"
    elif words[0] == "python":
        patch = CHECKOUT / words[1]
        text = help_of(patch if patch.is_file() else CHECKOUT / "datasets/bugsinpy/patch.py", *words[2:3])
        unknown = [word for word in words[3:] if word.startswith("-") and word not in text]
        assert not unknown, text
    else:
        understood_by_pytest(pytestconfig, words[1:])


def understood_by_pytest(config, words):
    options, unknown = config._parser.parse_known_and_unknown_args(words)
    assert not [word for word in unknown if word.startswith("-")]
    stages = OWN_MARKS | {"and", "or", "not"}
    if str(options.markexpr) not in ("STAGES", "..."):
        assert set(re.findall(r"\w+", str(options.markexpr))) <= stages


@cache
def help_of(patch, command=""):
    """Return what a patch.py says about a command."""
    out, argv = io.StringIO(), sys.argv
    sys.argv = [str(patch), *filter(None, [command]), "--help"]
    try:
        with redirect_stdout(out), pytest.raises(SystemExit) as ended:
            runpy.run_path(str(patch), run_name="__main__")
    finally:
        sys.argv = argv
    assert ended.value.code == 0, f"{patch} has no command {command}"
    return out.getvalue()


@pytest.mark.parametrize("patch", PATCHES, ids=str)
def test_a_patch_of_the_repository_can_be_loaded(patch):
    assert "prepare" in help_of(CHECKOUT / patch)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_links_lead_somewhere(file):
    folder = (CHECKOUT / file).parent
    links = re.findall(r"\]\((?![a-z]+:)([^)#\s]*)(?:#[^)]*)?\)", (CHECKOUT / file).read_text())
    assert not [link for link in links if link and not (folder / link).exists()]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_files_of_docs_exist(file):
    text = (CHECKOUT / file).read_text()
    named = set(re.findall(r"\b((?:docs|scripts|selftests|clusters|pytest_otval)/[\w./-]+\.\w+)", text))
    places = (CHECKOUT, CHECKOUT / "pytest_otval")
    told = [name for name in named if not Path(name).stem.isupper()]
    assert not [name for name in told if not any((place / name).exists() for place in places)]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_variables_of_ours_exist(file):
    text = (CHECKOUT / file).read_text()
    assert not set(re.findall(r"\b(?:OT|OTVAL)_[A-Z_]*[A-Z]\b", text)) - variables()


@cache
def variables():
    """Return names of variables of ours that code reads or sets."""
    files = [CHECKOUT / "setup.sh", *(CHECKOUT / "clusters").glob("*.toml"), *(CHECKOUT / "scripts").iterdir()]
    for folder in ("pytest_otval", "selftests", "runtimes"):
        files += [path for path in (CHECKOUT / folder).rglob("*") if path.suffix in (".py", ".sh", ".toml", ".jinja")]
    texts = (path.read_text(errors="replace") for path in files if path != Path(__file__) and os.path.isfile(path))
    return {name for text in texts for name in re.findall(r"\b(?:OT|OTVAL)_[A-Z_]*[A-Z]\b", text)}
