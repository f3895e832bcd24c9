#!/bin/bash
# SPDX-License-Identifier: MIT
# cli.sh - tsock-producer's command line, its messages and its exit codes, and
# what it leaves behind.
. "$(dirname "$0")/producer.bash"

# --- words ---

"$producer" --help >"$work/out" 2>"$work/err" </dev/null
[ $? = 0 ] && [ ! -s "$work/err" ] && grep -q -- --root "$work/out" &&
	grep -q 'Exit status' "$work/out" &&
	[ -z "$(awk 'length > 79' "$work/out")" ]
result $? '--help is complete, in 80 columns, on standard output'
version=$("$producer" --version)
[[ $version =~ ^tsock-producer\ [0-9]+\.[0-9]+\.[0-9]+$'\n' ]]
result $? '--version names the version' "$version"
number='[0-9]+\.[0-9]+(\.[0-9.]+)?'
[[ $version =~ libjpeg-turbo\ $number,\ libpng\ $number,\ zlib\ $number,\ \
libwebp\ ($number|none),\ libtiff\ ($number|none),\ \
libavif\ ($number|none),\ libzmq\ $number,\ with(out)?\ liburing$ ]]
result $? '--version names the libraries' "$version"
[ "$("$producer" --list)" = 'no streams run here' ]
result $? '--list says that there is none'
"$producer" --help >/dev/full 2>"$work/err"
[ $? = 71 ] && grep -q 'standard output' "$work/err"
result $? 'a full disk under standard output is an error'

usage()
{
	local pattern=$1
	shift
	fails 2 "$pattern" "refused: $*" "$producer" "$@"
}
usage 'root'
usage 'root' --dataset imagenet
usage 'imagenet.imagefolder' --dataset coco
usage 'unknown option --rings' "${set[@]}" --rings 5
usage 'unexpected.*extra' "${set[@]}" extra
usage 'train.val' "${set[@]}" --split test
usage 'philox.torch.sequential' "${set[@]}" --order random
usage '1 to' "${set[@]}" --ring 0
usage 'whole number' "${set[@]}" --threads many
usage '4G' "${set[@]}" --memory 4X
usage 'below' "${set[@]}" --shard 2/2
usage 'block.detach:SEC.kill' "${set[@]}" --slow drop:3
usage 'substitute.raise' "${set[@]}" --on-error ignore
usage 'from 0 to 1' "${set[@]}" --allow-bad 2
usage 'torch' "${set[@]}" --order torch --segments 3
usage 'name' "${set[@]}" --name ../x
usage 'no-cache' "${set[@]}" --cache-dir x --no-cache
usage 'select' "${set[@]}" --grows --select x
usage 'needs a value' "${set[@]}" --seed

# --- data sets ---

q=("$producer" --quiet --no-cache)
fails 66 'No such file' 'a missing root' "${q[@]}" -d imagenet -r /nowhere
fails 66 'not a folder' 'a root that is a file' \
	"${q[@]}" -d imagenet -r /etc/passwd
mkdir -p "$work/empty/train" "$work/noclass" "$work/hollow/a" \
	"$work/hollow/b" "$work/text/a"
fails 66 'train' 'a root without the split' \
	"${q[@]}" -d imagenet -r "$work/set/train"
fails 66 'empty' 'an empty root' "${q[@]}" -d imagenet -r "$work/empty"
cp "$(find "$work/set/train" -name '*.J*' | head -n 1)" "$work/noclass/"
fails 66 'noclass' 'files, and no class' \
	"${q[@]}" -d imagefolder -r "$work/noclass"
fails 66 'hollow' 'classes without a file' \
	"${q[@]}" -d imagefolder -r "$work/hollow"
echo 'no image' >"$work/text/a/x.JPEG"
fails 66 'x.JPEG' 'nothing but a text file' \
	"${q[@]}" -d imagefolder -r "$work/text"
cp -r "$work/hollow" "$work/mixed"
cp "$(find "$work/set/train" -name '*.J*' | head -n 1)" "$work/mixed/a/1.JPEG"
fails 66 'b' 'one class without a file' \
	"${q[@]}" -d imagefolder -r "$work/mixed"
if [ "$(id -u)" = 0 ]; then
	skip 'a root that may not be read' 'root may read everything'
