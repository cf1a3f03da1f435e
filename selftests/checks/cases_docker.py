"""Faults and near misses of Dockerfiles: what moves, hides, fails, or stays where the agent can read it."""

from __future__ import annotations

from pytest_otval.core import Severity
from selftests.checks.test_check_cases import SOLVE, TEST_PY, TOML, Fault

E, W, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
PATH = "environment/Dockerfile"
COMPOSE = "environment/docker-compose.yaml"
PREBUILT = TOML + '[environment]\ndocker_image = "x:1"\n'
SEPARATE = TOML + 'environment_mode = "separate"\n'
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CLONE = "RUN git clone https://example.org/a/app.git /app"


def built(*lines: str, base: str = "debian:bookworm-slim") -> dict[str, object]:
    return {PATH: f"FROM {base}\n" + "".join(f"{line}\n" for line in lines)}


def composed(*lines: str) -> dict[str, object]:
    return {COMPOSE: "services:\n  main:\n    build: .\n" + "".join(f"    {line}\n" for line in lines)}


def fault(check: str, line: int, severity: Severity, *lines: str, says: str = "", base: str = "") -> Fault:
    edits = built(*lines, base=base) if base else built(*lines)
    return Fault(check, edits, PATH, line, severity, says)


GRADE = (
    "#!/bin/bash\n{}\n"
    "if [ $? -eq 0 ]; then\n  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n"
)
APT = "RUN apt-get update && apt-get install -y git"

