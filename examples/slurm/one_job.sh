#!/bin/bash
# SPDX-License-Identifier: MIT
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
# one_job.sh - a job with ranks on several nodes.
#
#   sbatch examples/slurm/one_job.sh python train.py ARGUMENTS
#
# train.py calls torch.distributed.init_process_group() and makes its loader by
# tsock.DataLoader(..., root=DATA).  On each node the first rank starts a
# producer, which makes what that node's ranks read, and ends with the job.
set -eu

# A local folder that all of a user's jobs on a node see: job_container gives
# each job a /tmp and a /dev/shm of its own.
export TSOCK_DIR=${TSOCK_DIR:-/var/tmp/tsock-$UID}
if [ -z "${MASTER_ADDR:-}" ]; then
	MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
fi
export MASTER_ADDR MASTER_PORT=${MASTER_PORT:-$((20000 + SLURM_JOB_ID % 10000))}

# What init_process_group() reads.
# shellcheck disable=SC2016 # each task has its own values
srun bash -c '
	export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS
	export LOCAL_RANK=$SLURM_LOCALID
	exec "$@"' task "$@"