else
	mkdir -m 000 "$work/closed"
	fails 66 'denied' 'a root that may not be read' \
		"${q[@]}" -d imagefolder -r "$work/closed"
fi
fails 78 'segments' 'more segments than samples' \
	"${q[@]}" "${set[@]}" --segments 37
fails 78 'memory' 'a ring above --memory' \
	"${q[@]}" "${set[@]}" --memory 9M
fails 78 'a ring of 108 samples takes 16.3 MB, more than --memory.s 12.6 MB' \
	'a ring that the scan finds to be above --memory' \
	"$producer" --dry-run --quiet "${set[@]}" --memory 12M

fails 78 'two batches of 512 with a join window of 128 need 1152' \
	'a ring of bytes that has no room for the batches' \
	"${q[@]}" "${set[@]}" --ring 64M --max-batch 512
fails 78 'numa-node 1023: th' 'a NUMA node that is not there' \
	"${q[@]}" "${set[@]}" --numa-node 1023

# --- instead of serving ---

"$producer" --check-config "${set[@]}" >"$work/out" 2>"$work/err"
[ $? = 0 ] && grep -q fine "$work/out" && [ ! -s "$work/err" ]
result $? '--check-config is content' "$(cat "$work/err")"
"$producer" --check-config "${set[@]:2}" >"$work/out" 2>"$work/err"
[ $? = 0 ] && grep -q fine "$work/out"
result $? 'what lies in the root is the data set' "$(cat "$work/err")"
"$producer" --describe --root "$work/set" --seed 3 >"$work/out" 2>"$work/err"
[ $? = 0 ] && [ ! -s "$work/err" ] &&
	[ "$(head -n 3 "$work/out" | tr '\n' ' ')" = \
		'name=imagenet dataset=imagenet dataset=imagefolder ' ] &&
	grep -qx seed=3 "$work/out" && ! grep -q samples= "$work/out"
result $? '--describe says what would be served' "$(cat "$work/out")"
"$producer" --describe --root /nowhere/x --split val >"$work/out" \
	2>"$work/err"
[ $? = 0 ] && [ ! -s "$work/err" ] && grep -qx name=x-val "$work/out" &&
	grep -qx root=/nowhere/x/val "$work/out"
result $? '--describe needs no data set' "$(cat "$work/out")"
fails 66 'nowhere' '--check-config looks for the root' \
	"$producer" --check-config -d imagenet -r /nowhere
if [ -e /sys/devices/system/node/node0/cpulist ]; then
	# Fine where this process may use a CPU of it, else a sentence says so.
	want='NUMA node 0'
	"$producer" --check-config "${set[@]}" --numa-node 0 >"$work/out" \
		2>"$work/err" || want='may use none'
	grep -q "$want" "$work/err"
	result $? '--numa-node of a node that is there' "$(cat "$work/err")"
else
	skip '--numa-node of a node that is there' 'no NUMA in this kernel'
fi
mkdir "$work/pack"
: >"$work/pack/pack.index"
fails 78 'never grows' 'a pack does not grow' \
	"$producer" --check-config -d imagefolder -r "$work/pack" --grows
"$producer" --dry-run "${set[@]}" >"$work/out" 2>"$work/err"
[ $? = 0 ] && grep -Eq '^samples +36 in 3 classes' "$work/out" &&
	grep -q '16.3 MB' "$work/out" && grep -q float32 "$work/out"
result $? '--dry-run says what would be served, and the memory' \
	"$(cat "$work/out")"
grep -Eq '^cost +[1-9][0-9,]* us for an image .median of 32, by one thread' \
	"$work/out"
result $? '--dry-run measures what the recipe costs' "$(cat "$work/out")"
"$producer" --dry-run --quiet "${set[@]}" >"$work/out"
grep -q 'kept from before' "$work/out"
result $? 'the second scan comes from the cache' "$(cat "$work/out")"
[ -z "$(ls -A "$TSOCK_DIR")" ]
result $? 'neither leaves anything in the folder of the sockets' \
	"$(ls -A "$TSOCK_DIR")"

# --- a bad file ---

