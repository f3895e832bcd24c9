/* SPDX-License-Identifier: MIT */
/*
 * common.h - what consumers and servers share: the version, errors, the log and
 * fields.  tsock.h includes this header and states the rules that hold for all
 * functions.
 */
#ifndef TSOCK_COMMON_H
#define TSOCK_COMMON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TSOCK_API __attribute__((visibility("default")))
#else
#define TSOCK_API
#endif

#define TSOCK_VERSION_MAJOR 0 /* the Makefile reads these three lines */
#define TSOCK_VERSION_MINOR 1
#define TSOCK_VERSION_PATCH 0

/* Values are ABI: append, never renumber. */
enum tsock_err {
	TSOCK_OK = 0,
	TSOCK_EAGAIN = -1,  /* nothing yet; try again (carries no message) */
	TSOCK_EEPOCH = -2,  /* no more batches in this epoch (no message) */
	TSOCK_EENDED = -3,  /* the stream has ended: its last epoch is over */
	TSOCK_ELOST = -4,   /* the producer is gone, or dropped this consumer */
	TSOCK_EARG = -5,    /* an argument is wrong; the message names it */
	TSOCK_ENOMEM = -6,  /* memory, address space or a cgroup's limit */
	TSOCK_ESYS = -7,    /* a system call failed; the message names it */
	TSOCK_ENOPROD = -8, /* no producer serves that name */
	TSOCK_EREFUSED = -9, /* the producer refused; the message says why */
	TSOCK_EPROTO = -10,  /* the peer speaks another version, or nonsense */
	TSOCK_EFORK = -11,   /* the handle was opened before a fork */
	TSOCK_EHELD = -12,   /* batches that are still held block the stream */
	TSOCK_ESTREAM = -13, /* the producer stopped the stream on an error */
	TSOCK_EDATA = -14,   /* bad data: a file or an image; says which */
	TSOCK_ENOTSUP = -15, /* this build or this kernel can't do that */
	TSOCK_EEXIST = -16,  /* another producer serves that name already */
};

/*
 * Version of the library at run time: major << 16 | minor << 8 | patch.  The
 * soname has the major number, and before 1.0 the minor one too.
 */
TSOCK_API uint32_t tsock_abi_version(void);
TSOCK_API const char *tsock_version_string(void);

/* The detail of this thread's latest failure; never NULL.  Any thread. */
TSOCK_API const char *tsock_errmsg(void);

/* A constant name such as "TSOCK_ELOST"; never NULL.  Any thread. */
TSOCK_API const char *tsock_strerror(int err);

/* What a warning is about: tsock_serve_warn(), tsock_warning(). */
enum tsock_warning_kind {
	TSOCK_WARNING_OTHER = 0,
	TSOCK_WARNING_BAD_FILES = 1,
};

enum tsock_log_level {
	TSOCK_LOG_ERROR = 0,
	TSOCK_LOG_WARN = 1,
	TSOCK_LOG_INFO = 2,
	TSOCK_LOG_DEBUG = 3,
};

/*
 * Send log lines (one line, no newline) to fn; NULL, the default, drops them
 * unless $TSOCK_LOG is set.
 * fn may be called from any thread.  Set it before anything is opened.
 *
 * While this process serves a stream, a thread of the library calls fn, and
 * nothing waits for it: while fn blocks, lines are dropped, and the next line
 * says how many.
 */
TSOCK_API void
tsock_set_logger(void (*fn)(void *arg, int level, const char *line), void *arg);

/* ------------------------------------------------------------------------
 * Fields
 */

/* Values are ABI: append, never renumber. */
enum tsock_dtype {
	TSOCK_U8 = 1,
	TSOCK_I32 = 2,
	TSOCK_I64 = 3,
	TSOCK_F16 = 4,
	TSOCK_BF16 = 5,
	TSOCK_F32 = 6,
	/* Of fields; no view makes them of an image. */
	TSOCK_F64 = 7,
	TSOCK_I8 = 8,
	TSOCK_I16 = 9,
	TSOCK_U16 = 10,
	TSOCK_U32 = 11,
	TSOCK_U64 = 12,
	TSOCK_BOOL = 13, /* a byte, 0 or 1 */
};

enum tsock_layout {
	TSOCK_HWC = 0,
	TSOCK_CHW = 1,
};

/* What a float image holds, from its 8-bit value v and channel c. */
enum tsock_normalize {
	TSOCK_RAW = 0,      /* v itself */
	TSOCK_UNIT = 1,     /* v / 255 */
	TSOCK_MEAN_STD = 2, /* (v / 255 - mean[c]) / std[c], in float32 */
};

#define TSOCK_MAX_DIMS 4
#define TSOCK_MAX_FIELDS 16
#define TSOCK_FIELD_IMAGE 1u /* u8 [height, width, 3 or 1]: converted */
#define TSOCK_FIELD_TEXT 2u  /* u8 [n]: UTF-8, ended by a zero */
/*
 * [longest, ...]: zeros, or another value that the data set has chosen, follow
 * a sample's values where it has fewer, and the field of this name with
 * "_length" behind it (int32) says how many it has.
 */
#define TSOCK_FIELD_RAGGED 4u
/* [..., longest]: likewise, but of the last dimension. */
#define TSOCK_FIELD_RAGGED_LAST 8u

struct tsock_field {
	char name[32];
	uint32_t dtype; /* enum tsock_dtype */
	uint32_t flags; /* TSOCK_FIELD_* */
	uint32_t ndim;  /* of one sample; 0 is a scalar */
	uint32_t reserved;
	uint64_t shape[TSOCK_MAX_DIMS];
};

/* Bytes of one element; 0 for an unknown dtype. */
TSOCK_API size_t tsock_dtype_size(uint32_t dtype);

#ifdef __cplusplus
}
#endif

#endif