FAULTS = [
    fault("docker-base-unpinned", 1, W, base="debian"),
    fault("docker-base-unpinned", 1, W, base="registry:5000/team/image:latest", says="registry:5000"),
    fault("docker-base-unpinned", 2, W, "COPY --from=ghcr.io/astral-sh/uv:latest /uv /bin/", says="COPY takes"),
    Fault("docker-base-unpinned", {PATH: "ARG BASE=debian\nFROM ${BASE}\n"}, PATH, 2, W, "takes debian"),
    Fault("docker-base-unpinned", {"task.toml": PREBUILT.replace("x:1", "x")}, "task.toml", 7, W, "docker_image"),
    Fault(
        "docker-base-unpinned",
        {"task.toml": SEPARATE, "tests/Dockerfile": "FROM debian\n"},
        "tests/Dockerfile",
        1,
        W,
    ),
    fault("docker-platform-pinned", 1, W, base="--platform=linux/amd64 debian:12"),
    fault(
        "docker-one-architecture",
        3,
        INFO,
        "RUN apt-get update && \\",
        "    curl -fsSL https://example.org/tool-1.2-linux-x86_64.tar.gz | tar xz",
        says="tool-1.2-linux-x86_64.tar.gz",
    ),
    Fault("docker-harness-folder", {**built("COPY t /tests"), "environment/t/a": ""}, PATH, 2, W, "/tests"),
    Fault(
        "docker-harness-folder",
        {**built("WORKDIR /solution", "COPY t ./x/"), "environment/t": ""},
        PATH,
        3,
        W,
        "/solution",
    ),
    fault("docker-entrypoint", 2, INFO, 'CMD ["nginx", "-g", "daemon off;"]', says="CMD starts nginx"),
    fault("docker-entrypoint", 2, INFO, 'ENTRYPOINT ["/start.sh"]', 'CMD ["bash"]', says="ENTRYPOINT starts"),
    fault("docker-entrypoint", 2, INFO, "CMD python3 /app/server.py"),
    Fault(
        "docker-run-not-executable",
        {**built("COPY make.sh /opt/", "RUN true && \\", "  /opt/make.sh"), "environment/make.sh": ("0644", SOLVE)},
        PATH,
        4,
        E,
    ),
    Fault(
        "docker-run-not-executable",
        {**built("WORKDIR /w", "COPY make.sh .", "RUN ./make.sh"), "environment/make.sh": ("0644", SOLVE)},
        PATH,
        4,
        E,
    ),
    fault("docker-run-syntax", 3, E, "RUN true && \\", "  if true; then echo", says="syntax error"),
    fault("docker-error-hidden", 2, INFO, "RUN pip install x==1 || true", says="pip install x==1"),
    fault("docker-error-hidden", 3, INFO, "RUN cd / && \\", "  (patch -p1 < /b.patch || echo failed)"),
    fault("docker-add-url", 2, W, "ADD https://example.org/data.tgz /data/"),
    fault("docker-apt-no-lists", 2, E, "RUN apt-get install -y git", says="git"),
    fault("docker-apt-no-lists", 4, E, APT + " && \\", "  rm -rf /var/lib/apt/lists/*", "RUN apt-get install -y curl"),
    Fault(
        "docker-apt-no-lists",
        {**built("RUN apt-get install -y git"), "task.toml": PREBUILT},
        PATH,
        2,
        W,
    ),
    fault("docker-apt-asks", 2, W, "RUN apt-get update && apt-get install git"),
    fault("docker-apt-pin", 3, W, "RUN apt-get update && \\", "  apt-get install -y curl=7.88.1-10+deb12u5"),
    fault("docker-packages-unpinned", 2, INFO, "RUN pip install --no-cache-dir 'a>=1' b==2", says="version: a>=1"),
    fault("docker-packages-unpinned", 2, INFO, "RUN npm install -g typescript", says="typescript"),
    fault("docker-packages-unpinned", 2, INFO, "RUN cargo install ripgrep", says="ripgrep"),
    fault("docker-packages-unpinned", 2, INFO, "RUN go install example.org/x@latest", says="x@latest"),
    fault("docker-packages-unpinned", 2, INFO, "RUN python3 -m pip install requests", says="requests"),
    fault("docker-version-redirected", 3, W, "RUN pip install a==1 \\", "  b>=2.0", says="writes a file =2.0"),
    fault("docker-version-redirected", 2, E, "RUN pip install a<2", says="reads a file 2"),
    fault("docker-download-run", 2, INFO, "RUN curl -fsSL https://example.org/i.sh | sudo -E bash -"),
    fault("docker-clone-moving", 3, W, APT, CLONE, says="the default branch of example.org/a/app"),
    fault("docker-clone-moving", 2, W, f"{CLONE.replace('clone', 'clone --depth 1 -b main')}", says="main"),
    fault("docker-clone-moving", 2, W, CLONE, "RUN cd /app && git checkout develop"),
    fault(
        "docker-git-history",
        2,
        W,
        CLONE,
        "WORKDIR /app",
        f"RUN git checkout {COMMIT}",
        says=f"after {COMMIT}",
    ),
    fault(
        "docker-git-history",
        4,
        W,
        "ARG SHA=" + COMMIT,
        "WORKDIR /src",
        "RUN git clone https://example.org/app . && git reset --hard $SHA && git remote remove origin",
    ),
    fault(
        "docker-git-history",
        3,
        W,
        "WORKDIR /app",
        "RUN git clone https://example.org/app src && cd src && \\",
        f"  git fetch --depth 1 origin {COMMIT} && git checkout --detach FETCH_HEAD",
        "WORKDIR /app/src",
    ),
    Fault(
        "docker-git-copied",
        {**built("COPY repo /app/"), "environment/repo/.git/HEAD": "ref: refs/heads/main\n"},
        "environment/repo/.git",
        None,
        W,
    ),
    Fault(
        "docker-tests-copied",
        {
            **built("COPY t /app/t"),
            "environment/t/spec_check.py": TEST_PY + "# more\n",
            "tests/spec_check.py": TEST_PY + "# more\n",
            "tests/test.sh": GRADE.format("python3 /tests/spec_check.py"),
        },
        "environment/t/spec_check.py",
        None,
        W,
        "tests/spec_check.py",
    ),
    Fault(
        "docker-solution-copied",
        {
            PATH: "FROM debian:12 AS one\nCOPY fix.patch /opt/\nFROM one\nRUN rm -f /opt/other.patch\n",
            "environment/fix.patch": "x" * 99,
            "solution/fix.patch": "x" * 99,
        },
        "environment/fix.patch",
        None,
        E,
    ),
    Fault("compose-privileged", composed("privileged: true"), COMPOSE, 4, W),
    Fault("compose-privileged", composed("cap_add:", "  - NET_ADMIN", "  - SYS_ADMIN"), COMPOSE, 6, W, "SYS_ADMIN"),
    Fault("compose-privileged", composed("network_mode: host"), COMPOSE, 4, W, "network"),
    Fault(
        "compose-docker-socket",
        composed("volumes:", "  - /var/run/docker.sock:/var/run/docker.sock:ro"),
        COMPOSE,
        5,
        W,
    ),
    Fault("compose-host-folder", composed("volumes:", "  - named:/a", "  - ./data:/data"), COMPOSE, 6, W, "./data"),
    Fault(
        "compose-host-folder",
        composed("volumes:", "  - type: bind", "    source: /srv/data", "    target: /data"),
        COMPOSE,
        6,
        W,
    ),
]