cp -r "$work/set" "$work/bad"
good=$(find "$work/bad/train" -name '*.J*' | sort | head -n 1)
good2=$(find "$work/set/train" -name '*.J*' | sort | head -n 1)
victim=$(find "$work/bad/train" -name '*.J*' | sort | sed -n 2p)
echo 'this is no image' >"$victim"
"$producer" --dry-run --quiet -d imagenet -r "$work/bad" >"$work/out"
grep -q "$(basename "$victim")" "$work/out" &&
	grep -Eq '^bad files +1$' "$work/out"
result $? '--dry-run lists the bad file' "$(cat "$work/out")"
mkdir -p "$work/few/a"
cp "$good2" "$work/few/a/good.jpg"
head -c 400 "$good2" >"$work/few/a/short.jpg"
"$producer" --dry-run --quiet --no-cache -d imagefolder -r "$work/few" \
	--transform 'CenterCrop(32) Grayscale(1)' >"$work/out"
grep -Eq '^cost .*median of 1, by one thread' "$work/out" &&
	grep -Eq '^images +32 x 32 grey$' "$work/out"
result $? '--dry-run measures good images alone' "$(cat "$work/out")"
bad=(-d imagenet -r "$work/bad" "${small[@]}" --preset eval)
# One of 36 is more than a hundredth.
fails 66 "1 of 36 files .2.78 %. can't be read.*--allow-bad 0.03" \
	'a start that would lose so many is refused' \
	"$producer" "${bad[@]}" --quiet --name bad
"$producer" "${bad[@]}" --dry-run --name bad >"$work/out" 2>"$work/err"
[ $? = 66 ] && grep -Eq '^bad files +1$' "$work/out" &&
	grep -q -- '--allow-bad 0.03' "$work/err"
result $? '--dry-run says that it would be' "$(cat "$work/out" "$work/err")"
start "$producer" "${bad[@]}" --allow-bad 0.03 --epochs 1 --name bad &&
	"$seen" bad 7 1 >"$work/out" 2>&1
# What stands in for it comes twice: seen has to say so.
[ $? = 1 ] && grep -q '36 samples, 35 different' "$work/out"
result $? 'a bad file is replaced by another one' "$(cat "$work/log" "$work/out")"
ended
[ $? = 0 ] && grep -q 'bad file' "$work/log" &&
	grep -q "$(basename "$victim")" "$work/log"
result $? 'and told at the end' "$(cat "$work/log")"
stop
start "$producer" "${bad[@]}" --on-error raise --name bad
timeout 90 "$seen" bad 7 1 >"$work/out" 2>&1
[ $? = 1 ] && grep -q "$(basename "$victim")" "$work/out"
result $? 'with --on-error raise its name reaches the consumer' \
	"$(cat "$work/log" "$work/out")"
ended
[ $? = 1 ]
result $? 'and the producer ends with 1' "$(cat "$work/log")"
stop

# Unlinked after the scan.
start "$producer" "${bad[@]}" --allow-bad 0.03 --epochs 1 --name gone
rm "$good"
timeout 90 "$seen" gone 7 1 >"$work/out" 2>&1
grep -q '36 samples, 34 different' "$work/out"
result $? 'a file that has gone since the scan is replaced' \
	"$(cat "$work/log" "$work/out")"
ended
grep -q 'No such file' "$work/log"
result $? 'and told' "$(cat "$work/log")"
stop

# --- what people give for a data set ---

image=$(find "$work/set/train" -name '*.J*' | sort | head -n 1)
mkdir -p "$work/flat/val" "$work/tars/train" "$work/cifar" \
	"$work/kaggle/ILSVRC/Data/CLS-LOC/train/n01" "$work/one/only" \
	"$work/kaggle/ILSVRC/Annotations"
cp "$image" "$work/flat/val/ILSVRC2012_val_00000001.JPEG"
mkdir -p "$work/table" "$work/parquet" "$work/unfilled/dog" "$work/unfilled/cat" \
	"$work/several/valid" "$work/several/test" "$work/split/train/a" \
	"$work/split/valid/a"
cp "$image" "$work/table/1.JPEG"
cp "$image" "$work/unfilled/cat/1.JPEG"
cp "$image" "$work/split/train/a/1.JPEG"
cp "$image" "$work/split/valid/a/2.JPEG"
touch "$work/table/labels.csv" "$work/parquet/train.parquet"
touch "$work/tars/ILSVRC2012_img_train.tar" "$work/tars/train/n01440764.tar" \
	"$work/cifar/data_batch_1" "$work/cifar/batches.meta"
