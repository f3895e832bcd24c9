#!/bin/bash
# SPDX-License-Identifier: MIT
#SBATCH --job-name=seeds
#SBATCH --nodes=1
#SBATCH --ntasks=5
#SBATCH --cpus-per-task=4
# jobs_on_a_node.sh - four jobs and their producer in one allocation.
#
#   sbatch examples/slurm/jobs_on_a_node.sh DATA python train.py ARGUMENTS
#
# runs train.py ARGUMENTS --seed K for K = 1, 2, 3, 4.  train.py reads the
# stream by its name: tsock.DataLoader("data", batch_size, wait=60).  A step of
# its own runs the producer, so that it has CPUs of its own and no job's end is
# its end.
set -eu
data=$1
shift

# A local folder that all of a user's jobs on a node see: job_container gives
# each job a /tmp and a /dev/shm of its own.
export TSOCK_DIR=${TSOCK_DIR:-/var/tmp/tsock-$UID}
srun --ntasks=1 --exact tsock-producer --name data --root "$data" \
	--exit-when-idle 600 &
producer=$!

jobs=()
for seed in 1 2 3 4; do
	srun --ntasks=1 --exact "$@" --seed "$seed" &
	jobs+=($!)
done
failed=0
for job in "${jobs[@]}"; do
	wait "$job" || failed=1
done

# Otherwise the allocation would be held until the producer is idle.
kill "$producer" 2>/dev/null || true
wait "$producer" || true
exit $failed
