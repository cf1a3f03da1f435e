#!/bin/bash

# Parameters
#SBATCH --array=0-7%8
#SBATCH --chdir=/shared/ws/runs/20260101-120000-abcdef
#SBATCH --cpus-per-task=64
#SBATCH --export=NONE
#SBATCH --gres=gpu:h100:2
#SBATCH --job-name=otval-20260101-120000-abcdef.0
#SBATCH --nodes=1
#SBATCH --open-mode=append
#SBATCH --output=/shared/ws/runs/20260101-120000-abcdef/logs/%A_%a_0_log.out
#SBATCH --partition=h100
#SBATCH --requeue
#SBATCH --signal=B:USR2@120
#SBATCH --time=120

# setup
# Files of sites and module itself are not written for set -e and set -u.
otval_flags=$-
set +eu
command -v module >/dev/null 2>&1 || for otval_file in /etc/profile.d/modules.sh /etc/profile.d/lmod.sh /etc/profile.d/z00_lmod.sh; do
    [ ! -r "$otval_file" ] || . "$otval_file"
done
if command -v module >/dev/null 2>&1; then
    for otval_module in cuda; do
        module load "$otval_module" || echo "env.sh: the module $otval_module cannot be loaded" >&2
    done
else
    echo 'env.sh: there is no command module, so these are not loaded: cuda' >&2
fi
case $otval_flags in *e*) set -e ;; esac
case $otval_flags in *u*) set -u ;; esac
unset otval_flags otval_file otval_module
if [ -n "${HOME-}" ]; then export OT_STORAGE_HOME="$HOME"; else unset OT_STORAGE_HOME; fi
if [ -d /hnvme/workspace ]; then export OT_STORAGE_WORKSPACES=/hnvme/workspace; else unset OT_STORAGE_WORKSPACES; fi
if [ -n "${WORK-}" ]; then export OT_STORAGE_WORK="$WORK"; else unset OT_STORAGE_WORK; fi
if [ -n "${HPCVAULT-}" ]; then export OT_STORAGE_ARCHIVE="$HPCVAULT"; else unset OT_STORAGE_ARCHIVE; fi
if [ -n "${TMPDIR-}" ]; then export OT_STORAGE_SCRATCH="$TMPDIR"; else unset OT_STORAGE_SCRATCH; fi
[ -x /opt/python/bin/python3.12 ] || { echo "otval: $(hostname): there is no Python at /opt/python/bin/python3.12" >&2; exit 70; }

# command
export SUBMITIT_EXECUTOR=slurm
exec /opt/python/bin/python3.12 /shared/ws/runs/20260101-120000-abcdef/bootstrap.py /shared/ws/runs/20260101-120000-abcdef 0
