#!/bin/sh
# Debian's Python and tools that use nothing of the image (see ../sealed/debian.sh), and pytest.
set -eu

# shellcheck source=runtimes/sealed/debian.sh
. "$(dirname -- "$0")/debian.sh"
python=$root/bin/python3

# What Python needs beside the tools. Not its modules nis and dbm.ndbm.
libraries_of_python='
    libbz2-1.0 liblzma5 libzstd1 libexpat1 libffi8 libssl3 libsqlite3-0 libreadline8 readline-common libncursesw6
    libuuid1 libcrypt1 media-types python3.11 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
'

prepare
# shellcheck disable=SC2086
unpack $tools $libraries_of_python
cd "$root"
rm -rf lib/python3.11/test lib/python3.11/idlelib lib/python3.11/lib-dynload/nis.* lib/python3.11/lib-dynload/_dbm.*
rm -f lib/python3.11/EXTERNALLY-MANAGED
ln -sf python3.11 bin/python3
name_loader bin lib/git-core
seal_names "$libraries/libcrypto.so.3" /usr/lib/ssl "/usr/lib/${libraries##*/}/"
seal_git

# --- pytest -----------------------------------------------------------------------------------------------------------

# By this file Python leaves out the packages of the user's home, which are the agent's to write. (Its module site is
# frozen into the program.)
printf 'home = %s\ninclude-system-site-packages = false\n' "$root/bin" >pyvenv.cfg
PYTHONPATH=$pip "$python" -m pip install --quiet --no-cache-dir --no-compile --root-user-action ignore \
    --disable-pip-version-check --no-warn-script-location --require-hashes -r "$sealed/requirements.txt"
ln -s ../local/bin/pytest bin/pytest
"$python" -I -m compileall -q --invalidation-mode unchecked-hash lib/python3.11 local >/dev/null || true

# --- it works, with nothing from outside --------------------------------------------------------------------------------

env -i "$python" -I -c 'import bz2, ctypes, hashlib, lzma, pytest, sqlite3, ssl, zlib'
env -i "$python" -I -m pytest --help | grep -q -e --ctrf
prove_tools
