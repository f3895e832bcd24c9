/* SPDX-License-Identifier: MIT */
/*
 * neighbours.h - the producers of this user here, and the CPUs that each takes.
 *
 * Each producer keeps a small file, NAME.cpus, beside its stream's sockets:
 * how many readers and threads it has, which CPUs it may use, and its cgroup.
 * The file is locked as long as the process lives; a file without a lock is a
 * dead producer's and doesn't count.  All look into the folders in which
 * consumers look, so a producer with another TSOCK_DIR isn't seen.
 *
 * One thread at a time.
 */
#ifndef TSI_CLI_NEIGHBOURS_H
#define TSI_CLI_NEIGHBOURS_H

#include <stdbool.h>

struct tsi_neighbours;

/* Make the file of the stream called name; its folder exists: ENOMEM, ESYS. */
int tsi_neighbours_open(const char *name, struct tsi_neighbours **out);
/* Remove it.  NULL is allowed. */
void tsi_neighbours_close(struct tsi_neighbours *n);

/*
 * Tell the others: readers of the stream, threads that there are, and how many
 * of them may work.  Affinity and quota are read anew each time.  A file that
 * was removed is made again as soon as its folder is there.
 */
void tsi_neighbours_tell(struct tsi_neighbours *n, unsigned readers,
			 unsigned threads, unsigned working);

/*
 * How many threads may work by what all have told, at least 1; rivals: other
 * streams that have readers and may use some of these CPUs.
 */
unsigned tsi_neighbours_share(struct tsi_neighbours *n, unsigned *rivals);

/* What the stream of that name and folder has told; false: nothing. */
bool tsi_neighbours_ask(const char *folder, const char *name, unsigned *working,
			unsigned *threads);

#endif