cp "$image" "$work/kaggle/ILSVRC/Data/CLS-LOC/train/n01/1.JPEG"
cp "$image" "$work/one/only/1.JPEG"
for mode in --quiet --check-config --dry-run; do
	layout=("$producer" "$mode" --no-cache)
	fails 66 'images side by side.*folder of its class' \
		"$mode: a validation set without classes" \
		"${layout[@]}" -d imagenet -r "$work/flat" --split val
	fails 66 'images .1. and no folders.*one folder per class' \
		"$mode: images without classes" \
		"${layout[@]}" -d imagefolder -r "$work/flat/val"
	fails 66 '1 tar file .n01440764.tar.: give.*webdataset.*unpack' "$mode: tar files" \
		"${layout[@]}" -d imagenet -r "$work/tars"
	fails 66 'CIFAR batch files .*--dataset cifar10' "$mode: CIFAR" \
		"${layout[@]}" -d imagefolder -r "$work/cifar"
	fails 66 'images and no folders, beside 1 CSV file .labels.csv.: .*tsock.index' \
		"$mode: images beside a table of labels" \
		"${layout[@]}" -d imagefolder -r "$work/table"
	fails 66 'no folders of images but 1 Parquet file.*tsock.index DIR' \
		"$mode: Parquet" "${layout[@]}" -d imagefolder -r "$work/parquet"
	fails 78 "tsock.index $work/parquet .*--split val.* --root" \
		"$mode: Parquet that is recognised" \
		"${layout[@]}" -r "$work/parquet"
	fails 78 "$work/parquet is no table.* --root" \
		"$mode: a split of Parquet that is recognised" \
		"${layout[@]}" -r "$work/parquet" --split val
	fails 66 'no folder .*/val, but valid and test: .*/valid --preset eval' \
		"$mode: two folders that may be the split" \
		"${layout[@]}" -d imagenet -r "$work/several" --split val
	fails 2 's3://b/d: files .* mount-s3 .*docs/operate/object-stores.md' \
		"$mode: an address" "${layout[@]}" -d webdataset -r s3://b/d
	fails 2 '--select hf://x/y: files .* by hf download' \
		"$mode: another one" "${layout[@]}" -d images -r / \
		--select hf://x/y
	fails 66 "Kaggle.*--root $work/kaggle/ILSVRC/Data/CLS-LOC" \
		"$mode: Kaggle's ImageNet" \
		"${layout[@]}" -d imagenet -r "$work/kaggle"
	fails 66 "Kaggle.*--root $work/kaggle/ILSVRC/Data/CLS-LOC" \
		"$mode: Kaggle's ImageNet as a folder of images" \
		"${layout[@]}" -d imagefolder -r "$work/kaggle"
	fails 78 'memory.*--ring' "$mode: a ring above --memory" \
		"${layout[@]}" "${set[@]}" --memory 9M
	fails 71 'of memory are available .by .*--ring' \
		"$mode: a ring above the machine's memory" \
		"${layout[@]}" "${set[@]}" --ring 80000 --size 4096
done
"$producer" --dry-run --no-cache -d imagefolder -r "$work/set" \
	>"$work/out" 2>"$work/err"
grep -q "classes are called train and val: --root seems.*$work/set/train" \
	"$work/err"
result $? 'a root that is one folder too high gets a warning' \
	"$(cat "$work/err")"
"$producer" --dry-run --no-cache -d imagenet -r "$work/split" --split val \
	>"$work/out" 2>"$work/err"
grep -q "$work/split/valid" "$work/out" &&
	grep -Eq '^stream +imagenet-val$' "$work/out"
result $? 'a split is found by its usual other names' \
	"$(cat "$work/out" "$work/err")"
fails 66 'dog holds no files; --allow-empty keeps' 'an empty class' \
	"$producer" --quiet --dry-run --no-cache -d imagefolder \
	-r "$work/unfilled"
"$producer" --dry-run --no-cache -d imagefolder -r "$work/unfilled" \
	--allow-empty >"$work/out" 2>"$work/err"
grep -Eq '^samples +1 in 2 classes' "$work/out"
result $? '--allow-empty keeps an empty class' "$(cat "$work/out" "$work/err")"
"$producer" --dry-run --no-cache -d imagefolder -r "$work/one" \
	>"$work/out" 2>"$work/err"
