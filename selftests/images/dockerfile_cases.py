# ruff: noqa: E501 # a row on a line is easier to read
"""What a Dockerfile means: each row with the passage that says so.

``lines`` follow ``FROM debian:12`` unless they hold a FROM of their own; so line 1 is that FROM, or their first. The
passage is one of the Dockerfile reference, or where that is silent BuildKit's own source or test. What an instruction
does to files that are there already is tried in ``test_stages_integration.py``, as it takes a container.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REFERENCE = "https://docs.docker.com/reference/dockerfile/#"
STAGES = "https://docs.docker.com/build/building/multi-stage/#"
VARIABLES = "https://docs.docker.com/build/building/variables/#"
CONTEXT = "https://docs.docker.com/build/concepts/context/#"
BUILDKIT = "https://github.com/moby/buildkit/blob/master/frontend/dockerfile/"
MATCH = "https://pkg.go.dev/path/filepath#Match"


@dataclass(frozen=True)
class Case:
    """One row."""

    name: str
    lines: str
    passage: str
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """Of the context: text, bytes, or ``-> target`` for a link; a name that ends with a slash is an empty folder."""
    refused: tuple[str, int, str] | None = None
    """Class, line and words of the refusal."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    """What the last RUN sees; None for a variable that is not set."""
    argv: tuple[str, ...] | None = None
    script: str | None = None
    workdir: str | None = None
    user: str | None = None
    """Of the last RUN; "root" for nobody else."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Of the image."""
    image_env: Mapping[str, str | None] = field(default_factory=dict)
    copied: tuple[str, ...] | None = None
    """Paths below the destination that the last COPY or ADD brings, here-documents and all."""
    to: tuple[str, bool] | None = None
    """Its destination, and whether that says that it is a folder."""
    owner: str | None = None
    mode: str | None = None
    inline: Mapping[str, str] = field(default_factory=dict)
    """Text of its here-documents."""
    unpacked: tuple[str | None, ...] | None = None
    """How the archives are compressed that the last ADD unpacks; None for a file that is none."""
    origin: tuple[int, tuple[str, ...]] | None = None
    """Of the last COPY --from: how many steps its stage has, and the paths."""
    steps: tuple[str, ...] | None = None
    """Their instructions, in order."""


BUILD_FAILED, UNSUPPORTED = "build-failed", "unsupported-instruction"


def refused(line: int, words: str) -> tuple[str, int, str]:
    return BUILD_FAILED, line, words


def unsupported(line: int, words: str) -> tuple[str, int, str]:
    return UNSUPPORTED, line, words


A = {"a.txt": "a", "b.txt": "b", "c.md": "c", "sub/d.txt": "d", "sub/deep/e": "e"}
TWO = "FROM debian:12 AS one\nRUN first\n"

