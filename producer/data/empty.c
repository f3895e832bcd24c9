/* SPDX-License-Identifier: MIT */
/*
 * empty.c - classes whose folders hold no images: most often they are no
 * classes.
 */
#include "data/empty.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "data/contents.h"

#define SHOWN 4 /* classes in a message */
#define DEEP 3  /* folders that hold folders alone */

struct finding {
	uint32_t empty;
	int kind;       /* of files in the first such class that has one */
	char where[64]; /* that class */
	bool other;     /* one of them holds something */
	bool hub;       /* there are the folders of a hub's cache */
	char list[512];
	size_t len;
};

static void append_finding(struct finding *f, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(f->list + f->len, sizeof(f->list) - f->len, format, ap);
	va_end(ap);
	if (n > 0)
		f->len += (size_t)n;
	if (f->len >= sizeof(f->list))
		f->len = sizeof(f->list) - 1;
}

static void note(struct finding *f, const struct tsi_root *r, const char *class)
{
	char name[64], what[160];
	struct tsi_contents c;
	int kind;

	f->hub = f->hub || !strcmp(class, "blobs") ||
		 !strcmp(class, "snapshots");
	if (f->empty++ >= SHOWN)
		return;
	tsi_text_printable(name, sizeof(name), class);
	tsi_contents_look(tsi_root_fd(r), class, DEEP, &c);
	kind = tsi_contents_most(&c);
	if (kind >= 0 && f->kind < 0) {
		f->kind = kind;
		strcpy(f->where, name);
	}
	f->other = f->other || c.files;
	append_finding(f, "%s%s holds %s", f->len ? ", " : "", name,
		       tsi_contents_say(&c, what, sizeof(what)));
}

/* What to do, in a half-sentence. */
static void advise(const struct finding *f, const struct tsi_root *r, char *to,
		   size_t len)
{
	if (f->hub)
		snprintf(to, len,
			 "this looks like the cache of Hugging Face's hub: "
			 "open it by datasets.load_dataset() and serve a "
			 "DataLoader of that: tsock.serve(loader, \"NAME\")");
	else if (tsi_contents_is_native(f->kind))
		snprintf(to, len,
			 "tar files are read with --dataset webdataset --root "
			 "%s/%s",
			 tsi_root_path(r), f->where);
	else if (f->kind >= 0)
		snprintf(to, len,
			 "if %s is no class, give the folder that holds the "
			 "classes' folders alone as --root (links to them "
			 "do); otherwise %s",
			 f->where, tsi_contents_way(f->kind));
	else if (f->other)
		snprintf(to, len,
			 "if these are no classes, give the folder that holds "
			 "the classes' folders alone as --root (links to them "
			 "do); --allow-empty keeps them as classes without "
			 "samples");
	else
		snprintf(to, len,
			 "--allow-empty keeps them as classes without "
			 "samples");
}

static int report(const struct finding *f, const struct tsi_root *r,
		  uint32_t classes)
{
	char what[1024];

	advise(f, r, what, sizeof(what));
	return tsi_err(TSOCK_EDATA,
		       "%u of %u classes in %.300s have no images: %s%s; %s",
		       f->empty, classes, tsi_root_path(r), f->list,
		       f->empty > SHOWN ? ", ..." : "", what);
}

int tsi_empty_check(const struct tsi_format *f, const struct tsi_root *r,
		    const struct tsi_table *t)
{
	uint32_t classes = tsi_table_classes(t);
	uint64_t n = tsi_table_count(t);
	bool *has = calloc((size_t)classes + 1, sizeof(*has));
	struct finding found = { .kind = -1 };

	if (!has)
		return tsi_err(TSOCK_ENOMEM, "no memory to index the data set");
	for (uint64_t i = 0; i < n; i++)
		has[tsi_format_label(f, t, i)] = true;
	for (uint32_t k = 0; k < classes; k++)
		if (!has[k])
			note(&found, r, tsi_table_class(t, k));
	free(has);
	return found.empty ? report(&found, r, classes) : 0;
}
