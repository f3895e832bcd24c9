#!/bin/bash
# SPDX-License-Identifier: MIT
# scripts.sh - the scripts of examples/slurm, run by a Slurm cluster of three
# nodes on this machine.  77: there can't be one.
top=$(cd "$(dirname "$0")/../.." && pwd)
B=${B:-build}
B=$top/${B#"$top/"}
if [ -z "${TSOCK_TEST_CLUSTER:-}" ]; then
	folder=$(mktemp -d "${TMPDIR:-/tmp}/slurm-XXXXXX") || exit 1
	export B
	"$top/test/slurm/cluster.sh" "$folder" "$0"
	rc=$?
	rm -rf "$folder"
	exit $rc
fi

. "$top/test/system/producer.bash"
python=$top/build/venv/bin/python
examples=$top/examples/slurm
export PYTHONPATH=$top/bindings/python TSOCK_PRODUCER=$producer
export LIBTSOCK_PATH=$B/lib/libtsock.so
export PATH=$B/bin:$PATH OMP_NUM_THREADS=1
# What resolves as a node's name elsewhere; all nodes are this machine.
export MASTER_ADDR=10.0.7.1 GLOO_SOCKET_IFNAME=tsock0
train=("$python" "$top/test/slurm/train.py")

# A node's local folder: what runs on a node finds its own behind the name that
# all have, as if each were a machine.
nodes=$work/nodes
for node in n1 n2 n3; do
	mkdir -p "$nodes" && mkdir -m 700 "$nodes/$node"
done
cat >"$work/prolog" <<END
#!/bin/sh
echo export TSOCK_DIR=$nodes/\$SLURMD_NODENAME
END
chmod +x "$work/prolog"
echo "TaskProlog=$work/prolog" >>"$SLURM_CONF"
scontrol reconfigure
unset TSOCK_DIR

# submit OPTION... -- SCRIPT ARGUMENT...: until it has ended; its output is in
# $work/job.*.
submit()
{
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	rm -rf "$work"/job.* "$work/out"
	mkdir "$work/out"
	timeout 300 sbatch --wait --quiet --output "$work/job.%A.%a" \
		"${options[@]}" "$@"
}

# check WHAT PYTHON: an expression over jobs, what each task has read.
check()
{
	"$python" - "$work/out" "$2" >"$work/said" 2>&1 <<'END'
import collections, glob, json, sys
jobs = []
for path in sorted(glob.glob(sys.argv[1] + "/*.json")):
    with open(path) as f:
        jobs.append(json.load(f))
nodes = sorted({job["node"] for job in jobs})
all_of = lambda jobs, epoch: sorted(sum((j["epochs"][epoch] for j in jobs), []))
every = list(range(36))
if not eval(sys.argv[2]):
    sys.exit("%r" % jobs)
END
	result $? "$1" "$(cat "$work/said" "$work"/job.* | tail -n 40)"
}

# --- four jobs and their producer in an allocation ---

submit --cpus-per-task 1 -- "$examples/jobs_on_a_node.sh" "$work/set/train" \
	"${train[@]}" --out "$work/out"
result $? 'jobs_on_a_node.sh ends' "$(cat "$work"/job.*)"
check 'and its jobs have read each sample once per epoch' \
	'(len(jobs) == 4 and len(nodes) == 1 and
	all(all_of([j], e) == every for j in jobs for e in (0, 1)))'
[ -z "$(pgrep -f 'tsock-producer --name data')" ]
result $? 'and its producer has ended with them'

# --- an array of jobs on three nodes ---

submit --array 0-5 --cpus-per-task 8 -- "$examples/sweep.sh" "${train[@]}" \
	--out "$work/out" --root "$work/set/train"
result $? 'sweep.sh ends' "$(cat "$work"/job.*)"
check 'and its jobs on three nodes have read each sample once per epoch' \
	'(len(jobs) == 6 and len(nodes) == 3 and
	all(all_of([j], e) == every for j in jobs for e in (0, 1)))'

# --- a job of four ranks on two nodes ---

submit --cpus-per-task 1 -- "$examples/one_job.sh" "${train[@]}" \
	--out "$work/out" --root "$work/set/train"
result $? 'one_job.sh ends' "$(cat "$work"/job.*)"
check 'and its ranks on two nodes have read each sample once per epoch' \
	'(len(jobs) == 4 and len(nodes) == 2 and
	all(all_of(jobs, e) == every for e in (0, 1)))'
finished