grep -q 'there is one class, only' "$work/err" &&
	grep -Eq '^samples +1 in 1 class ' "$work/out" &&
	grep -Eq '^stream +one$' "$work/out" &&
	grep -q 'join window 32' "$work/out"
result $? 'one class gets a warning, and is singular' \
	"$(cat "$work/out" "$work/err")"

# --- names that a terminal would obey ---

mkdir -p "$work/odd/a"
cp "$good2" "$work/odd/a/1.JPEG"
printf 'x' >"$work/odd/a/"$'evil\n\033[2J\377.JPEG'
"$producer" --dry-run --no-cache -d imagefolder -r "$work/odd" \
	>"$work/out" 2>"$work/err"
LC_ALL=C grep -qF 'evil\n\x1b[2J\xff.JPEG' "$work/out" &&
	! LC_ALL=C grep -q $'\033' "$work/out" "$work/err"
result $? 'an odd file name is spelt out' "$(cat -v "$work/out")"
fails 66 'evil.n.x1b.2J' 'and so in a message' \
	"${q[@]}" -d imagefolder -r "$work/odd/a/"$'evil\n\033[2J\377.JPEG'

# --- one name, one producer ---

start "$producer" "${set[@]}" "${small[@]}"
result $? 'a producer serves' "$(cat "$work/log")"
for mode in --quiet --check-config --dry-run; do
	fails 69 "$pid" "$mode: a second one under its name is refused" \
		"$producer" "$mode" --no-cache "${set[@]}" "${small[@]}"
done
await_listed imagenet
grep -Eq "^imagenet +$pid +36 +0 " "$work/out"
result $? '--list shows it' "$(cat "$work/out")"

# sockets_of PID, and those of them that other machines could reach: which of
# them the kernel lists is no other program's doing.
sockets_of()
{
	find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n'
}
ports_of()
{
	local tables=(/proc/"$1"/net/{tcp,udp,udplite,raw}{,6})
	awk 'NR == FNR { own[$1]; next } $10 in own' <(sockets_of "$1") \
		<(cat "${tables[@]}" 2>/dev/null)
}
[ "$(sockets_of "$pid" | wc -l)" -ge 2 ] && [ -z "$(ports_of "$pid")" ]
result $? 'it opens no port' "$(ports_of "$pid")"
if { exec 9<>/dev/udp/127.0.0.1/9; } 2>/dev/null; then
	[ "$(ports_of $BASHPID | wc -l)" = 1 ]
	result $? 'a port would have been found'
	exec 9>&-
else
	skip 'a port would have been found' 'no network to open one in'
fi
kill -STOP "$pid"
for mode in --check-config --dry-run; do
	fails 69 "$pid" "$mode: it is refused if the first one is stopped" \
		"$producer" "$mode" --no-cache "${set[@]}" "${small[@]}"
done
# Not after the scan, which may take long, and which fails here.
mkdir -p "$work/unfilled/a"
fails 69 "$pid" 'a name is locked before the scan' "$producer" --quiet \
	--no-cache -d imagefolder -r "$work/unfilled" --name imagenet
"$producer" --list >"$work/out"
kill -CONT "$pid"
grep -Eq "/imagenet +does not answer" "$work/out"
result $? '--list shows that one was stopped' "$(cat "$work/out")"
start_first=$pid
"$producer" "${set[@]}" "${small[@]}" --split val --shard 1-2/4 --quiet \
	2>"$work/err" &
second=$!
await_listed imagenet-val
grep -Eq '^imagenet-val .* 1-2/4  -$' "$work/out"
result $? '--list shows which part a stream is' "$(cat "$work/out")"
timeout 90 "$seen" imagenet-val 5 1 >"$work/out" 2>&1
result $? 'the val split is another stream' "$(cat "$work/out" "$work/err")"
kill "$second"
wait "$second"
[ $? = 0 ] && [ ! -s "$work/err" ]
result $? '--quiet has nothing to say' "$(cat "$work/err")"
pid=$start_first

# --- the end ---

timeout 90 "$seen" imagenet 7 0 >"$work/out" 2>&1 &
consumer=$!
for _ in $(seq 1800); do
	"$producer" --list | grep -Eq '^imagenet +[0-9]+ +36 +1 ' && break
	sleep 0.05
