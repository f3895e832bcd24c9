#!/bin/bash
# SPDX-License-Identifier: MIT
# cluster.sh - a Slurm cluster of three nodes, all of them on this machine, in
# namespaces of its own; runs a command there and ends with it.
#
#   cluster.sh FOLDER COMMAND...
#
# FOLDER takes logs and state.  77: no cluster can be had here, and why.
# Wants root, and Slurm and MUNGE as test/setup.sh slurm installs them.
set -u
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
shift

no_cluster()
{
	echo "cluster.sh: $*" >&2
	exit 77
}

if [ -z "${TSOCK_TEST_CLUSTER:-}" ]; then
	[ "$(id -u)" = 0 ] || no_cluster 'wants root'
	PATH=$PATH:/usr/sbin:/sbin
	for tool in slurmctld slurmd srun munged unshare ip; do
		command -v $tool >/dev/null || no_cluster "no $tool"
	done
	apart=(unshare --net --pid --fork --mount --mount-proc --kill-child)
	"${apart[@]}" true 2>"$folder/unshare.log" ||
		no_cluster "no namespaces: $(head -n 1 "$folder/unshare.log")"
	export TSOCK_TEST_CLUSTER=1 PATH
	exec "${apart[@]}" "$here/cluster.sh" "$folder" "$@"
fi

# slurmctld and slurmd look their addresses up, and a machine with a loopback
# address alone has none.
network()
{
	ip link set lo up &&
		ip link add tsock0 type veth peer name tsock1 &&
		ip addr add 10.0.7.1/24 dev tsock0 &&
		ip link set tsock0 up && ip link set tsock1 up
}

munge()
{
	dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 2>/dev/null
	chmod 600 "$folder/munge.key"
	munged --force --key-file="$folder/munge.key" --num-threads=1 \
		--socket="$folder/munge.socket" --pid-file="$folder/munge.pid" \
		--log-file="$folder/munge.log" --seed-file="$folder/munge.seed"
}

configure()
{
	cat >"$folder/slurm.conf" <<-END
	ClusterName=tsock
	SlurmctldHost=$host(10.0.7.1)
	SlurmUser=root
	SlurmdUser=root
	AuthType=auth/munge
	AuthInfo=socket=$folder/munge.socket
	CredType=cred/munge
	StateSaveLocation=$folder/state
	SlurmdSpoolDir=$folder/spool.%n
	SlurmctldPidFile=$folder/slurmctld.pid
	SlurmdPidFile=$folder/slurmd.%n.pid
	SlurmctldLogFile=$folder/slurmctld.log
	SlurmdLogFile=$folder/slurmd.%n.log
	SlurmctldPort=17000
	ProctrackType=proctrack/pgid
	TaskPlugin=task/none
	SlurmdParameters=config_overrides
	SchedulerParameters=sched_interval=1,batch_sched_delay=0
	SelectType=select/cons_tres
	SelectTypeParameters=CR_CPU
	ReturnToService=2
	MpiDefault=none
	KillWait=1
	NodeName=n[1-3] NodeHostname=$host NodeAddr=10.0.7.1 Port=[17001-17003] CPUs=16 RealMemory=1000
	PartitionName=all Nodes=n[1-3] Default=YES State=UP OverSubscribe=FORCE:4
	END
}

# Until all nodes are idle, or a minute has passed.
await_nodes()
{
	for _ in $(seq 600); do
		[ "$(sinfo -h -o '%T %D' 2>/dev/null)" = 'idle 3' ] && return 0
		sleep 0.1
	done
	return 1
}

host=$(hostname -s)
export SLURM_CONF=$folder/slurm.conf
mkdir -p "$folder/state"
network || no_cluster 'no network in a namespace'
munge 2>"$folder/munged.err" ||
	no_cluster "munged: $(head -n 1 "$folder/munged.err")"
configure
slurmctld -D >"$folder/slurmctld.out" 2>&1 &
stepd=
for file in /usr/lib/*/slurm-wlm/sbin/slurmstepd /usr/sbin/slurmstepd-wlm \
	/usr/sbin/slurmstepd; do
	[ ! -x "$file" ] || stepd=$file
done
for node in n1 n2 n3; do
	mkdir -p "$folder/spool.$node"
	slurmd -D -N $node ${stepd:+-d "$stepd"} >"$folder/slurmd.$node.out" 2>&1 &
done
if ! await_nodes; then
	sinfo
	tail -n 3 "$folder"/*.log "$folder"/*.out
	exit 1
fi
"$@"
