"""The part of ``env.sh`` that a site's profile decides: its modules, and names for its storage.

Plain POSIX shell, sourced by login shells, by jobs before any login shell, and perhaps twice.
"""

from __future__ import annotations

from shlex import quote

from pytest_otval.profile import ModulesSection, Profile, StorageSection


def site_shell(profile: Profile) -> str:
    """Return the lines, each ended by a newline; none where the profile says nothing."""
    places = "".join(_place(place) for place in profile.storage.values())
    return (_modules(profile.modules) if profile.modules.load else "") + places


_MODULES = """\
# Files of sites and module itself are not written for set -e and set -u.
otval_flags=$-
set +eu
command -v module >/dev/null 2>&1 || for otval_file in {files}; do
    [ ! -r "$otval_file" ] || . "$otval_file"
done
if command -v module >/dev/null 2>&1; then
    for otval_module in {modules}; do
        module load "$otval_module" || echo "env.sh: the module $otval_module cannot be loaded" >&2
    done
else
    echo {missing} >&2
fi
case $otval_flags in *e*) set -e ;; esac
case $otval_flags in *u*) set -u ;; esac
unset otval_flags otval_file otval_module
"""


def _modules(modules: ModulesSection) -> str:
    """What cannot be loaded is told and is no error: much works without it, and doctor tells what does not."""
    return _MODULES.format(
        files=" ".join(map(quote, modules.init)),
        modules=" ".join(map(quote, modules.load)),
        missing=quote(f"env.sh: there is no command module, so these are not loaded: {' '.join(modules.load)}"),
    )


def _place(place: StorageSection) -> str:
    value, there = (
        (f'"${place.variable}"', f'[ -n "${{{place.variable}-}}" ]')
        if place.variable
        else (quote(place.path or ""), f"[ -d {quote(place.path or '')} ]")
    )
    return f"if {there}; then export {place.exports}={value}; else unset {place.exports}; fi\n"
