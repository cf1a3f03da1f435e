# shellcheck shell=sh
# For install.sh of recipes that source it: Debian's own packages below one folder, at the path where they will be used.
# Each program names its loader and its libraries by that path, so nothing of the image that it runs in is loaded: not
# its loader, libc or shell. The recipe sets `python` to one that runs seal.py.

sealed=$(dirname -- "$0")
root=$OT_RUNTIME

# What every recipe has, down to libc; git without its transports.
tools='
    libc6 libc-bin libgcc-s1 libstdc++6 zlib1g libtinfo6 libacl1 libattr1 libgmp10 libselinux1 libpcre2-8-0
    bash coreutils diffutils findutils grep sed mawk tar gzip git
'

# Prepares the container that installs; more packages for it may follow.
prepare() {
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends patchelf python3-pip-whl "$@" >/dev/null
    pip=$(find /usr/share/python-wheels -name 'pip-*.whl')
}

# Unpacks the packages that are named, and leaves out what nobody uses and each link that leads out.
unpack() (
    debs=/var/tmp/debs
    mkdir -p "$debs" "$root/bin" "$root/lib" "$root/lib64" "$root/var/lib/dpkg"
    ln -s . "$root/usr"
    cd "$debs"
    apt-get download -qq -o APT::Sandbox::User=root "$@"
    for deb in *.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
        {
            dpkg-deb -f "$deb" Package Version Architecture
            printf 'Status: install ok installed\n\n'
        } >>"$root/var/lib/dpkg/status"
    done
    rm -rf "$debs"
    cd "$root"
    rm -rf etc sbin libexec lib/systemd lib/tmpfiles.d lib/sysusers.d lib/*/gconv
    cd share
    rm -rf man info locale lintian perl5 bug apport menu applications bash-completion pixmaps
    find doc -type f ! -name copyright -delete
    cd ../lib/git-core
    rm -f git-remote-* git-http-* git-imap-send
    cd "$root"
    find . -type l | while read -r link; do
        case $(readlink "$link") in /*) rm -f "$link" ;; esac
    done
    find . -xtype l -delete
)

# Writes loader and libraries of this folder into the programs of some folders, as RPATH, which goes before
# LD_LIBRARY_PATH, for whatever an image or a task may set there. Then seals loader and libc.
name_loader() {
    libraries=$(dirname "$(find "$root/lib" -name 'libc.so.6')")
    loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -n 1)
    for folder; do
        find "$root/$folder" -type f | while read -r file; do
            if patchelf --print-interpreter "$file" >/dev/null 2>&1; then
                patchelf --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" "$file"
            fi
        done
    done
    "$python" -I -S "$sealed/seal.py" libc "$libraries" "$loader"
}

# Overwrites names in a file: seal_names FILE NAME...
seal_names() { "$python" -I -S "$sealed/seal.py" names "$@"; }

# Makes `bin/git` one that runs nothing of the repository it is asked about.
seal_git() (
    cd "$root"
    mv bin/git lib/git-core/git.program
    find lib/git-core -lname '*bin/git' -exec ln -sf git.program {} \;
    cat >bin/git <<TEXT
#!$root/bin/bash -p
export GIT_EXEC_PATH=$root/lib/git-core GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1
export GIT_TEMPLATE_DIR=$root/share/git-core/templates
exec $root/lib/git-core/git.program -c core.hooksPath=/dev/null -c core.fsmonitor=false -c safe.directory='*' "\$@"
TEXT
    chmod 755 bin/git
)

# The tools work, with nothing from outside.
prove_tools() {
    env -i "$root/bin/git" --version
    env -i "$root/bin/bash" -c 'type printf' >/dev/null
}
