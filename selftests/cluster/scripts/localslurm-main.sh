#!/bin/bash

# Parameters
#SBATCH --array=0-7%8
#SBATCH --chdir=/shared/ws/runs/20260101-120000-abcdef
#SBATCH --cpus-per-task=2
#SBATCH --export=NONE
#SBATCH --job-name=otval-20260101-120000-abcdef.0
#SBATCH --mem=4000M
#SBATCH --nodes=1
#SBATCH --open-mode=append
#SBATCH --output=/shared/ws/runs/20260101-120000-abcdef/logs/%A_%a_0_log.out
#SBATCH --partition=main
#SBATCH --requeue
#SBATCH --signal=B:USR2@60
#SBATCH --time=120

# setup
if [ -n "${LOCALSLURM_SHARED-}" ]; then export OT_STORAGE_WORKSPACES="$LOCALSLURM_SHARED"; else unset OT_STORAGE_WORKSPACES; fi
[ -x /opt/python/bin/python3.12 ] || { echo "otval: $(hostname): there is no Python at /opt/python/bin/python3.12" >&2; exit 70; }

# command
export SUBMITIT_EXECUTOR=slurm
exec /opt/python/bin/python3.12 /shared/ws/runs/20260101-120000-abcdef/bootstrap.py /shared/ws/runs/20260101-120000-abcdef 0
