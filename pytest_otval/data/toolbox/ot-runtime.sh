# shellcheck shell=sh
# For setup_files/setup.sh, tests/setup.sh and tests/test.sh, which source it:
#
#   . ot-runtime.sh
#   ot_runtime NAME || { install into "$OT_RUNTIME"; ot_runtime_save; }
#
# The runtime is the folder $OT_RUNTIME. From the cache it is there, read-only at its bottom and private to this trial;
# else the block installs it, where there is a network. `bash setup.sh --save` installs it in a container of the task's
# image and keeps it in the cache, as a run with --otval-save-runtimes does for every task.

_ot_told=/.otval-runtime
_ot_state=elsewhere _ot_name='' _ot_path='' _ot_why=''

if [ -r "$_ot_told/state" ]; then
    # shellcheck source=/dev/null
    . "$_ot_told/state"
else
    case " $* " in
    *' --save '*) exec python3 -m pytest_otval runtime build "$(dirname -- "$0")" ;;
    esac
fi

# Returns 0 where the runtime NAME is there, else 1: then the script has to install it.
ot_runtime() {
    if [ "$_ot_state" != elsewhere ] && [ "$1" != "$_ot_name" ]; then
        echo "ot-runtime: this script was expected to ask for '$_ot_name', not for '$1'" >&2
        exit 1
    fi
    OT_RUNTIME=${_ot_path:-/opt/otval/runtimes/$1}
    export OT_RUNTIME
    if [ "$_ot_state" = ready ]; then
        echo "ot-runtime: $1 comes from the cache" >&2
        return 0
    fi
    echo "ot-runtime: $1 is installed now${_ot_why:+: $_ot_why}" >&2
    mkdir -p -- "$OT_RUNTIME" || exit 1
    if [ "$_ot_state" = save ]; then
        # What is half installed must not be saved.
        set -e
    fi
    return 1
}

# Says that the runtime is complete. Where it is saved, the script ends here.
ot_runtime_save() {
    case $_ot_state in
    save)
        : >"$_ot_told/done"
        exit 0
        ;;
    missing) : >"$_ot_told/done" ;;
    esac
}