NEAR_MISSES: list[tuple[str, dict[str, object]]] = [
    ("docker-base-unpinned", built(base="debian@sha256:" + "a" * 64)),
    ("docker-base-unpinned", {PATH: "ARG TAG=12\nARG OTHER\nFROM debian:${TAG} AS one\nFROM one\nFROM $OTHER\n"}),
    ("docker-base-unpinned", {PATH: "FROM debian:12 AS One\nFROM debian:12\nCOPY --from=one /a /\n"}),
    ("docker-base-unpinned", {PATH: "FROM scratch\nCOPY --from=0 /a /\n"}),
    ("docker-base-unpinned", built(base="registry:5000/image:1.2-latest")),
    ("docker-platform-pinned", {PATH: "FROM --platform=$BUILDPLATFORM debian:12\n"}),
    ("docker-platform-pinned", {PATH: "FROM --platform=linux/amd64 debian:12 AS unused\nFROM debian:12\n"}),
    (
        "docker-one-architecture",
        built('RUN test "$(dpkg --print-architecture)" = amd64 && wget https://example.org/a-amd64.deb'),
    ),
    (
        "docker-one-architecture",
        built("RUN wget https://example.org/x86_64.tgz || wget https://example.org/aarch64.tgz"),
    ),
    ("docker-one-architecture", built("ENV JAVA_HOME=/usr/lib/jvm/java-17-openjdk-amd64", "# https://e.org/x86_64.gz")),
    (
        "docker-harness-folder",
        {**built("COPY t /testsuite/", "RUN mkdir -p /tests /logs/verifier"), "environment/t": ""},
    ),
    (
        "docker-harness-folder",
        {"task.toml": SEPARATE, "tests/Dockerfile": "FROM debian:12\nCOPY test.sh /tests/\n"},
    ),
    ("docker-entrypoint", built('CMD ["/bin/bash"]')),
    ("docker-entrypoint", built("CMD sleep infinity")),
    ("docker-entrypoint", built('CMD ["nginx"]', 'CMD ["sh", "-c", "exec tail -f /dev/null"]')),
    ("docker-entrypoint", {PATH: "FROM nginx:1 AS web\nCMD nginx\nFROM debian:12\nCMD python3\n"}),
    (
        "docker-run-not-executable",
        {
            **built("COPY a.sh b.sh /opt/", "RUN chmod +x /opt/*.sh", "RUN /opt/a.sh", "RUN bash /opt/b.sh"),
            "environment/a.sh": ("0644", SOLVE),
            "environment/b.sh": ("0644", SOLVE),
        },
    ),
    (
        "docker-run-not-executable",
        {**built("COPY --chmod=755 a.sh /a.sh", "RUN /a.sh"), "environment/a.sh": ("0644", SOLVE)},
    ),
    (
        "docker-run-not-executable",
        {**built("COPY a.sh /a.sh", "RUN /a.sh || true"), "environment/a.sh": ("0644", SOLVE)},
    ),
    (
        "docker-run-syntax",
        built(
            "RUN a && \\", "  # a comment", "", '  echo "$(b)"', "RUN <<EOF", "for x in 1; do", "true", "done", "EOF"
        ),
    ),
    (
        "docker-run-syntax",
        built("RUN python3 <<EOF", "if (:", "EOF", "RUN <<EOF", "#!/usr/bin/python3", "if (:", "EOF"),
    ),
    ("docker-run-syntax", {PATH: 'FROM x:1\nSHELL ["pwsh", "-c"]\nRUN if (Test-Path x) { y }\n'}),
    (
        "docker-error-hidden",
        built("RUN rm -rf /x || true", "RUN make --version || true", "RUN useradd a || echo there", "RUN a || exit 1"),
    ),
    ("docker-error-hidden", built("RUN pip install x==1 || pip install --break-system-packages x==1")),
    (
        "docker-add-url",
        built(
            f"ADD --checksum=sha256:{'a' * 64} https://example.org/a /",
            f"ADD https://example.org/a.git#{COMMIT} /a",
            "RUN true",
        ),
    ),
    ("docker-apt-no-lists", built(APT, "RUN apt-get install -y curl && rm -rf /var/lib/apt/lists/*")),
    (
        "docker-apt-no-lists",
        built(
            APT + " && rm -rf /var/lib/apt/lists/*",
            "RUN curl -fsSL https://deb.example.org/setup.sh | bash - && apt-get install -y nodejs",
        ),
    ),
    ("docker-apt-no-lists", built(APT + " && rm -rf /var/lib/apt/lists/*", "RUN apt-get install -y git")),
    ("docker-apt-no-lists", built("RUN apt-get install -y git", base="team/base:1")),
    ("docker-apt-no-lists", built("RUN if ! command -v git; then apt-get install -y git; fi")),
    ("docker-apt-no-lists", built("RUN apt-get install -y /tmp/a.deb")),
    (
        "docker-apt-asks",
        built(
            "RUN apt-get update && apt-get install -yq git && apt-get -y install vim && apt-get install -qq curl",
            "RUN yes | apt-get install less",
            "ARG FLAGS",
            "RUN apt-get install $FLAGS nano",
        ),
    ),
    (
        "docker-apt-asks",
        built(
            "RUN echo 'APT::Get::Assume-Yes \"true\";' > /etc/apt/apt.conf.d/9 && apt-get update && apt-get install vim"
        ),
    ),
    ("docker-apt-pin", built("RUN apt-get update && apt-get install -y 'curl=7.88*' gcc-12 -t bookworm")),
    (
        "docker-apt-pin",
        built(
            "RUN echo 'deb https://snapshot.debian.org/archive/debian/20250101T000000Z bookworm main' > /s.list",
            "RUN apt-get update && apt-get install -y curl=7.88.1-10+deb12u5",
        ),
    ),
    (
        "docker-packages-unpinned",
        built(
            "RUN pip install --upgrade pip setuptools && pip install a==1 b~=2.1 -r r.txt -e . /d.whl 'e @ https://e'",
            "RUN pip install -c constraints.txt x",
            "RUN npm ci && npm install && npm install -g typescript@5.4.2 && npm install --prefix /opt @a/b@1.0.0",
            "RUN cargo install ripgrep --version 14.1.0 && cargo install --path . && go install example.org/x@v1.2.3",
            "RUN yarn install --frozen-lockfile && gem install rake -v 13",
        ),
    ),
    (
        "docker-version-redirected",
        built("RUN pip install 'a>=2' \"b<3\" > /tmp/log 2>&1", "RUN if [ $x -gt 2 ]; then echo 1 >2; fi"),
    ),
    (
        "docker-download-run",
        built("RUN curl -fsSL https://example.org/i.sh -o /i.sh && echo 'a  /i.sh' | sha256sum -c && bash /i.sh"),
    ),
    ("docker-download-run", built("RUN curl -fsSL https://example.org/a.tgz | tar xz && bash -c true")),
    (
        "docker-clone-moving",
        built(
            "RUN git clone --branch v1.2.3 https://example.org/a",
            f"RUN git clone https://example.org/b && cd b && git checkout {COMMIT}",
            f"RUN git clone --revision={COMMIT} https://example.org/d",
            "RUN git clone /srv/repo.git /repo",
        ),
    ),
    (
        "docker-clone-moving",
        built(CLONE, "RUN cd /app && git log --until=2018-02-01 --format=%H -1 | xargs git checkout"),
    ),
    ("docker-clone-moving", built("ARG SHA", CLONE, 'RUN git -C /app checkout "$SHA"')),
    ("docker-git-history", built(CLONE, "WORKDIR /app", f"RUN git checkout {COMMIT} && rm -rf .git")),
    ("docker-git-history", built(CLONE, "WORKDIR /app", f"RUN git checkout {COMMIT}", "RUN rm -rf /app/.git")),
    (
        "docker-git-history",
        built(
            CLONE,
            "WORKDIR /app",
            f"RUN git checkout -B main {COMMIT} && git remote remove origin && git tag | xargs git tag -d && \\",
            "  git reflog expire --expire=now --all && git gc --prune=now",
        ),
    ),
    (
        "docker-git-history",
        built(
            "WORKDIR /app",
            f"RUN git init && git fetch --depth 1 https://example.org/a {COMMIT} && git checkout FETCH_HEAD",
            "RUN git clone --depth 1 -b v1 https://example.org/b /app && git checkout v1",
            f"RUN git clone https://example.org/c /opt/tool && cd /opt/tool && git checkout {COMMIT}",
        ),
    ),
    (
        "docker-git-history",
        {
            PATH: f"FROM debian:12 AS build\n{CLONE} && cd /app && git checkout {COMMIT}\n"
            "FROM debian:12\nWORKDIR /app\nCOPY --from=build /app/bin /app\n"
        },
    ),
    (
        "docker-git-copied",
        {
            **built("COPY repo /app/"),
            "environment/repo/.git/HEAD": "ref: refs/heads/main\n",
            "environment/.dockerignore": "**/.git\n",
        },
    ),
    (
        "docker-git-copied",
        {**built("COPY repo /app/", "RUN rm -rf /app/.git"), "environment/repo/.git/HEAD": "ref: refs/heads/main\n"},
    ),
    (
        "compose-privileged",
        composed(
            "privileged: false", "# privileged: true", "environment:", "  privileged: true", "cap_add: [NET_ADMIN]"
        ),
    ),
    ("compose-privileged", {"environment/docker-compose.yml": "services:\n  a:\n    privileged: true\n"}),
    ("compose-docker-socket", composed("volumes:", "  - docker.socket:/run/x", "command: ls /var/run/docker.sock")),
    (
        "compose-host-folder",
        composed(
            "volumes:",
            "  - data:/data",
            "  - ${HOST_AGENT_LOGS_PATH}:${ENV_AGENT_LOGS_PATH}",
            "  - /anonymous",
            "  - type: volume",
            "    source: data",
            "    target: /x",
        ),
    ),
]

