/* SPDX-License-Identifier: MIT */
/*
 * format.h - what a data set format is: where samples are, and what is in
 * them.
 *
 * A format is one file (or folder) that defines a struct tsi_format, and one
 * line in TSI_FORMATS.  It says which rows a data set has and where the bytes
 * of a row are; it never reads samples: the index (index.h) keeps the rows,
 * and the caller reads and decodes.
 */
#ifndef TSI_DATA_FORMAT_H
#define TSI_DATA_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/documents.h"
#include "data/root.h"
#include "data/table.h"
#include "tsock/tsock.h"

/* What the options say of how a data set is read. */
struct tsi_format_opts {
	const char *schema; /* of a sample in its file; NULL: wasn't given */
	bool held_out;      /* the part for evaluation, of a set with two */
	struct tsi_documents_opts documents; /* of tokens */
	unsigned threads;                    /* that a scan may use */
	bool named; /* samples' names will be asked for */
};

/* Samples that are crops of audio files: float32 [channels, frames]. */
struct tsi_sound {
	uint32_t channels;
	uint32_t frames; /* 0: samples are none */
	uint32_t rate;   /* to which files are resampled; 0: they aren't */
};

/* What samples are, known before they are scanned. */
struct tsi_samples {
	bool imageless; /* no recipe makes them */
	struct tsi_sound sound;
	/*
	 * The recipes of training and evaluation where none is asked for;
	 * empty: the presets train and eval.
	 */
	char train[128], eval[128];
	/* The size that all images have; 0: they differ. */
	uint32_t width, height;
};

struct tsi_format {
	const char *name; /* what --dataset calls it */

	/*
	 * What a cached scan is kept as: formats of the same layout have the
	 * same rows in the same root.  A scan that finds other rows than
	 * before needs another word.  A part of a file's name.
	 */
	const char *layout;

	/* Without --split: DIR/train is served, or else DIR itself. */
	bool has_splits;
	/*
	 * The root has no folders of the parts: --split chooses among the
	 * files in it, or says what the samples are for.
	 */
	bool splits_inside;
	/* --schema means something. */
	bool has_schema;
	/* --documents means something. */
	bool has_documents;
	/* Without --name: the stream is called by the format, or the folder. */
	bool names_stream;
	/* A folder of files per class, which --root is checked for. */
	bool has_class_folders;
	/* Each sample is a file of its own, so that others may lie beside it. */
	bool has_file_each;
	/* Samples have no names, for --select and --keys. */
	bool nameless;
	/* Samples lie in files as arrays, of which nothing is decoded. */
	bool of_arrays;
	/* Samples have no classes: their label is -1. */
	bool unlabelled;
	/*
	 * Its scan reads an index that was written once: the cache keeps no
	 * copy, and no sample is looked at but those that scan marks bad.
	 */
	bool keeps_index;

	/*
	 * Find the data set at root: open r there.  Reads no samples.  Also
	 * after a failure r is the caller's to close.
	 * Fails with EARG (there is none, in the format's own words), ESYS.
	 */
	int (*open)(const char *root, struct tsi_root *r);

	/*
	 * What samples of the data set at root are.  Reads no more than a
	 * file's head.  Fails as open and scan do.  NULL: images, as usual.
	 */
	int (*look)(const char *root, const struct tsi_format_opts *o,
		    struct tsi_samples *out);

	/*
	 * Fill the empty table t with the rows of the data set, in an order
	 * that depends on the data set alone, all sizes 0, and with a stamp of
	 * every folder and file whose change may change the rows.  Rows that
	 * it marks bad are all looked at, and good unless that finds them bad.
	 * Called once, without a lock; may log.
	 * Fails with EDATA (no samples, or what isn't this format), ENOTSUP,
	 * ESYS, ENOMEM; the caller clears t then.
	 */
	int (*scan)(const struct tsi_root *r, const struct tsi_format_opts *o,
		    struct tsi_table *t);

	/* The bytes of sample i: their file and range.  Any thread. */
	void (*locate)(const struct tsi_table *t, uint64_t i,
		       struct tsi_location *out);

