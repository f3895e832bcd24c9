#!/bin/bash
# SPDX-License-Identifier: MIT
#SBATCH --job-name=sweep
#SBATCH --array=0-7
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
# sweep.sh - jobs of a sweep, which share what they read with those that run on
# the same node.
#
#   sbatch examples/slurm/sweep.sh python train.py ARGUMENTS
#
# runs train.py ARGUMENTS --seed K for each K of the array.  Each job makes the
# same loader by tsock.DataLoader(..., root=DATA).  The first one on a node
# starts the producer on its own CPUs.  Where the producer ends with that job,
# the next job that wants a sample starts it again, and no sample is lost or
# comes twice.
set -eu

# A local folder that all of a user's jobs on a node see: job_container gives
# each job a /tmp and a /dev/shm of its own.
export TSOCK_DIR=${TSOCK_DIR:-/var/tmp/tsock-$UID}
srun "$@" --seed "$SLURM_ARRAY_TASK_ID"
