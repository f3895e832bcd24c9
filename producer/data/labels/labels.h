/* SPDX-License-Identifier: MIT */
/*
 * labels.h - labels and fields of a data set's samples that come from a file,
 * or from files beside the images, and not from the data set itself.
 *
 * Classes are numbered for all labels of the file, whichever samples are
 * there.
 */
#ifndef TSI_DATA_LABELS_LABELS_H
#define TSI_DATA_LABELS_LABELS_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_format;
struct tsi_root;
struct tsi_table;
struct tsi_labels;

/*
 * Read what --labels says.  root is the path of the data set, or NULL where it
 * isn't known yet: then classes may be numbered otherwise.  Fails with EARG
 * (the option), EDATA (the file, naming the line), ENOTSUP, ESYS, ENOMEM.
 */
int tsi_labels_open(const char *text, const char *root,
		    struct tsi_labels **out);

/* NULL is allowed. */
void tsi_labels_close(struct tsi_labels *x);

/*
 * Give all rows of t, which is of this format and has no columns yet, their
 * labels and fields as columns.  Rows without a label are no error yet.  Called
 * once.  Fails with EDATA, ENOTSUP, ESYS, ENOMEM.
 */
int tsi_labels_apply(struct tsi_labels *x, const struct tsi_format *f,
		     struct tsi_table *t, unsigned threads);

/*
 * With the rows of t that are left: that each has a label, and their classes
 * are those of the labels from now on.  Logs how many labels were no row's.  Fails with EDATA (naming rows that have
 * none), ENOMEM.
 */
int tsi_labels_finish(struct tsi_labels *x, const struct tsi_format *f,
		      struct tsi_table *t);

/* Labels are, or have, numbers of classes. */
bool tsi_labels_classed(const struct tsi_labels *x);

/* The file's, or the folder's, absolute path. */
const char *tsi_labels_path(const struct tsi_labels *x);

/*
 * A number for the file's bytes and how they are read; that of a text without
 * more ado, in which case it fails as tsi_labels_open() does.
 */
uint64_t tsi_labels_fingerprint(const struct tsi_labels *x);
int tsi_labels_describe(const char *text, uint64_t *out);

/*
 * Is the file as it was when it was read?  If not, *now is a number for what it
 * is now.  Of a folder of labels it isn't known: true.
 */
bool tsi_labels_look(const struct tsi_labels *x, uint64_t *now);

#endif