	/*
	 * The bytes of image k behind the first of sample i, whose columns have
	 * any.  NULL: there are none.  Any thread.
	 */
	void (*locate_other)(const struct tsi_table *t, unsigned k, uint64_t i,
			     struct tsi_location *out);

	/*
	 * The name of sample i, where locate leaves that out because it takes
	 * long the first time; else NULL.  Any thread.
	 */
	const char *(*member)(const struct tsi_table *t, uint64_t i);

	/* The label of sample i, an index of a class.  Any thread. */
	int64_t (*label)(const struct tsi_table *t, uint64_t i);
	/* Those of n samples, from sample i on; NULL: label says each one. */
	void (*labels)(const struct tsi_table *t, uint64_t i, unsigned n,
		       int64_t *to);

	/*
	 * The fields of a sample that come from the data set.  An image's
	 * first two dimensions are 0: the options say how large it becomes.
	 */
	const struct tsock_field *fields;
	unsigned nfields;
};

/* The fields of a data set of images, each with a class. */
#define TSI_FORMAT_IMAGE_FIELDS \
	{ .name = "image", \
	  .dtype = TSOCK_U8, \
	  .flags = TSOCK_FIELD_IMAGE, \
	  .ndim = 3, \
	  .shape = { 0, 0, 3 } }, \
	{ \
		.name = "label", .dtype = TSOCK_I64 \
	}

/* Calls of a format's operations. */
static inline int tsi_format_open(const struct tsi_format *f, const char *root,
				  struct tsi_root *r)
{
	return f->open(root, r);
}

static inline int tsi_format_look(const struct tsi_format *f, const char *root,
				  const struct tsi_format_opts *o,
				  struct tsi_samples *out)
{
	*out = (struct tsi_samples){ .imageless = false };
	return f->look ? f->look(root, o, out) : 0;
}

static inline int tsi_format_scan(const struct tsi_format *f,
				  const struct tsi_root *r,
				  const struct tsi_format_opts *o,
				  struct tsi_table *t)
{
	return f->scan(r, o, t);
}

/* The bytes of sample i, whose name may be missing: for each sample. */
static inline void tsi_format_locate_bytes(const struct tsi_format *f,
					   const struct tsi_table *t,
					   uint64_t i, struct tsi_location *out)
{
	f->locate(t, i, out);
}

static inline void tsi_format_locate(const struct tsi_format *f,
				     const struct tsi_table *t, uint64_t i,
				     struct tsi_location *out)
{
	f->locate(t, i, out);
	if (f->member)
		out->member = f->member(t, i);
}

static inline void tsi_format_locate_other(const struct tsi_format *f,
					   const struct tsi_table *t,
					   unsigned k, uint64_t i,
					   struct tsi_location *out)
{
	f->locate_other(t, k, i, out);
}

static inline int64_t tsi_format_label(const struct tsi_format *f,
				       const struct tsi_table *t, uint64_t i)
{
	return f->label(t, i);
}

static inline void tsi_format_labels(const struct tsi_format *f,
				     const struct tsi_table *t, uint64_t i,
				     unsigned n, int64_t *to)
{
	if (f->labels) {
		f->labels(t, i, n, to);
		return;
	}
	for (unsigned k = 0; k < n; k++)
		to[k] = f->label(t, i + k);
}

/* What a format says of itself. */
static inline const char *tsi_format_name(const struct tsi_format *f)
{
	return f->name;
}

static inline const char *tsi_format_layout(const struct tsi_format *f)
{
	return f->layout;
}

static inline bool tsi_format_has_splits(const struct tsi_format *f)
{
	return f->has_splits;
}

static inline bool tsi_format_splits_inside(const struct tsi_format *f)
{
	return f->splits_inside;
}

static inline bool tsi_format_has_schema(const struct tsi_format *f)
{
	return f->has_schema;
}

static inline bool tsi_format_has_documents(const struct tsi_format *f)
{
	return f->has_documents;
}

static inline bool tsi_format_names_stream(const struct tsi_format *f)
{
	return f->names_stream;
}

static inline bool tsi_format_has_class_folders(const struct tsi_format *f)
{
	return f->has_class_folders;
}

static inline bool tsi_format_has_file_each(const struct tsi_format *f)
{
	return f->has_file_each;
}

