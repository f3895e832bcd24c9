#!/bin/bash
# SPDX-License-Identifier: MIT
# aarch64.sh - what the suite aarch64 of run.sh stands on, on a machine with
# x86-64 and Debian or Ubuntu: a cross compiler, qemu-user, and a root with the
# arm64 packages that a build needs.  The machine's own packages stay those of
# its architecture: apt has a configuration and lists of its own here.
#
#   aarch64.sh             make it ready in build/aarch64, unless it is
#   aarch64.sh run PROGRAM one test program, emulated; what qemu-user can't run
#                          is skipped: test/aarch64.skip names it
#
# build/aarch64 has the root, a compiler (gcc) for it and an emulator (qemu).
set -u
cd "$(dirname "$0")/.." || exit 1
here=$PWD/build/aarch64
root=$here/root
packages='libc6-dev libzmq3-dev libjpeg-dev libpng-dev zlib1g-dev liburing-dev
	libxxhash-dev librandom123-dev libwebp-dev libtiff-dev
	libsndfile1-dev libsoxr-dev
	libcmocka-dev'

cannot()
{
	echo "aarch64.sh: $*"
	exit 77
}

# What is the machine's configuration, but for its architecture, where its files
# are, and what it does behind an update.
configure_apt()
{
	mkdir -p "$here/apt/lists/partial" "$here/apt/archives/partial"
	: >"$here/apt/status"
	cat >"$here/apt/conf" <<EOT
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::State "$here/apt";
Dir::State::status "$here/apt/status";
Dir::State::lists "$here/apt/lists";
Dir::Cache "$here/apt";
Dir::Cache::archives "$here/apt/archives";
EOT
}

# Unpack what was fetched; links to /X lead to the root's X.
unpack()
{
	local package link
	mkdir -p "$root.new/usr/bin" "$root.new/usr/sbin" "$root.new/usr/lib"
	ln -s usr/bin usr/sbin usr/lib "$root.new"
	for package in "$here"/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root.new" \
			--keep-directory-symlink --no-same-owner \
			--exclude=./usr/share/doc --exclude=./usr/share/man ||
			return 1
	done
	find "$root.new" -type l -lname '/*' | while IFS= read -r link; do
		ln -sfnr "$root.new$(readlink "$link")" "$link"
	done
}

make_root()
{
	local log=$here/log
	[ "$(cat "$root/made-of" 2>/dev/null)" != "$packages" ] || return 0
	rm -rf "$root" "$root.new" "$here/apt"
	configure_apt
	echo "fetching arm64 packages into build/aarch64"
	# shellcheck disable=SC2086 # a list
	if ! apt-get -c "$here/apt/conf" update >"$log" 2>&1 ||
		! apt-get -c "$here/apt/conf" -y -d install $packages \
			>>"$log" 2>&1; then
		tail -n 5 "$log"
		cannot "the package sources of this machine have no arm64" \
			"packages; build/aarch64/log says more"
	fi
	unpack || exit 1
	echo "$packages" >"$root.new/made-of"
	rm -rf "$here/apt/archives"
	mv "$root.new" "$root"
}

# make_tool NAME COMMAND: a script that runs the command.
make_tool()
{
	printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$here/$1.new"
	chmod +x "$here/$1.new"
	mv "$here/$1.new" "$here/$1"
}

make_ready()
{
	local qemu
	[ "$(uname -m)" = x86_64 ] ||
		cannot "this is $(uname -m): make check tests it"
	command -v dpkg-deb >/dev/null ||
		cannot 'not Debian or Ubuntu: there are no arm64 packages'
	test/setup.sh aarch64 || exit 1
	qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
		cannot 'no qemu-aarch64'
	make_root
	make_tool gcc "aarch64-linux-gnu-gcc --sysroot='$root'"
	make_tool qemu "$qemu -L '$root'"
}

# skipped PROGRAM: its lines of test/aarch64.skip, as CASE REASON.
skipped()
{
	awk -v program="$1" '$1 == program { $1 = ""; print substr($0, 2) }' \
		test/aarch64.skip
}

# Cases that are expected to fail are skipped, each with its reason, if they do.
mark()
{
	awk -v list="$1" 'BEGIN {
		while ((getline line <list) > 0) {
			name = line
			sub(/ .*/, "", name)
			sub(/^[^ ]+ /, "", line)
			why[name] = line
		}
	}
	/^not ok [0-9]+ - / && ($5 in why) {
		print why[$5]
		print "not ok " $3 " # SKIP " $5
		next
	}
	{ print }'
}

# Exit code 99 is that of test/lib/audit.h: a case that ended in the middle
# leaves something behind.
run()
{
	local name=${1##*/} list log rc
	list=$(mktemp) log=$(mktemp) || exit 1
	# shellcheck disable=SC2064 # now
	trap "rm -f '$list' '$log'" EXIT
	skipped "$name" >"$list"
	if grep -q '^[*] ' "$list"; then
		sed -n 's/^[*] //p' "$list"
		exit 77
	fi
	"$here/qemu" "$@" >"$log" 2>&1
	rc=$?
	mark "$list" <"$log"
	if [ $rc != 0 ] && [ $rc -lt 124 ] && [ -s "$list" ] &&
		! mark "$list" <"$log" | grep -q '^not ok [0-9]* - '; then
		rc=0
	fi
	exit $rc
}

case ${1:-} in
'') make_ready ;;
run)
	shift
	run "$@"
	;;
*)
	echo 'usage: test/aarch64.sh [run PROGRAM]' >&2
	exit 2
	;;
esac