STAGE_CASES = (
    Case(
        "named stage",
        "FROM debian:12 AS build\nRUN make\nFROM debian:12\nCOPY --from=build /out /in\n",
        STAGES + "name-your-build-stages",
        origin=(1, ("/out",)),
        to=("/in", False),
        steps=("COPY",),
    ),
    Case(
        "numbered stage",
        "FROM debian:12\nRUN a\nFROM debian:12\nRUN b\nRUN c\nFROM debian:12\nCOPY --from=1 x y/\n",
        STAGES + "use-multi-stage-builds",
        origin=(2, ("/x",)),
        to=("/y", True),
    ),
    Case(
        "names of stages know no case in COPY --from",
        "FROM debian:12 AS STAge0\nRUN a\nFROM debian:12\nCOPY --from=stagE0 /x /\n",
        BUILDKIT + "dockerfile_multistage_test.go",
        origin=(1, ("/x",)),
    ),
    Case(
        "FROM takes the lower-case name",
        "FROM debian:12 AS Base\nENV A=1\nFROM base\nRUN x\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        env={"A": "1"},
    ),
    Case(
        "FROM another case is an image, and no image has such a name",
        "FROM debian:12 AS base\nFROM Base\nRUN x\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        refused=refused(2, "Base"),
    ),
    Case(
        "last of two stages of one name",
        "FROM debian:12 AS x\nRUN a\nFROM debian:12 AS x\nRUN a\nRUN b\nFROM debian:12\nCOPY --from=x /f /\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        origin=(2, ("/f",)),
    ),
    Case(
        "stage over a stage inherits everything",
        "FROM debian:12 AS one\nARG V=1\nENV E=$V\nWORKDIR /w\nUSER app\n"
        'SHELL ["/bin/bash", "-c"]\nCMD ["c"]\nLABEL a=b\nEXPOSE 80\nRUN first\nFROM one\nRUN second $V\n',
        STAGES + "use-a-previous-stage-as-a-new-stage",
        env={"V": "1", "E": "1"},
        argv=("/bin/bash", "-c", "second $V"),
        workdir="/w",
        user="app",
        config={"cmd": ("c",), "labels": {"a": "b"}, "exposed": ("80",)},
        steps=("WORKDIR", "RUN", "RUN"),
    ),
    Case(
        "what a child stage does changes its parent in nothing",
        TWO + "FROM one AS two\nENV A=2\nRUN second\nFROM one\nRUN third\n",
        STAGES + "use-a-previous-stage-as-a-new-stage",
        env={"A": None},
        steps=("RUN", "RUN"),
    ),
    Case(
        "index of a stage that is not there",
        TWO + "FROM debian:12\nCOPY --from=7 /x /\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        refused=refused(4, "there is no stage 7"),
    ),
    Case(
        "negative index",
        "COPY --from=-1 /x /\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        refused=refused(2, "there is no stage -1"),
    ),
    Case(
        "image behind --from",
        "COPY --from=tools:1 /etc/x ./\n",
        STAGES + "use-an-external-image-as-a-stage",
        origin=(0, ("/etc/x",)),
    ),
    Case(
        "later stage",
        "FROM debian:12 AS target\nCOPY --from=build / /out\nFROM debian:12 AS build\nRUN x\nFROM target\n",
        BUILDKIT + "dockerfile_multistage_test.go",
        refused=refused(2, "stage build comes later"),
    ),
    Case(
        "stage that copies from itself",
        "FROM debian:12 AS a\nCOPY --from=a /x /\n",
        BUILDKIT + "dockerfile2llb/validations.go",
        refused=refused(2, "needs itself"),
    ),
    Case(
        "cycle of two stages",
        "FROM debian:12 AS a\nCOPY --from=b /x /\nFROM debian:12 AS b\nCOPY --from=a /x /\n",
        BUILDKIT + "dockerfile2llb/validations.go",
        refused=refused(2, "stage b comes later"),
    ),
    Case(
        "variable in --from",
        "ARG S=one\n" + TWO + "FROM debian:12\nARG S\nCOPY --from=$S /x /\n",
        BUILDKIT + "dockerfile_copy_test.go",
        refused=refused(6, "--from takes no variables"),
    ),
    Case(
        "stage that nothing needs is not looked at",
        "FROM nosuch:1\nCOPY nosuch /\nFROM debian:12\nRUN x\n",
        "https://docs.docker.com/build/building/multi-stage/#differences-between-legacy-builder-and-buildkit",
        steps=("RUN",),
    ),
    Case(
        "but it is read",
        "FROM nosuch:1\nCOPY --nosuch a /\nFROM debian:12\nRUN x\n",
        BUILDKIT + "instructions/parse.go",
        refused=refused(2, "COPY knows no flag --nosuch"),
    ),
    Case(
        "stage whose name begins with a digit",
        "FROM debian:12 AS 1x\n",
        BUILDKIT + "instructions/parse.go",
        refused=refused(1, "'1x' is no name for a stage"),
    ),
    Case(
        "FROM with two words",
        "FROM debian:12 build\n",
        REFERENCE + "from",
        refused=refused(1, "FROM takes an image"),
    ),
    Case(
        "ENTRYPOINT of a child stage forgets the parent's CMD",
        'FROM debian:12 AS a\nCMD ["c"]\nFROM a\nENTRYPOINT ["e"]\n',
        REFERENCE + "understand-how-cmd-and-entrypoint-interact",
        config={"entrypoint": ("e",), "cmd": ()},
    ),
    Case(
        "ENTRYPOINT keeps the CMD of its own stage",
        'CMD ["c"]\nENTRYPOINT ["e"]\n',
        BUILDKIT + "dockerfile2llb/convert.go",
        config={"entrypoint": ("e",), "cmd": ("c",)},
    ),
    Case(
        "FROM --platform of a stage is its parent's matter",
        "FROM debian:12 AS a\nRUN x\nFROM --platform=linux/s390x a\nRUN y\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        steps=("RUN", "RUN"),
    ),
    Case(
        "foreign platform",
        "FROM --platform=linux/s390x debian:12\n",
        REFERENCE + "from",
        refused=unsupported(1, "FROM --platform=linux/s390x"),
    ),
    Case(
        "this machine's platform",
        "FROM --platform=$BUILDPLATFORM debian:12\nRUN x\n",
        REFERENCE + "automatic-platform-args-in-the-global-scope",
        steps=("RUN",),
    ),
    Case("no stage at all", "ARG foo=bar\n", BUILDKIT + "dockerfile_multistage_test.go", refused=refused(1, "no FROM")),
    Case("nothing in front of FROM but ARG", "RUN x\nFROM debian:12\n", REFERENCE + "from", refused=refused(1, "RUN")),
    Case(
        "FROM of an empty variable",
        "ARG X\nFROM $X\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        refused=refused(2, "$X is empty"),
    ),
    Case(
        "scratch",
        TWO + "FROM scratch\nCOPY --from=one / /\n",
        "https://docs.docker.com/build/building/base-images/#create-a-minimal-base-image-using-scratch",
        refused=unsupported(3, "FROM scratch"),
    ),
)

