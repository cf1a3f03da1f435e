#!/bin/bash
# Set-up of everything that this checkout needs, on a workstation, a CI runner or a cluster's login node.
# It may be run again at any time: what is there already is kept, and then nothing is downloaded.
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: ./setup.sh WORKSPACE --cluster NAME [--python PATH] [--minimal] [-- COMMAND ...]

  WORKSPACE        folder for datasets, images, runs and the Python environment; made if missing
  --cluster NAME   cluster profile: clusters/NAME.toml (local: this machine alone)
  --python PATH    Python >= 3.11 to build the environment from (default: the first one on PATH)
  --minimal        without extras, the tools for selftests among them
  -- COMMAND ...   run a command in the environment afterwards and give back its exit status

OT_PREP_ENV names another folder for the Python environment than WORKSPACE/envs/prep.
As root on Debian or Ubuntu, --cluster local also installs the Debian packages that are missing.
TEXT
}
say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    printf 'setup: error: %s\n' "$*" >&2
    exit "${status:-1}"
}
usage_error() { status=4 fail "$* (./setup.sh --help says more)"; }

workspace='' cluster='' python='' extras=all
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        --cluster | --python)
            [ $# -ge 2 ] && [ -n "$2" ] || usage_error "$1 needs a value"
            [ "$1" = --cluster ] && cluster=$2 || python=$2
            shift ;;
        --cluster=*) cluster=${1#*=} ;;
        --python=*) python=${1#*=} ;;
        --minimal) extras=minimal ;;
        --) shift && break ;;
        -*) usage_error "unknown option $1" ;;
        *)
            [ -z "$workspace" ] || usage_error "more than one WORKSPACE: $1; a command to run stands behind --"
            workspace=$1 ;;
    esac
    shift
done
[ -n "$workspace" ] || usage_error "WORKSPACE is missing"
[ -n "$cluster" ] || usage_error "--cluster NAME is missing, for instance --cluster local"

checkout=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

# --- the machine ----------------------------------------------------------------------------------------------------

needed=(apptainer mksquashfs busybox)
# Apptainer brings some of these, not on PATH; without others some flavours, networks or base images are not there.
helpful=(squashfuse fuse-overlayfs fakeroot slirp4netns newuidmap mmdebstrap)

missing_programs() {
    local program
    for program; do
        PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || printf ' %s' "$program"
    done
}

# Devices that ordinary users need open; udev opens them, some virtual machines do not.
closed_devices() {
    local device
    for device in /dev/fuse /dev/net/tun; do
        if [ "$(id -u)" = 0 ]; then
            [[ $(stat -c %a "$device" 2>/dev/null) == *6 ]] || printf ' %s' "$device"
        else
            [ -r "$device" ] && [ -w "$device" ] || printf ' %s' "$device"
        fi
    done
}

check_machine() {
    local missing closed remedy
    [ "$cluster" = local ] && needed+=("${helpful[@]}") && helpful=()
    missing=$(missing_programs "${needed[@]}")
    closed=$(closed_devices)
    remedy="ask an administrator to run: sudo $(quote "$checkout/scripts/install-apptainer.sh")"
    [ "$cluster" = local ] || remedy="load the site's modules for them or ask its administrators"
    if [ "$cluster" = local ] && [ "$(id -u)" = 0 ] && [ -n "$missing$closed" ]; then
        say "installing what this machine lacks:$missing$closed"
        "$checkout/scripts/install-apptainer.sh" >&2
        missing=$(missing_programs "${needed[@]}")
        closed=$(closed_devices)
    fi
    [ -z "$missing" ] || fail "missing on this machine:$missing; $remedy"
    # Much works without the rest; doctor tells what does not.
    missing=$(missing_programs "${helpful[@]}")
    [ -z "$missing" ] || say "warning: missing on this machine:$missing; doctor says what does not work without them"
    [ -z "$closed" ] || say "warning: users cannot open:$closed; $remedy"
}

# One word in single quotes: what any POSIX shell reads back as it was.
quote() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# --- the Python environment -----------------------------------------------------------------------------------------

# The interpreter behind a virtual environment, since that environment may be the one that is about to be replaced.
describe_python='import os, sys
sys.version_info >= (3, 11) or sys.exit(1)
print(os.path.realpath(sys._base_executable))'

find_python() {
    local candidate
    for candidate in ${python:+"$python"} $([ -n "$python" ] || echo python3 python3.13 python3.12 python3.11); do
        "$candidate" -c "$describe_python" 2>/dev/null && return
    done
    fail "no Python >= 3.11 found${python:+ at $python}: install one (Debian: apt-get install python3 python3-venv) and give it with --python PATH"
}

ensure_venv_module() {
    command -v uv >/dev/null && return
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    local package
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        fail "$python cannot make environments; ask an administrator to run: sudo apt-get install $package"
    fi
    say "installing $package"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq "$package" >/dev/null
}

pip_install() {
    if command -v uv >/dev/null; then
        uv pip install --quiet --python "$OT_PREP_ENV/bin/python" "$@"
    else
        "$OT_PREP_ENV/bin/python" -m pip install -qq --disable-pip-version-check --no-input "$@"
    fi
}

# A stamp says what is complete. It is taken away before anything changes and written last, so an interrupted run
# leaves an environment that the next one makes anew.
stamped() { [ "$(cat "$OT_PREP_ENV/$1" 2>/dev/null)" = "$2" ]; }
stamp() {
    printf '%s\n' "$2" >"$OT_PREP_ENV/$1.new"
    mv -f "$OT_PREP_ENV/$1.new" "$OT_PREP_ENV/$1"
}

