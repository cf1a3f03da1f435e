#!/bin/sh
# Debian's own packages below one folder, at the path where they will be used. Each program names its loader and its
# libraries by that path, so nothing of the image that it runs in is loaded: not its loader, libc, shell or Python.
set -eu

here=$(dirname -- "$0")
root=$OT_RUNTIME
debs=/var/tmp/debs

# What the programs below need, down to libc. Not Python's modules nis and dbm.ndbm; git without its transports.
packages='
    libc6 libc-bin libgcc-s1 libstdc++6 zlib1g libbz2-1.0 liblzma5 libzstd1 libexpat1 libffi8 libssl3 libsqlite3-0
    libreadline8 readline-common libtinfo6 libncursesw6 libuuid1 libcrypt1 libacl1 libattr1 libgmp10 libselinux1
    libpcre2-8-0 media-types python3.11 python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
    bash coreutils diffutils findutils grep sed mawk tar gzip git
'

apt-get update -qq
apt-get install -y -qq --no-install-recommends patchelf python3-pip-whl >/dev/null
mkdir -p "$debs" "$root/bin" "$root/lib" "$root/lib64" "$root/var/lib/dpkg"
ln -s . "$root/usr"

cd "$debs"
# shellcheck disable=SC2086
apt-get download -qq -o APT::Sandbox::User=root $packages
for deb in *.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
    {
        dpkg-deb -f "$deb" Package Version Architecture
        printf 'Status: install ok installed\n\n'
    } >>"$root/var/lib/dpkg/status"
done
cd /
rm -rf "$debs"

# --- only what is used, and no link that leads out ------------------------------------------------------------------

cd "$root"
rm -rf etc share/man share/info share/locale share/lintian share/perl5 share/bug share/apport share/menu share/applications
rm -rf sbin libexec lib/systemd lib/tmpfiles.d lib/sysusers.d share/bash-completion share/pixmaps lib/*/gconv
rm -rf lib/python3.11/test lib/python3.11/idlelib lib/python3.11/lib-dynload/nis.* lib/python3.11/lib-dynload/_dbm.*
rm -f lib/python3.11/EXTERNALLY-MANAGED
rm -f lib/git-core/git-remote-* lib/git-core/git-http-* lib/git-core/git-imap-send
find share/doc -type f ! -name copyright -delete
find . -type l | while read -r link; do
    case $(readlink "$link") in /*) rm -f "$link" ;; esac
done
find . -xtype l -delete

# --- programs name loader and libraries by this path ------------------------------------------------------------------

libraries=$(dirname "$(find "$root/lib" -name 'libc.so.6')")
loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -n 1)
# RPATH, which goes before LD_LIBRARY_PATH, for whatever an image or a task may set there.
find bin lib/git-core -type f | while read -r file; do
    if patchelf --print-interpreter "$file" >/dev/null 2>&1; then
        patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$file"
    fi
done
"$root/bin/python3.11" -I -S "$here/seal.py" "$libraries" "$loader"
ln -sf python3.11 bin/python3

# --- pytest -----------------------------------------------------------------------------------------------------------

python=$root/bin/python3
# By this file Python leaves out the packages of the user's home, which are the agent's to write. (Its module site is
# frozen into the program.)
printf 'home = %s\ninclude-system-site-packages = false\n' "$root/bin" >pyvenv.cfg
pip=$(find /usr/share/python-wheels -name 'pip-*.whl')
PYTHONPATH=$pip "$python" -m pip install --quiet --no-cache-dir --no-compile --root-user-action ignore \
    --disable-pip-version-check --no-warn-script-location --require-hashes -r "$here/requirements.txt"
ln -s ../local/bin/pytest bin/pytest
"$python" -I -m compileall -q --invalidation-mode unchecked-hash lib/python3.11 local >/dev/null || true

# --- git that runs nothing of the repository it is asked about ---------------------------------------------------------

mv bin/git lib/git-core/git.program
find lib/git-core -lname '*bin/git' -exec ln -sf git.program {} \;
cat >bin/git <<TEXT
#!$root/bin/bash -p
export GIT_EXEC_PATH=$root/lib/git-core GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1
export GIT_TEMPLATE_DIR=$root/share/git-core/templates
exec $root/lib/git-core/git.program -c core.hooksPath=/dev/null -c core.fsmonitor=false -c safe.directory='*' "\$@"
TEXT
chmod 755 bin/git

# --- it works, with nothing from outside --------------------------------------------------------------------------------

env -i "$python" -I -c 'import bz2, ctypes, hashlib, lzma, pytest, sqlite3, ssl, zlib'
env -i "$python" -I -m pytest --help | grep -q -e --ctrf
env -i "$root/bin/git" --version
env -i "$root/bin/bash" -c 'type printf' >/dev/null
