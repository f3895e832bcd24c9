# SPDX-License-Identifier: MIT
# venv.bash - build/venv, with the Python packages that tests need.

installer= # the process group that fills it

# pip_install SECONDS VENV PACKAGE...
pip_install()
{
	timeout --foreground "$1" "$2/bin/python" -m pip install --quiet \
		--retries 2 --disable-pip-version-check "${@:3}" </dev/null
}

# Installed once; what the network didn't give is tried again the next time,
# and so is what the list has got since.  2: without torch.
install_venv()
{
	local venv=build/venv log=$logs/venv.log
	local small='numpy pillow pytest mypy libclang lmdb zstandard soundfile soxr'
	local all="$small torch torchvision timm"
	[ "$(cat $venv/filled 2>/dev/null)" != "$all" ] || return 0
	command -v python3 >/dev/null || return 1
	: >"$log"
	if [ ! -e $venv/filled ]; then
		python3 -m venv --clear $venv >"$log" 2>&1 || return 1
	fi
	# shellcheck disable=SC2086 # lists
	if pip_install 1200 $venv $all >>"$log" 2>&1; then
		echo "$all" >$venv/filled
		return 0
	fi
	# shellcheck disable=SC2086 # a list
	pip_install 600 $venv $small >>"$log" 2>&1 || return 1
	return 2
}

# While other suites run: most of it is waiting for the network.
start_venv()
{
	[ -z "$installer" ] || return 0
	set -m # a process group of its own, which can be killed
	(
		trap - EXIT
		install_venv
		rc=$?
		note_cpu 'filling of build/venv'
		echo $rc >"$scratch/venv"
	) &
	installer=$!
	set +m
}

fill_venv()
{
	start_venv
	[ -s "$scratch/venv" ] || say '      build/venv is being filled'
	while [ ! -s "$scratch/venv" ] && kill -0 "$installer" 2>/dev/null; do
		sleep 0.1
		reap
	done
	case $(cat "$scratch/venv" 2>/dev/null) in
	0) ;;
	2)
		skip 'tests against torch and torchvision' \
			"pip can't install them: $(tail -n 1 $logs/venv.log)"
		;;
	*) return 1 ;;
	esac
}

# link_bytecode FOLDER: make it the cache of bytecode (PYTHONPYCACHEPREFIX), with
# links to the bytecode that came with python and with the packages of build/venv.
# Without them, each program of pytest that starts with an empty cache compiles
# the sources of torch again.
link_bytecode()
{
	[ ! -e "$1" ] || return 0
	build/venv/bin/python -IB - "$1" >"$logs/bytecode.log" 2>&1 <<'PYTHON'
import os
import sys
import sysconfig
from importlib.util import cache_from_source

sys.pycache_prefix = os.path.abspath(sys.argv[1])
tail = ".%s.pyc" % sys.implementation.cache_tag
for top in sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"):
    for folder, _, files in os.walk(top):
        package, name = os.path.split(folder)
        found = [f for f in files if f.endswith(tail)]
        if name != "__pycache__" or not found:
            continue
        into = os.path.dirname(cache_from_source(package + "/x.py"))
        os.makedirs(into, exist_ok=True)
        for f in found:
            os.symlink(os.path.join(folder, f), os.path.join(into, f))
PYTHON
}

stop_venv()
{
	[ -z "$installer" ] || kill -- "-$installer" 2>/dev/null
}