make_environment() {
    local lock=$checkout/requirements.txt packages project
    [ $extras = all ] || lock=$checkout/requirements-minimal.txt
    packages="$(sha256sum <"$lock") $("$python" -c 'import sys; print(sys.executable, sys.version)')"
    packages=${packages//$'\n'/ }
    project="$(sha256sum <"$checkout/pyproject.toml") $checkout"

    if ! stamped .otval-packages "$packages" || ! [ -x "$OT_PREP_ENV/bin/python" ]; then
        if [ -e "$OT_PREP_ENV" ] && [ -n "$(ls -A "$OT_PREP_ENV")" ] && ! [ -e "$OT_PREP_ENV/pyvenv.cfg" ]; then
            fail "$OT_PREP_ENV is not empty and no Python environment: remove it, or set OT_PREP_ENV to another folder"
        fi
        say "making the Python environment $OT_PREP_ENV"
        ensure_venv_module
        rm -f -- "$OT_PREP_ENV"/.otval-*
        rm -rf -- "$OT_PREP_ENV"
        if command -v uv >/dev/null; then
            uv venv --quiet --python "$python" "$OT_PREP_ENV"
        else
            "$python" -m venv "$OT_PREP_ENV"
        fi
        pip_install --no-deps --require-hashes --only-binary :all: -r "$lock"
        stamp .otval-packages "$packages"
    fi
    if ! stamped .otval-project "$project"; then
        say "installing the checkout $checkout"
        rm -f "$OT_PREP_ENV/.otval-project"
        pip_install --no-index --no-deps --no-build-isolation --editable "$checkout"
        stamp .otval-project "$project"
    fi
}

# pytest's own command loads what an ini file inside a task names before any plugin can object: see docs/pytest.md.
write_command() {
    local name new
    for name in pytest py.test; do
        new=$(mktemp "$OT_PREP_ENV/bin/.$name.XXXXXX")
        # shellcheck disable=SC2016  # the command's own arguments
        printf '#!/bin/sh\nexec %s -P -m pytest_otval.glue.start "$@"\n' "$(quote "$OT_PREP_ENV/bin/python")" >"$new"
        chmod 755 "$new"
        mv -f "$new" "$OT_PREP_ENV/bin/$name"
    done
}

# Plain POSIX shell: login shells and jobs of any kind source it, perhaps twice. Modules come first, so that nothing of
# theirs stands before the environment on PATH.
write_env() {
    local site
    site=$(cd "$checkout" && "$OT_PREP_ENV/bin/python" -m pytest_otval environment --cluster "$cluster")
    cat >"$1" <<TEXT
# Written by setup.sh: source it in any shell.
export OT_WORKSPACE=$(quote "$workspace")
export OT_CLUSTER=$(quote "$cluster")
export OT_PREP_ENV=$(quote "$OT_PREP_ENV")
$site
case ":\${PATH-}:" in
    *":\$OT_PREP_ENV/bin:"*) ;;
    *) export PATH="\$OT_PREP_ENV/bin\${PATH:+:\$PATH}" ;;
esac
TEXT
    chmod 644 "$1"
}

# One for people beside what they work with, and one for jobs, which may see the workspace alone.
publish_env() {
    cp "$1" "$workspace/.env.sh.new"
    mv -f "$workspace/.env.sh.new" "$workspace/env.sh"
    mv -f "$1" "$checkout/env.sh"
}

# --- all of it, in order --------------------------------------------------------------------------------------------

absolute() { mkdir -p -- "$1" && (cd -P -- "$1" && pwd); }

python=$(find_python)
[ "$cluster" != local ] || check_machine
workspace=$(absolute "$workspace")
for folder in datasets models images runtimes envs runs contracts; do mkdir -p -- "$workspace/$folder"; done
# What an env.sh exported is no choice of the user's: with another workspace, another environment.
[ "${OT_PREP_ENV-}" != "${OT_WORKSPACE-}/envs/prep" ] || OT_PREP_ENV=''
OT_PREP_ENV=${OT_PREP_ENV:-$workspace/envs/prep}
OT_PREP_ENV=$(absolute "$(dirname -- "$OT_PREP_ENV")")/$(basename -- "$OT_PREP_ENV")
case $OT_PREP_ENV in *:*) fail "$OT_PREP_ENV has a colon, which PATH cannot hold: choose another folder" ;; esac
export OT_WORKSPACE=$workspace OT_CLUSTER=$cluster OT_PREP_ENV

# Two set-ups of one environment at a time would spoil each other's work.
exec 9>"$OT_PREP_ENV.lock"
flock 9 || fail "cannot lock $OT_PREP_ENV.lock: its file system has no locks, set OT_PREP_ENV to a folder that has"
make_environment
write_command
new_env=$(mktemp "$checkout/.env.sh.XXXXXX")
trap 'rm -f -- "$new_env"' EXIT
write_env "$new_env"
# shellcheck source=/dev/null
. "$new_env"
# At a site programs may come by modules.
[ "$cluster" = local ] || check_machine
(cd "$checkout" && "$OT_PREP_ENV/bin/python" -m pytest_otval image prepare) >&2
publish_env "$new_env"
exec 9>&-
say "ready: source $checkout/env.sh"
say "next, for datasets that are made from repositories of others: python -m pytest_otval upstream setup"

[ $# -gt 0 ] || exit 0
exec "$@"
