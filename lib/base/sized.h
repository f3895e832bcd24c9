/* SPDX-License-Identifier: MIT */
/*
 * sized.h - public structs that grow at their end.
 *
 * The first member of each is a uint32_t size: how many bytes the struct has in
 * the header that the caller was compiled with.  So a caller and a library of
 * different versions understand each other.
 */
#ifndef TSI_BASE_SIZED_H
#define TSI_BASE_SIZED_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a struct up to the end of a member. */
#define TSI_SIZED_TO(type, member) \
	(offsetof(type, member) + sizeof(((type *)0)->member))

struct tsi_sized {
	const char *name; /* of the argument, for messages: "opts" */
	const char *hint; /* how the caller gets it right */
	size_t least;     /* a smaller one is a mistake */
	size_t size;      /* this version's */
};

/* All that tsock.h has. */
extern const struct tsi_sized tsi_sized_opts, tsi_sized_info, tsi_sized_stats,
	tsi_sized_serve_opts, tsi_sized_geometry, tsi_sized_order_opts,
	tsi_sized_rank_opts, tsi_sized_part_opts, tsi_sized_gpu_samples,
	tsi_sized_table_info;

/*
 * Read a caller's options into *to, which holds the defaults: those that the
 * caller's struct doesn't have keep them.  call is the public function's name.
 * TSOCK_EARG for NULL, a size that can't be, and an option beyond this
 * version's that is set, that is not zero.  *to is changed on success only.
 */
int tsi_sized_read(const char *call, const struct tsi_sized *type,
		   const void *from, void *to);

/* Can a result be written there?  TSOCK_EARG for NULL, or a wrong size. */
int tsi_sized_check(const char *call, const struct tsi_sized *type,
		    const void *out);

/*
 * Write a result, this version's struct, as much of it as the caller's has;
 * what only the caller's has becomes zero.  out->size is then how many bytes
 * were written of from.
 */
void tsi_sized_write(const struct tsi_sized *type, const void *from, void *out);

#endif