static inline bool tsi_format_nameless(const struct tsi_format *f)
{
	return f->nameless;
}

static inline bool tsi_format_of_arrays(const struct tsi_format *f)
{
	return f->of_arrays;
}

static inline bool tsi_format_unlabelled(const struct tsi_format *f)
{
	return f->unlabelled;
}

static inline bool tsi_format_keeps_index(const struct tsi_format *f)
{
	return f->keeps_index;
}

static inline const struct tsock_field *
tsi_format_fields(const struct tsi_format *f, unsigned *n)
{
	*n = f->nfields;
	return f->fields;
}

/* Are samples crops of audio files? */
static inline bool tsi_format_has_audio(const struct tsi_format *f)
{
	return f->nfields && f->fields[0].dtype == TSOCK_F32 &&
	       f->fields[0].ndim == 2;
}

/*
 * All formats, in the order in which --help lists them, with what it says of
 * each.
 */
#define TSI_FORMATS(F) \
	F(imagenet, "DIR/train and DIR/val, a folder per class in each") \
	F(imagefolder, "DIR itself, or DIR/SPLIT with --split") \
	F(images, "DIR's images at any depth, without classes") \
	F(webdataset, "the tar files of DIR, or DIR/train-{000..146}.tar; " \
		      "images with .cls " \
		      "or .json beside them") \
	F(table, "a file that tsock.index() wrote: images by their ranges in " \
		 "files of any kind, labels and fields of any kind") \
	F(arrow, "such a file, of Arrow files; tsock.DataLoader writes it of " \
		 "a folder that save_to_disk() wrote") \
	F(parquet, "likewise, of Parquet files, as on Hugging Face's Hub") \
	F(cifar10, "the folder of CIFAR-10's files, Python's or the binary " \
		   "ones") \
	F(cifar100, "the folder of CIFAR-100's files, likewise") \
	F(mnist, "the folder of MNIST's or Fashion-MNIST's files, unpacked") \
	F(imagenet32, "the folder of downsampled ImageNet's batches, 32 x 32 " \
		      "pixels, pickled or .npz") \
	F(imagenet64, "likewise, 64 x 64") \
	F(npy, "a .npy or .npz file, or the folder of such files: NumPy's " \
	       "arrays, whose first dimension is the samples'") \
	F(records, "a file of binary records of one size, or the folder of " \
		   "such files; --schema says what is in them") \
	F(audio, \
	  "the audio files of DIR, a folder per class, or none and any " \
	  "depth; --schema says how long a sample is") \
	F(tokens, "a .bin file of tokens, as nanoGPT, llm.c and Megatron-LM " \
		  "write it, or the folder of such files; --schema says how " \
		  "many a sample has") \
	F(packed, "what tsock-pack wrote to DIR; the others find it there " \
		  "too")

#define TSI_FORMAT_EXTERN(name, help) \
	extern const struct tsi_format tsi_format_##name;
TSI_FORMATS(TSI_FORMAT_EXTERN)
#undef TSI_FORMAT_EXTERN

/* webdataset, of samples whose labels are elsewhere: they need none. */
extern const struct tsi_format tsi_format_webdataset_bare;

/* Their names, for --dataset: "imagenet|imagefolder". */
#define TSI_FORMAT_WORD(name, help) "|" #name
#define TSI_FORMAT_WORDS (&TSI_FORMATS(TSI_FORMAT_WORD)[1])

/* A line of --help for each: "imagenet: DIR/train ...;\nimagefolder: ...". */
#define TSI_FORMAT_LINE(name, help) ";\n" #name ": " help
#define TSI_FORMAT_HELP (&TSI_FORMATS(TSI_FORMAT_LINE)[2])

/* How many they are. */
#define TSI_FORMAT_ONE(name, help) +1
#define TSI_FORMATS_COUNT (0u TSI_FORMATS(TSI_FORMAT_ONE))

/* Format k of TSI_FORMATS. */
const struct tsi_format *tsi_format_at(unsigned k);

/* The format that reads the same files and wants no class of them. */
const struct tsi_format *tsi_format_classless(const struct tsi_format *f);

#endif