done
stop
rc=$?
[ "$rc" = 0 ] && grep -q 'closing' "$work/log"
result $? 'SIGTERM is a clean end' "exit code $rc" "$(cat "$work/log")"
wait "$consumer"
grep -q 'seen: ' "$work/out"
result $? 'its consumer is told' "$(cat "$work/out")"
[ -z "$(find "$TSOCK_DIR" -name '*.bus' -o -name '*.door')" ]
result $? 'no socket is left' "$(ls "$TSOCK_DIR")"
start "$producer" "${set[@]}" "${small[@]}" && kill -INT "$pid"
ended
result $? 'SIGINT is one, too' "$(cat "$work/log")"
start "$producer" "${set[@]}" "${small[@]}" --exit-when-idle 0.3 &&
	timeout 90 "$seen" imagenet 7 1 >"$work/out" 2>&1
ended
[ $? = 0 ] && grep -q 'no consumer' "$work/log"
result $? '--exit-when-idle ends it' "$(cat "$work/log")"
start "$producer" "${set[@]}" "${small[@]}" --epochs 2 &&
	timeout 90 "$seen" imagenet 7 0 >"$work/out" 2>&1
[ $? = 0 ] && [ "$(grep -c 'exactly once' "$work/out")" = 2 ]
result $? '--epochs 2 gives two' "$(cat "$work/out")"
ended
[ $? = 0 ] && grep -q 'last epoch' "$work/log"
result $? 'and ends it' "$(cat "$work/log")"
stop

# --- standard error has gone ---

"$producer" "${set[@]}" "${small[@]}" --epochs 1 --name dumb \
	0<&- 1>&- 2>&- &
pid=$!
await_listed dumb
timeout 90 "$seen" dumb 7 1 >"$work/out" 2>&1
result $? 'it serves with its three descriptors closed' "$(cat "$work/out")"
ended
result $? 'and ends well'
stop
"$producer" "${set[@]}" "${small[@]}" --epochs 1 --name dumb \
	2> >(exec 0<&-; exit 0) &
pid=$!
await_listed dumb
timeout 90 "$seen" dumb 7 1 >"$work/out" 2>&1
result $? 'it serves with nobody to listen' "$(cat "$work/out")"
ended
result $? 'and ends well'
stop

# --- shards ---

start "$producer" "${set[@]}" "${small[@]}" --shard 1/5 --epochs 1 &&
	timeout 90 "$seen" imagenet 3 1 >"$work/out" 2>&1
grep -q ' 8 samples' "$work/out"
result $? '--shard serves ceil(N / world) samples' "$(cat "$work/out")"
stop

# --- selections ---

(cd "$work/set/train" && find . -name '*.J*' | sort | head -n 7) >"$work/seven"
start "$producer" "${set[@]}" "${small[@]}" --select "$work/seven" --epochs 1 &&
	timeout 90 "$seen" imagenet 3 1 >"$work/out" 2>&1
grep -q ' 7 samples' "$work/out"
result $? '--select serves the samples that a file names' "$(cat "$work/out")"
stop
"$producer" --dry-run "${set[@]}" --select "$work/seven" >"$work/out" 2>&1
grep -q "^samples       7 in " "$work/out" &&
	grep -q "^selection     of [0-9]*, by .*/seven$" "$work/out" &&
	grep -q '^epoch         7 samples$' "$work/out"
result $? '--dry-run shows the selection' "$(cat "$work/out")"
echo 'nothing.JPEG' >>"$work/seven"
fails 66 'seven, line 8: .*no sample .nothing.JPEG' 'a name of no sample' \
	"${q[@]}" "${set[@]}" --select "$work/seven"
fails 66 'seven, line 8: .*no sample .nothing.JPEG' 'and to --check-config' \
	"${q[@]}" "${set[@]}" --check-config --select "$work/seven"
printf 'x\t-3\n' >"$work/heavy"
fails 66 'heavy, line 1: .*no weight' '--check-config reads the weights' \
	"${q[@]}" "${set[@]}" --check-config --select "$work/heavy"

# --- classes ---

mkdir -p "$work/set/val/zzz"
"$producer" --dry-run "${set[@]}" >"$work/out" 2>"$work/err"
grep -q 'different classes' "$work/err"
result $? 'splits with different classes get a warning' "$(cat "$work/err")"

finished