VARIABLE_CASES = (
    Case(
        "ARG in front of FROM is for FROM",
        "ARG TAG=12\nFROM debian:$TAG\nRUN x\n",
        REFERENCE + "understand-how-arg-and-from-interact",
        env={"TAG": None},
    ),
    Case(
        "ARG without a default takes the global one",
        "ARG TAG=12\nFROM debian:${TAG}\nARG TAG\nRUN x\n",
        REFERENCE + "understand-how-arg-and-from-interact",
        env={"TAG": "12"},
    ),
    Case(
        "ARG in front of FROM sees those before it",
        "ARG A=1\nARG B=${A}2\nFROM debian:$B\nARG B\nRUN x\n",
        BUILDKIT + "dockerfile_args_test.go",
        env={"B": "12", "A": None},
    ),
    Case(
        "quotes of an ARG",
        'ARG a1="foo bar" a2=box\nARG a3="$a2-foo"\nFROM debian:12\nARG a3 a4="123 456" a1\nRUN x\n',
        BUILDKIT + "dockerfile_args_test.go",
        env={"a1": "foo bar", "a2": None, "a3": "box-foo", "a4": "123 456"},
    ),
    Case("ARG is no variable of the image", "ARG A=1\nRUN x\n", REFERENCE + "arg", env={"A": "1"}, image_env={"A": None}),
    Case("ARG ends with its stage", "FROM debian:12\nARG A=1\nFROM debian:12\nRUN x\n", REFERENCE + "scope", env={"A": None}),
    Case("ARG is for what follows it", "ENV B=$A\nARG A=1\nRUN x\n", REFERENCE + "scope", env={"A": "1", "B": ""}),
    Case(
        "ENV overrides an ARG before it",
        "ARG V=arg\nENV V=env\nRUN x\n",
        REFERENCE + "using-arg-variables",
        env={"V": "env"},
        image_env={"V": "env"},
    ),
    Case(
        "ARG hides an ENV before it until the stage ends",
        "ENV V=env\nARG V=arg\nENV W=$V\nRUN x\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        env={"V": "arg", "W": "arg"},
        image_env={"V": "env"},
    ),
    Case(
        "ARG without a value leaves an ENV as it is",
        "ENV V=env\nARG V\nRUN x\n",
        BUILDKIT + "dockerfile2llb/convert.go",
        env={"V": "env"},
    ),
    Case(
        "empty default is a value",
        "ARG FOO\nARG BAR=\nENV A=${FOO-unset} B=${BAR-unset}\nRUN x\n",
        BUILDKIT + "dockerfile_args_test.go",
        env={"A": "unset", "B": "", "BAR": "", "FOO": None},
    ),
    Case(
        "platform args have to be asked for",
        "RUN x\n",
        REFERENCE + "automatic-platform-args-in-the-global-scope",
        env={"TARGETOS": None, "TARGETARCH": None},
    ),
    Case(
        "platform args",
        "ARG TARGETOS TARGETVARIANT BUILDOS TARGETSTAGE\nRUN x\n",
        REFERENCE + "automatic-platform-args-in-the-global-scope",
        env={"TARGETOS": "linux", "TARGETVARIANT": "", "BUILDOS": "linux", "TARGETSTAGE": "default"},
    ),
    Case(
        "name of the last stage",
        "FROM debian:12 AS End\nARG TARGETSTAGE\nRUN x\n",
        BUILDKIT + "dockerfile_args_test.go",
        env={"TARGETSTAGE": "end"},
    ),
    Case(
        "needed ARG that nobody gives",
        'ARG FOO=${FOO:?"custom error"}\nFROM debian:12\n',
        BUILDKIT + "dockerfile_args_test.go",
        refused=refused(1, "FOO: custom error"),
    ),
    Case(
        "one ENV sees the values before it",
        "ENV abc=hello\nENV abc=bye def=$abc\nENV ghi=$abc\nRUN x\n",
        REFERENCE + "environment-replacement",
        env={"abc": "bye", "def": "hello", "ghi": "bye"},
    ),
    Case(
        "modifiers",
        "ENV S=set E=\nENV A=${S:-x}${E:-x}${N:-x} B=${S-x}${E-x}${N-x} C=${S:+x}${E:+x}${N:+x} D=${S+x}${E+x}${N+x}\nRUN x\n",
        REFERENCE + "environment-replacement",
        env={"A": "setxx", "B": "setx", "C": "x", "D": "xx"},
    ),
    Case(
        "modifiers in modifiers",
        "ENV A=${X:-${Y:-$PATH}} B=${X:-\\${PATH}z}y\nRUN x\n",
        BUILDKIT + "shell/envVarTest",
        env={"A": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "B": "${PATHz}y"},
    ),
    Case(
        "patterns",
        "ENV s=foobarbaz\nENV A=${s#f*b} B=${s##f*b} C=${s%b*} D=${s%%b*} E=${s/ba/fo} F=${s//ba/fo}\nRUN x\n",
        REFERENCE + "environment-replacement",
        env={"A": "arbaz", "B": "az", "C": "foobar", "D": "foo", "E": "fooforbaz", "F": "fooforfoz"},
    ),
    Case(
        "assignment in a substitution",
        "ENV A=${X:=y}\n",
        BUILDKIT + "shell/envVarTest",
        refused=refused(2, "unsupported modifier"),
    ),
    Case("unclosed brace", "ENV A=${X\n", BUILDKIT + "shell/envVarTest", refused=refused(2, "ENV: ")),
    Case("unclosed quote", "ENV A='x\n", BUILDKIT + "shell/envVarTest", refused=refused(2, "ENV: ")),
    Case(
        "quotes and escapes",
        "ENV A='$PATH' B=\"a b\" C=a\\ b D=\\$PATH E=\"\\\"x\\\" \\n\"\nRUN x\n",
        REFERENCE + "env",
        env={"A": "$PATH", "B": "a b", "C": "a b", "D": "$PATH", "E": '"x" \\n'},
    ),
    Case("ENV without a sign", "ENV ONE TWO= THREE=world\nRUN x\n", REFERENCE + "env", env={"ONE": "TWO= THREE=world"}),
    Case("ENV without a name", "ENV =x\n", BUILDKIT + "instructions/parse.go", refused=refused(2, "blank name")),
    Case(
        "ENV lasts, and the image has it",
        "ENV A=1 B=${A}2\nRUN x\n",
        REFERENCE + "env",
        env={"A": "1", "B": "2"},
        image_env={"A": "1", "B": "2"},
    ),
    Case("RUN is the shell's", "ENV A=1\nRUN echo $A ${B:-x}\n", REFERENCE + "shell-and-exec-form", argv=("/bin/sh", "-c", "echo $A ${B:-x}")),
    Case("CMD is not expanded", 'ENV A=1\nCMD ["$A"]\n', REFERENCE + "variable-substitution", config={"cmd": ("$A",)}),
    Case("ENTRYPOINT is not expanded", 'ENV A=1\nENTRYPOINT ["$A"]\n', REFERENCE + "variable-substitution", config={"entrypoint": ("$A",)}),
    Case("LABEL is expanded", 'ENV A=1\nLABEL x=$A "y z"="$A 2"\n', REFERENCE + "environment-replacement", config={"labels": {"x": "1", "y z": "1 2"}}),
    Case("EXPOSE is expanded", 'ENV P="80 81/udp"\nEXPOSE $P 9000-9002\n', BUILDKIT + "dockerfile_core_test.go", config={"exposed": ("80", "81/udp", "9000-9002")}),
    Case("VOLUME is expanded", "ENV A=/v\nVOLUME $A $A/w\n", REFERENCE + "environment-replacement", config={"volumes": ("/v", "/v/w")}),
    Case("STOPSIGNAL is expanded", "ENV S=SIGINT\nSTOPSIGNAL $S\n", REFERENCE + "environment-replacement", config={"stop_signal": "SIGINT"}),
    Case("USER is expanded", "ARG U=app\nUSER ${U}\nRUN x\n", REFERENCE + "environment-replacement", user="app"),
    Case("WORKDIR is expanded", "ENV DIRPATH=/path\nWORKDIR $DIRPATH/$DIRNAME\nRUN pwd\n", REFERENCE + "workdir", workdir="/path"),
    Case("COPY is expanded", "ENV F=a.txt D=/d\nCOPY $F $D/\n", REFERENCE + "environment-replacement", A, copied=("a.txt",), to=("/d", True)),
    Case("escaped variable in COPY", "ENV FOO=/bar\nCOPY \\$FOO /quux\n", REFERENCE + "environment-replacement", {"$FOO": "x"}, copied=("$FOO",), to=("/quux", False)),
)  # fmt: skip

