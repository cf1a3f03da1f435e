#!/bin/bash
# Renew the locks of all that set-up installs, from pyproject.toml:
#   requirements.txt            everything, with the tools for selftests
#   requirements-minimal.txt    what `./setup.sh --minimal` installs: the same versions, without extras
# `./scripts/lock.sh --upgrade` takes the newest versions; without it, versions stay unless pyproject.toml forbids them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if command -v uv >/dev/null; then
    uv=(uv)
else
    tools=$(mktemp -d)
    trap 'rm -rf "$tools"' EXIT
    python3 -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check uv
    uv=("$tools/bin/uv")
fi

# setuptools: the checkout is installed without build isolation, so it has to be in the environment already.
compile() {
    echo 'setuptools>=77' | "${uv[@]}" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --override scripts/unneeded.txt "$@" pyproject.toml - >/dev/null
}
compile "${@}" --all-extras --output-file requirements.txt
compile --constraints requirements.txt --output-file requirements-minimal.txt