NEAR_MISSES += [
    # Copies of tests/ and solution/.
    # What the verifier compares with, or puts back, is no answer.
    (
        "docker-tests-copied",
        {
            **built("COPY . /app/"),
            "environment/scene.dat": "x" * 99,
            "tests/scene.dat": "x" * 99,
            "tests/test.sh": GRADE.format("cmp /tests/scene.dat /app/scene.dat && pytest /tests/test_outputs.py"),
        },
    ),
    (
        "docker-tests-copied",
        {**built("COPY t /app/"), "environment/t/test_old.py": TEST_PY + "#\n", "tests/test_old.py": TEST_PY + "#\n"},
    ),
    (
        "docker-tests-copied",
        {
            **built("COPY t.py /tmp/t.py", "RUN python3 /tmp/t.py && rm /tmp/t.py"),
            "environment/t.py": TEST_PY,
            "tests/test_outputs.py": TEST_PY,
        },
    ),
    # A solution with the whole source tree leaves some files as they are.
    (
        "docker-solution-copied",
        {
            **built("COPY src /app/"),
            "environment/src/same.py": TEST_PY,
            "environment/src/wrong.py": "1",
            "solution/same.py": TEST_PY,
            "solution/wrong.py": "2",
        },
    ),
    (
        "docker-solution-copied",
        {
            **built("COPY fix.patch /tmp/", "RUN patch < /tmp/fix.patch && rm -f /tmp/fix.patch"),
            "environment/fix.patch": "x" * 99,
            "solution/fix.patch": "x" * 99,
        },
    ),
]