INSTRUCTION_CASES = (
    Case("shell form", "RUN a && b\n", REFERENCE + "shell-form", argv=("/bin/sh", "-c", "a && b")),
    Case("exec form", 'RUN ["a", "$b c"]\n', REFERENCE + "exec-form", argv=("a", "$b c")),
    Case("single quotes are no JSON", "RUN ['a']\n", REFERENCE + "exec-form", argv=("/bin/sh", "-c", "['a']")),
    Case("continued line", "RUN a \\\n  # note\n\n  b\n", REFERENCE + "format", argv=("/bin/sh", "-c", "a   b")),
    Case("another escape", "# escape=`\nFROM debian:12\nRUN a `\n  b\\n\n", REFERENCE + "escape", argv=("/bin/sh", "-c", "a   b\\n")),
    Case("syntax directive is a comment", "# syntax=docker/dockerfile:1\nFROM debian:12\nRUN a\n", REFERENCE + "syntax", argv=("/bin/sh", "-c", "a")),
    Case("directive behind a comment is none", "# note\n# escape=`\nFROM debian:12\nRUN a \\\n b\n", REFERENCE + "parser-directives", argv=("/bin/sh", "-c", "a  b")),
    Case("lower case", "from debian:12\nrun a\n", REFERENCE + "format", argv=("/bin/sh", "-c", "a")),
    Case("SHELL is for what follows", 'RUN a\nSHELL ["/bin/bash", "-ec"]\nRUN b\nCMD c\n', REFERENCE + "shell", argv=("/bin/bash", "-ec", "b"), config={"cmd": ("/bin/bash", "-ec", "c")}),
    Case("SHELL is JSON", "SHELL bash -c\n", REFERENCE + "shell", refused=refused(2, "SHELL takes a JSON list")),
    Case("SHELL of nothing", "SHELL []\n", BUILDKIT + "instructions/parse.go", refused=refused(2, "SHELL")),
    Case("heredoc is the script", "RUN <<EOT bash\n  a\nEOT\nRUN <<E\nb $X\n\tc\nE\n", REFERENCE + "here-documents", argv=("/bin/sh", "-c", "b $X\n\tc\n")),
    Case("heredoc for a shell", "RUN <<EOT bash\na\nEOT\n", REFERENCE + "here-documents", argv=("/bin/sh", "-c", "<<EOT bash\na\nEOT")),
    Case("heredoc with a shebang", "RUN <<E\n#!/usr/bin/env python\nprint()\nE\n", REFERENCE + "here-documents", script="#!/usr/bin/env python\nprint()\n"),
    Case("heredoc without its tabs", "RUN <<-E\n\t#!/bin/awk -f\n\t\tx\nE\n", BUILDKIT + "dockerfile_heredoc_test.go", script="#!/bin/awk -f\nx\n"),
    Case("several heredocs", "RUN cat <<A > f && cat <<B\n1\nA\n2\nB\n", BUILDKIT + "dockerfile_heredoc_test.go", argv=("/bin/sh", "-c", "cat <<A > f && cat <<B\n1\nA\n2\nB")),
    Case("heredoc in another shell", 'SHELL ["/bin/awk"]\nRUN <<E\nBEGIN {}\nE\n', BUILDKIT + "dockerfile_heredoc_test.go", argv=("/bin/awk", "BEGIN {}\n")),
    Case("USER by number", "USER 1000\nRUN x\n", REFERENCE + "user", user="1000"),
    Case("USER with a group", "USER app:staff\nRUN x\n", REFERENCE + "user", user="app:staff"),
    Case("USER back to root", "USER app\nUSER root\nRUN x\n", REFERENCE + "user", user="root"),
    Case("USER of nothing is root", "USER app\nUSER $NONE\nRUN x\n", BUILDKIT + "dockerfile2llb/convert.go", user="root"),
    Case("WORKDIR is relative to the last", "WORKDIR /a\nWORKDIR b\nWORKDIR c\nRUN pwd\n", REFERENCE + "workdir", workdir="/a/b/c"),
    Case("WORKDIR with a slash at its end", "WORKDIR /a/b/\nRUN x\n", BUILDKIT + "dockerfile2llb/convert.go", workdir="/a/b"),
    Case("WORKDIR goes up", "WORKDIR /a/b\nWORKDIR ../../../c\nRUN x\n", BUILDKIT + "dockerfile_copy_test.go", workdir="/c"),
    Case("WORKDIR of nothing stays", "WORKDIR /a\nWORKDIR $NONE\nRUN x\n", BUILDKIT + "dockerfile2llb/convert.go", workdir="/a"),
    Case("WORKDIR makes its folder", "WORKDIR /a\n", REFERENCE + "workdir", steps=("WORKDIR",), config={"workdir": "/a"}),
    Case("CMD in shell form", "CMD a b\n", REFERENCE + "cmd", config={"cmd": ("/bin/sh", "-c", "a b")}),
    Case("last CMD counts", 'CMD ["a"]\nCMD ["b"]\n', REFERENCE + "cmd", config={"cmd": ("b",)}),
    Case("CMD of nothing", 'CMD ["a"]\nCMD []\n', BUILDKIT + "dockerfile2llb/convert.go", config={"cmd": ()}),
    Case("ENTRYPOINT in shell form", "ENTRYPOINT a b\n", REFERENCE + "shell-form-entrypoint-example", config={"entrypoint": ("/bin/sh", "-c", "a b")}),
    Case("ENTRYPOINT of nothing", 'ENTRYPOINT ["a"]\nENTRYPOINT []\n', BUILDKIT + "instructions/parse.go", config={"entrypoint": ()}),
    Case("HEALTHCHECK", "HEALTHCHECK --interval=5m --timeout=3s CMD curl x\n", REFERENCE + "healthcheck", config={"healthcheck": ("--interval=5m", "--timeout=3s", "CMD", "curl x")}),
    Case("HEALTHCHECK NONE", "HEALTHCHECK NONE\n", REFERENCE + "healthcheck", config={"healthcheck": ("NONE",)}),
    Case("HEALTHCHECK NONE takes nothing", "HEALTHCHECK NONE x\n", BUILDKIT + "instructions/parse.go", refused=refused(2, "NONE takes no arguments")),
    Case("HEALTHCHECK of another kind", "HEALTHCHECK curl x\n", BUILDKIT + "instructions/parse.go", refused=refused(2, "CMD or NONE")),
    Case("HEALTHCHECK with a strange duration", "HEALTHCHECK --interval=5 CMD x\n", BUILDKIT + "instructions/parse.go", refused=refused(2, "duration")),
    Case("LABEL forms", 'LABEL "com.example"="A B" version=1.0 multi="x \\\n y"\n', REFERENCE + "label", config={"labels": {"com.example": "A B", "version": "1.0", "multi": "x  y"}}),
    Case("MAINTAINER", "MAINTAINER me <x@y>\n", REFERENCE + "maintainer-deprecated", steps=()),
    Case("EXPOSE of no port", "EXPOSE eighty\n", BUILDKIT + "dockerfile2llb/convert_expose.go", refused=refused(2, "no port: 'eighty'")),
    Case("STOPSIGNAL of no signal", "STOPSIGNAL SIGNO\n", BUILDKIT + "dockerfile2llb/convert.go", refused=refused(2, "no signal: 'SIGNO'")),
    Case("VOLUME of JSON", 'VOLUME ["/a", "/b c"]\n', REFERENCE + "volume", config={"volumes": ("/a", "/b c")}),
    Case("empty VOLUME", 'VOLUME [""]\n', BUILDKIT + "instructions/parse.go", refused=refused(2, "VOLUME")),
    Case("unknown instruction", "FOO x\n", REFERENCE + "format", refused=refused(2, "unknown instruction: FOO")),
    Case("flag that nobody knows", "RUN --foo=1 x\n", BUILDKIT + "instructions/bflag.go", refused=refused(2, "RUN knows no flag --foo")),
    Case("flag given twice", "COPY --chown=1 --chown=2 a.txt /\n", BUILDKIT + "instructions/bflag.go", A, refused=refused(2, "--chown twice")),
    Case("flag without a value", "COPY --chown a.txt /\n", BUILDKIT + "instructions/bflag.go", A, refused=refused(2, "--chown has no value")),
    Case("RUN --mount", "RUN --mount=type=cache,target=/x y\n", REFERENCE + "run---mount", refused=unsupported(2, "RUN --mount")),
    Case("RUN --network", "RUN --network=none y\n", REFERENCE + "run---network", refused=unsupported(2, "RUN --network")),
    Case("RUN --security", "RUN --security=insecure y\n", REFERENCE + "run---security", refused=unsupported(2, "RUN --security")),
    Case("ONBUILD", "ONBUILD RUN x\n", REFERENCE + "onbuild", refused=unsupported(2, "ONBUILD RUN")),
    Case("ONBUILD ONBUILD", "ONBUILD ONBUILD RUN x\n", REFERENCE + "onbuild-limitations", refused=refused(2, "ONBUILD")),
    Case("ONBUILD FROM", "ONBUILD FROM x\n", REFERENCE + "onbuild-limitations", refused=refused(2, "ONBUILD FROM")),
    Case("COPY --link", "COPY --link a.txt /\n", REFERENCE + "copy---link", A, refused=unsupported(2, "COPY --link")),
    Case("COPY --parents", "COPY --parents a.txt /\n", REFERENCE + "copy---parents", A, refused=unsupported(2, "COPY --parents")),
    Case("COPY --exclude", "COPY --exclude=*.txt . /\n", REFERENCE + "copy---exclude", A, refused=unsupported(2, "COPY --exclude")),
    Case("ADD --unpack", "ADD --unpack=true a.txt /\n", REFERENCE + "add---unpack", A, refused=unsupported(2, "ADD --unpack")),
    Case("ADD --keep-git-dir", "ADD --keep-git-dir a.txt /\n", REFERENCE + "add---keep-git-dir", A, refused=unsupported(2, "ADD --keep-git-dir")),
)  # fmt: skip

