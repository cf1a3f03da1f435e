#!/bin/bash
# Installs as the origin does: each requirement by itself, since some lists name what no index has; then the project's
# own commands; then the requirements again, because those commands may have brought other versions.
here=/opt/install

install_requirements() {
    local requirement
    while read -r requirement; do
        case $requirement in '' | '#'*) continue ;; esac
        pip install --no-cache-dir "$requirement" </dev/null || echo "left out: $requirement"
    done <"$here/requirements.txt"
}

install_requirements
bash "$here/project-setup.txt"
install_requirements
