/* SPDX-License-Identifier: MIT */
/*
 * option_table.c - what tsock-producer's command line may say.
 */
#include "cli/option_table.h"

#include "cli/options.h"

#define MAX_RING (UINT64_C(1) << 24)

#define AT(member) .at = offsetof(struct tsi_options, member)
#define RANGE(low, high) .min = (low), .max = (high)

const struct tsi_opt tsi_opts[] = {
	{ .kind = TSI_OPT_GROUP, .name = "Data set" },
	{ TSI_OPT_CHOICE, "dataset", TSI_FORMAT_WORDS, TSI_FORMAT_HELP,
	  AT(dataset), .letter = 'd' },
	{ TSI_OPT_TEXT, "root", "DIR", "where it is", AT(data.root),
	  .letter = 'r' },
	{ TSI_OPT_CHOICE, "split", "train|val",
	  "which part: the folder of that name (imagenet: train), or the one "
	  "called training, or valid, validation or test",
	  AT(data.split) },
	{ TSI_OPT_TEXT, "select", "FILE",
	  "serve the samples alone that it names, one a line: the path of a "
	  "file below the root, or the name in a tar file; behind it, if "
	  "wanted, a tab and a weight, for the field weight",
	  AT(select) },
	{ TSI_OPT_SWITCH, "keys", NULL,
	  "say of each sample what it is called, in the field key: the path of "
	  "its file below the root, or its key in a tar file, 1023 bytes at "
	  "most",
	  AT(keys) },
	{ TSI_OPT_SWITCH, "grows", NULL,
	  "look all the time whether files are added or removed, and serve the "
	  "data set as it is then from the next epoch on that isn't begun",
	  AT(grows) },
	{ TSI_OPT_COUNT, "seed", "N", "of the order and the augmentation (0)",
	  AT(seed), RANGE(0, UINT64_MAX) },
	{ TSI_OPT_CHOICE, "order", "philox|torch|sequential",
	  "philox: a new uniform shuffle per epoch (the default of train);\n"
	  "torch: the order that PyTorch's DataLoader would visit;\n"
	  "sequential: the data set's own (the default of eval)",
	  AT(order) },
	{ TSI_OPT_COUNT, "segments", "N",
	  "cut epochs into N parts at which a consumer may begin one "
	  "(1; sequential: 64, or the data set's size if smaller)",
	  AT(segments), RANGE(1, 65536) },
	{ TSI_OPT_SHARD, "shard", "R/WORLD",
	  .help = "serve the part of rank R (from 0) of WORLD, as "
		  "DistributedSampler cuts it" },
	{ TSI_OPT_SWITCH, "allow-empty", NULL,
	  "a class without images is no error: it keeps its label",
	  AT(allow_empty) },
	{ TSI_OPT_SWITCH, "rescan", NULL, "scan the data set again",
	  AT(rescan) },
	{ TSI_OPT_TEXT, "cache-dir", "DIR",
	  "keep the scan of the data set and the index of its JPEGs there "
	  "($XDG_CACHE_HOME/tsock, else ~/.cache/tsock)",
	  AT(cache) },
	{ TSI_OPT_NO_CACHE, "no-cache", NULL,
	  .help = "keep no scan and no index on disk, and use none" },
	{ TSI_OPT_CHOICE, "on-error", "substitute|raise",
	  "a bad file: put a good one of its class in its place and count it "
	  "(default), or stop the stream, naming it",
	  AT(on_error) },
	{ TSI_OPT_SHARE, "allow-bad", "SHARE",
	  "serve a data set of which more can't be read, from 0 to 1 (0.01), "
	  "or "
	  "a class of which nothing can be: else that is an error at the "
	  "start, "
	  "and a warning in every job if it is found later",
	  AT(allow_bad) },

	{ .kind = TSI_OPT_GROUP, .name = "Images" },
	{ TSI_OPT_CHOICE, "preset", TSI_PRESET_WORDS, TSI_PRESET_HELP,
	  AT(preset_given) },
	{ TSI_OPT_COUNT, "size", "PIXELS", "side of the finished image (224)",
	  AT(size), RANGE(1, TSI_IMAGE_SIZE_MAX) },
	{ TSI_OPT_COUNT, "resize", "PIXELS",
	  "eval: the shorter side before the crop (256)", AT(resize),
	  RANGE(1, TSI_IMAGE_SIZE_MAX) },
	{ TSI_OPT_COUNT, "pillow", "MAJOR",
	  "whose pixels to give: Pillow 13 and later resize some crops "
	  "in another order than 12 and before, with differences of "
	  "one level (13)",
	  AT(pillow), RANGE(1, 99) },
	{ TSI_OPT_SWITCH, "fast", NULL,
	  "JPEG with fewer computations and other pixels than Pillow's: chroma "
	  "is repeated instead of interpolated, and what is shrunk to half or "
	  "less is decoded at 1/2, 1/4 or 1/8 of its size",
	  AT(fast) },

	{ .kind = TSI_OPT_GROUP, .name = "Stream" },
	{ TSI_OPT_NAME, "name", "NAME",
	  "what consumers call it (imagenet, or the folder's name, with "
	  "-val for the val split)",
	  .letter = 'n' },
	{ TSI_OPT_COUNT, "ring", "SAMPLES",
	  "held in memory (2048; more if the next two need it)", AT(ring),
	  RANGE(1, MAX_RING) },
	{ TSI_OPT_COUNT, "max-batch", "SAMPLES",
	  "largest batch that a consumer may ask for (512)", AT(max_batch),
	  RANGE(1, MAX_RING / 4) },
	{ TSI_OPT_COUNT, "join-window", "SAMPLES",
	  "so far into an epoch late joiners still get all of it (half "
	  "the ring)",
	  AT(join_window), RANGE(1, MAX_RING) },
	{ TSI_OPT_BYTES, "memory", "SIZE",
	  "most that all rings may take, e.g. 4G (what there is)", AT(memory),
	  RANGE(1 << 20, UINT64_C(1) << 50) },
	{ TSI_OPT_BYTES, "image-memory", "SIZE",
	  "most that large images may take while they are decoded; one that "
	  "alone needs more is bad (2G, but at most --memory and half of "
	  "what there is)",
	  AT(image_memory), RANGE(1 << 20, UINT64_C(1) << 50) },
	{ TSI_OPT_BYTES, "index-memory", "SIZE",
	  "for where the rows of JPEG files begin, so that crops are decoded "
	  "from there on in later epochs (4G, but at most a sixteenth of what "
	  "there is)",
	  AT(index_memory), RANGE(1 << 10, UINT64_C(1) << 50) },
	{ TSI_OPT_SWITCH, "no-index", NULL,
	  "decode every JPEG file from its beginning", AT(no_index) },
	{ TSI_OPT_BYTES, "cache", "SIZE",
	  "keep so much of JPEG images in memory, packed, about twice as large "
	  "as the files: later epochs take a fraction of the time (none)",
	  AT(image_cache), RANGE(1 << 20, UINT64_C(1) << 50) },
	{ TSI_OPT_SLOW, "slow", "block|detach:SEC|kill:SEC",
	  .help = "a consumer that holds others up: wait for it (default), "
		  "or, after SEC seconds, go on without it, so that it misses "
		  "samples, or kill it" },
	{ TSI_OPT_COUNT, "min-consumers", "N",
	  "decode nothing before so many have joined (1), unless readers of "
	  "the producer before go on with this one",
	  AT(min_consumers), RANGE(1, 256) },
	{ TSI_OPT_COUNT, "epochs", "N",
	  "end the stream after N epochs (0: never)", AT(epochs),
	  RANGE(0, UINT32_MAX) },
	{ TSI_OPT_IDLE, "exit-when-idle", "SEC",
	  .help = "exit when no consumer read, and no loader was connected, "
		  "for SEC seconds; before the first reader, for two "
		  "minutes at least" },
	{ TSI_OPT_SWITCH, "supervise", NULL,
	  "start the stream again when its process is killed; consumers wait "
	  "for it, and go on",
	  AT(supervise) },

	{ .kind = TSI_OPT_GROUP, .name = "Machine" },
	{ TSI_OPT_AUTO, "threads", "N|auto",
	  "that decode (auto: as many as affinity and quota allow CPUs, "
	  "shared\nwith your other streams here while they have readers)",
	  AT(threads), RANGE(1, 1024), .letter = 'j' },
	{ TSI_OPT_COUNT, "numa-node", "N",
	  "have threads and memory on this NUMA node (any): on that of the "
	  "GPUs "
	  "or the disks, for example",
	  AT(numa_node), RANGE(0, 1023) },
	{ TSI_OPT_CHOICE, "io", "auto|uring|pread",
	  "how files are read (auto: io_uring where the kernel lets us)",
	  AT(io) },
	{ TSI_OPT_SWITCH, "direct", NULL,
	  "read files past the page cache (O_DIRECT), so that they push "
	  "nothing "
	  "else out of it; every epoch reads them from the disk",
	  AT(direct) },
	{ TSI_OPT_AHEAD, "read-ahead", "SIZE|auto|off",
	  "bring so much of the files that come next into the page cache: from "
	  "a rotating disk in the order in which they lie there, from a "
	  "network "
	  "several at once (auto: 256M, but at most a sixteenth of what there "
	  "is, and from no other disk)",
	  AT(read_ahead), RANGE(1 << 20, UINT64_C(1) << 50) },

	{ .kind = TSI_OPT_GROUP, .name = "GPUs" },
	{ TSI_OPT_BYTES, "gpu-memory", "SIZE",
	  "most that the rings on one GPU may take (any)", AT(gpu_memory),
	  RANGE(1 << 20, UINT64_C(1) << 50) },
	{ TSI_OPT_CHOICE, "fanout", "auto|peer|nccl|host",
	  "how samples reach a GPU when another one has them: from "
	  "that one, by a broadcast, or from host memory (auto: the "
	  "faster of the first and the last)",
	  AT(fanout) },
	{ TSI_OPT_CHOICE, "gpu-transport", "auto|vmm|legacy|staged",
	  "how consumers open GPU memory; staged: they copy from "
	  "host memory themselves (auto: the first that works)",
	  AT(gpu_transport) },

	{ .kind = TSI_OPT_GROUP, .name = "Messages" },
	{ TSI_OPT_QUIET, "quiet", NULL, "errors alone, and no live line",
	  .letter = 'q' },
	{ TSI_OPT_CHOICE, "log-level", "error|warn|info|debug",
	  "how much (info)", AT(log_level) },

	{ .kind = TSI_OPT_GROUP, .name = "Instead of serving" },
	{ TSI_OPT_MODE, "check-config", NULL,
	  "check the options and the folder, and exit", .min = TSI_RUN_CHECK },
	{ TSI_OPT_MODE, "dry-run", NULL,
	  "look at every file, say which are bad, what would be served and "
	  "the memory that it needs, and exit",
	  .min = TSI_RUN_DRY },
	{ TSI_OPT_MODE, "list", NULL,
	  "list the streams that run here, and exit", .min = TSI_RUN_LIST,
	  .letter = 'l' },
	{ TSI_OPT_MODE, "stop", "NAME",
	  "end the stream of that name for good: its consumers wait for no "
	  "other producer, and start none; where it has any, asks first",
	  AT(stop), .min = TSI_RUN_STOP },
	{ TSI_OPT_SWITCH, "force", NULL, "with --stop: don't ask", AT(force) },
	{ TSI_OPT_MODE, "devices", NULL,
	  "list the GPUs that this process can use, and how, and exit",
	  .min = TSI_RUN_DEVICES },
	{ TSI_OPT_MODE, "version", NULL, "print the version, and exit",
	  .min = TSI_RUN_VERSION, .letter = 'V' },
	{ TSI_OPT_MODE, "help", NULL, "print this, and exit",
	  .min = TSI_RUN_HELP, .letter = 'h' },
};

#define COUNT (sizeof(tsi_opts) / sizeof(tsi_opts[0]))

const size_t tsi_opts_count = COUNT;
_Static_assert(COUNT <= TSI_OPTS_MAX, "TSI_OPTS_MAX is too small");