SUM = "0" * 64
COPY_CASES = (
    Case("file to a name", "COPY a.txt /x/y\n", REFERENCE + "destination-1", A, copied=("a.txt",), to=("/x/y", False)),
    Case("file into a folder", "COPY a.txt /x/\n", REFERENCE + "destination-1", A, copied=("a.txt",), to=("/x", True)),
    Case("relative to WORKDIR", "WORKDIR /usr/src/app\nCOPY a.txt rel/\n", REFERENCE + "destination-1", A, to=("/usr/src/app/rel", True)),
    Case("dot is a folder", "WORKDIR /w\nCOPY a.txt .\n", REFERENCE + "destination-1", A, to=("/w", True)),
    Case("empty destination is the WORKDIR", 'WORKDIR /w\nENV empty=""\nCOPY a.txt $empty\n', BUILDKIT + "dockerfile_copy_test.go", A, to=("/w", True)),
    Case("contents of a folder, not itself", "COPY sub /x\n", REFERENCE + "copying-from-the-build-context", A, copied=("d.txt", "deep", "deep/e")),
    Case("slash behind a source means nothing", "COPY sub/ /x\n", REFERENCE + "copying-from-the-build-context", A, copied=("d.txt", "deep", "deep/e")),
    Case("slash in front of a source is the context", "COPY /sub/d.txt /x\n", REFERENCE + "copying-from-the-build-context", A, copied=("d.txt",)),
    Case("nothing leads out of the context", "COPY ../../a.txt /x\n", REFERENCE + "copying-from-the-build-context", A, copied=("a.txt",)),
    Case("and what is outside is not there", "COPY ../secret /x\n", REFERENCE + "copying-from-the-build-context", {"../secret": "s"}, refused=refused(2, "not in the build context")),
    Case("missing source", "COPY nope /\n", REFERENCE + "copying-from-the-build-context", refused=refused(2, "'nope' is not in the build context")),
    Case("everything, the Dockerfile too", "COPY . /app\n", CONTEXT + "what-is-a-build-context", {"a": "a"}, copied=("Dockerfile", "a")),
    Case("several sources", "COPY a.txt sub c.md /x/\n", REFERENCE + "source-1", A, copied=("a.txt", "d.txt", "deep", "deep/e", "c.md"), to=("/x", True)),
    Case("BuildKit lets several go without a slash", "COPY a.txt b.txt /x\n", BUILDKIT + "dockerfile2llb/convert_copy.go", A, copied=("a.txt", "b.txt"), to=("/x", False)),
    Case("JSON form for blanks", 'COPY ["a b", "/c d/"]\n', REFERENCE + "copy", {"a b": "x"}, copied=("a b",), to=("/c d", True)),
    Case("star", "COPY *.txt /x/\n", REFERENCE + "pattern-matching-1", A, copied=("a.txt", "b.txt")),
    Case("question mark", "COPY ?.md /x/\n", REFERENCE + "pattern-matching-1", A, copied=("c.md",)),
    Case("star never takes a slash", "COPY *.txt */*.txt /x/\n", MATCH, A, copied=("a.txt", "b.txt", "d.txt")),
    Case("class of characters", "COPY [ab].txt /x/\n", MATCH, A, copied=("a.txt", "b.txt")),
    Case("negated class", "COPY [^a].txt /x/\n", MATCH, A, copied=("b.txt",)),
    Case("star takes a dot in front", "COPY * /x/\n", MATCH, {".hidden": "x"}, copied=(".hidden", "Dockerfile")),
    Case("brackets in a name", "COPY arr[[]0].txt /dest/\n", REFERENCE + "pattern-matching-1", {"arr[0].txt": "x"}, copied=("arr[0].txt",)),
    Case("malformed pattern", "COPY [a /x/\n", MATCH, A, refused=refused(2, "malformed pattern")),
    Case("pattern that matches nothing", "COPY a.txt nomatch* /x/\n", BUILDKIT + "dockerfile_copy_test.go", A, copied=("a.txt",)),
    Case("nothing but such a pattern", "COPY nomatch* /x/\n", BUILDKIT + "dockerfile2llb/convert_copy.go", A, steps=()),
    Case("pattern behind a link", "COPY link/* /x/\n", BUILDKIT + "dockerfile_copy_test.go", {**A, "link": "-> sub"}, copied=("d.txt", "e")),
    Case("link is followed, and gives its name", "COPY link /x/\n", BUILDKIT + "dockerfile_copy_test.go", {**A, "link": "-> sub/d.txt"}, copied=("link",)),
    Case("link in the middle", "COPY link/foo .\n", BUILDKIT + "dockerfile_copy_test.go", {"real/foo": "x", "link": "-> real"}, copied=("foo",)),
    Case("absolute link begins at the context", "COPY link /x/\n", BUILDKIT + "dockerfile_copy_test.go", {**A, "link": "-> /sub/d.txt"}, copied=("link",)),
    Case("link inside a folder stays one", "COPY sub /x\n", BUILDKIT + "dockerfile_copy_test.go", {"sub/l": "-> nowhere"}, copied=("l",)),
    Case("--chown by name and by number", "COPY --chown=app:33 a.txt /\n", REFERENCE + "copy---chown", A, owner="app:33"),
    Case("--chown of variables", "ARG G=8\nENV U=7\nCOPY --chown=${U}:${G} a.txt /\n", BUILDKIT + "dockerfile_copy_test.go", A, owner="7:8"),
    Case("--chmod", "COPY --chmod=0755 a.txt /\n", REFERENCE + "copy---chmod", A, mode="755"),
    Case("--chmod of a variable", "ARG MODE=440\nCOPY --chmod=$MODE . .\n", REFERENCE + "copy---chmod", A, mode="440"),
    Case("symbolic --chmod", "COPY --chmod=u=rwX,go=rX . /app/\n", REFERENCE + "copy---chmod", A, mode="u=rwX,go=rX"),
    Case("--chmod of more than there is", "COPY --chmod=10000 a.txt /\n", BUILDKIT + "dockerfile_copy_test.go", A, refused=refused(2, "more than 7777")),
    Case("--chmod of nonsense", "COPY --chmod=64a a.txt /\n", BUILDKIT + "dockerfile_copy_test.go", A, refused=refused(2, "invalid mode '64a'")),
    Case("inline file", "COPY <<EOF /x.txt\nhello $PATH_\nEOF\n", REFERENCE + "example-creating-inline-files", copied=("EOF",), inline={"EOF": "hello \n"}, to=("/x.txt", False)),
    Case("inline files beside one of the context", "COPY <<A <<B a.txt /d/\n1\nA\n2\nB\n", BUILDKIT + "instructions/commands.go", A, copied=("a.txt", "A", "B"), inline={"A": "1\n", "B": "2\n"}),
    Case("inline file without variables", "COPY <<'EOF' /x\n$PATH \\n\nEOF\n", REFERENCE + "example-creating-inline-files", inline={"EOF": "$PATH \\n\n"}),
    Case("escapes in an inline file", 'ENV V=1\nCOPY <<EOF /x\n"$V" \\$V \\\\ \\n\nEOF\n', BUILDKIT + "dockerfile_heredoc_test.go", inline={"EOF": '"1" $V \\ n\n'}),
    Case("inline file without its tabs", "COPY <<-EOF /x\n\t\ta\n\tb\nEOF\n", BUILDKIT + "dockerfile_heredoc_test.go", inline={"EOF": "a\nb\n"}),
    Case("inline file with another escape character", "# escape=`\nFROM debian:12\nCOPY <<EOF /x\n\\$A `$A\nEOF\n", BUILDKIT + "dockerfile2llb/convert.go", inline={"EOF": "$A `\n"}),
    Case("here-document as the destination", "COPY a.txt <<EOF\nx\nEOF\n", BUILDKIT + "instructions/parse.go", A, refused=refused(2, "no here-document as its destination")),
    Case("no destination", "COPY a.txt\n", BUILDKIT + "instructions/parse.go", A, refused=refused(2, "COPY takes at least a source and a destination")),
    Case("COPY of an address", "COPY https://example.org/x /\n", BUILDKIT + "dockerfile2llb/convert_copy.go", refused=refused(2, "ADD does")),
    Case("ADD unpacks archives", "ADD t.tar t.tgz t.tar.bz2 t.tar.xz t.tar.zst /x/\n", REFERENCE + "adding-local-tar-archives", unpacked=("", "gzip", "bzip2", "xz", "zstd")),
    Case("whatever their names", "ADD t /x/\n", REFERENCE + "adding-local-tar-archives", unpacked=("gzip",)),
    Case("and not what only has the name", "ADD fake.tar.gz text.gz /x/\n", REFERENCE + "adding-local-tar-archives", {"fake.tar.gz": "text"}, unpacked=(None, None), copied=("fake.tar.gz", "text.gz")),
    Case("COPY does not unpack", "COPY t.tgz /x/\n", BUILDKIT + "dockerfile_add_test.go", copied=("t.tgz",)),
    Case("ADD of a file is COPY", "ADD --chmod=600 a.txt /x/\n", REFERENCE + "add", A, copied=("a.txt",), to=("/x", True), mode="600"),
    Case("ADD of an address without its checksum", "ADD https://example.org/x /y\n", REFERENCE + "add---checksum", refused=unsupported(2, "ADD URL without --checksum")),
    Case("ADD of an address", f"ADD --checksum=sha256:{SUM} https://example.org/a/x%20y?q=1 /d/\n", REFERENCE + "adding-files-from-a-url", copied=("x y",), to=("/d", True)),
    Case("ADD of an address without a name", f"ADD --checksum=sha256:{SUM} https://example.org /d/\n", BUILDKIT + "dockerfile_add_test.go", copied=("__unnamed__",)),
    Case("ADD of variables", f"ENV S=sha256:{SUM} L=http://example.org/x\nADD --checksum=$S $L /d/\n", BUILDKIT + "dockerfile_add_test.go", copied=("x",)),
    Case("ADD with a digest of another kind", "ADD --checksum=md5:00 https://example.org/x /\n", BUILDKIT + "dockerfile_add_test.go", refused=refused(2, "no sha256")),
    Case("ADD with no digest at all", f"ADD --checksum={SUM} https://example.org/x /\n", BUILDKIT + "dockerfile_add_test.go", refused=refused(2, "no digest")),
    Case("ADD --checksum of a local file", f"ADD --checksum=sha256:{SUM} a.txt /\n", BUILDKIT + "dockerfile_add_test.go", A, refused=refused(2, "for one file that is fetched")),
    Case("ADD --checksum of two", f"ADD --checksum=sha256:{SUM} https://example.org/x https://example.org/y /\n", BUILDKIT + "dockerfile2llb/convert_copy.go", refused=refused(2, "for one file that is fetched")),
    Case("ADD of a repository", "ADD https://github.com/moby/buildkit.git#v1 /x\n", REFERENCE + "adding-files-from-a-git-repository", refused=unsupported(2, "ADD of a Git repository")),
    Case("ADD of a repository by ssh", "ADD git@github.com:moby/buildkit.git /x\n", REFERENCE + "adding-files-from-a-git-repository", refused=unsupported(2, "ADD of a Git repository")),
    Case("COPY --from keeps patterns for later", "FROM debian:12 AS a\nRUN x\nFROM debian:12\nCOPY --from=a /out/*.so ../lib/./x /d/\n", REFERENCE + "copy---from", origin=(1, ("/out/*.so", "/lib/x"))),
)  # fmt: skip

IGNORED = {
    "a.md": "a",
    "b.txt": "b",
    "README.md": "r",
    "temp": "t",
    "tempa": "t",
    "s/temp": "s",
    "s/x.md": "x",
    "s/t/temp": "u",
}
IGNORE_CASES = tuple(
    Case(name, "COPY . /\n", CONTEXT + anchor, {**IGNORED, ".dockerignore": text}, copied=copied)
    for name, anchor, text, copied in (
        (
            "comment, name and itself",
            "syntax",
            "# note\nDockerfile\n.dockerignore\n s \n",
            ("README.md", "a.md", "b.txt", "temp", "tempa"),
        ),
        (
            "folders below the root",
            "matching",
            "*/temp*\nDockerfile\n.*\n",
            ("README.md", "a.md", "b.txt", "s", "s/t", "s/t/temp", "s/x.md", "temp", "tempa"),
        ),
        ("one character", "matching", "temp?\nDockerfile\n.*\ns\n", ("README.md", "a.md", "b.txt", "temp")),
        (
            "any depth",
            "matching",
            "**/temp\nDockerfile\n.*\n",
            ("README.md", "a.md", "b.txt", "s", "s/t", "s/x.md", "tempa"),
        ),
        ("negation", "negating-matches", "*.md\n!README.md\nDockerfile\n.*\ntemp*\ns\n", ("README.md", "b.txt")),
        (
            "last line that matches decides",
            "negating-matches",
            "!README.md\n*.md\nDockerfile\n.*\ntemp*\ns\n",
            ("b.txt",),
        ),
        ("everything but", "negating-matches", "*\n!s/t\n", ("s", "s/t", "s/t/temp")),
        ("slash in front", "syntax", "/s\n/temp*\nDockerfile\n.*\n", ("README.md", "a.md", "b.txt")),
        ("two stars with an end", "matching", "**.md\nDockerfile\n.*\ns/t\ntemp*\n", ("b.txt", "s", "s/temp")),
    )
)
IGNORE_CASES += (
    Case("one for this Dockerfile goes first", "COPY . /\n", CONTEXT + "filename-and-location", {"a": "a", "b": "b", ".dockerignore": "a", "Dockerfile.dockerignore": "*\n!a"}, copied=("a",)),
    Case("what is ignored cannot be copied", "COPY a.md /\n", CONTEXT + "dockerignore-files", {"a.md": "a", ".dockerignore": "*.md"}, refused=refused(2, ".dockerignore leaves it out")),
    Case("negation of nothing", "COPY . /\n", BUILDKIT + "dockerfile_dockerignore_test.go", {".dockerignore": "x\n!\n"}, refused=(BUILD_FAILED, 0, ".dockerignore:2: ! without a pattern")),
)  # fmt: skip

CASES = (*STAGE_CASES, *VARIABLE_CASES, *INSTRUCTION_CASES, *COPY_CASES, *IGNORE_CASES)
