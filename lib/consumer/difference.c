/* SPDX-License-Identifier: MIT */
/*
 * difference.c - is that the same stream, of which a number means the same
 * sample?
 */
#include "consumer/difference.h"

#include <stdio.h>
#include <string.h>

struct text {
	char *at;
	size_t size, len;
};

static void add_difference(struct text *t, const char *what, const char *was,
			   size_t nwas, const char *is, size_t nis)
{
	int n = snprintf(t->at + t->len, t->size - t->len,
			 "%s%s was %.*s and is %.*s", t->len ? ", " : "", what,
			 (int)nwas, was, (int)nis, is);

	t->len += n > 0 ? (size_t)n : 0;
	if (t->len >= t->size)
		t->len = t->size - 1;
}

static void add_number(struct text *t, const char *what, uint64_t was,
		       uint64_t is)
{
	char a[24], b[24];

	if (was == is)
		return;
	snprintf(a, sizeof(a), "%llu", (unsigned long long)was);
	snprintf(b, sizeof(b), "%llu", (unsigned long long)is);
	add_difference(t, what, a, strlen(a), b, strlen(b));
}

/* The line of this key; NULL: there is none. */
static const char *line_of(const char *text, const char *key, size_t len)
{
	for (const char *p = text; p && *p;) {
		if (!strncmp(p, key, len) && p[len] == '=')
			return p + len + 1;
		p = strchr(p, '\n');
		p += p != NULL;
	}
	return NULL;
}

/* The line KEY=VALUE at p, if the texts differ in it; missing: if was lacks it,
 * else if was has it. */
static void add_line(struct text *t, const char *p, const char *was,
		     const char *is, bool missing)
{
	size_t key = strcspn(p, "=\n");
	const char *a = line_of(was, p, key), *b = line_of(is, p, key);
	char name[32];

	/* Another text may have no keys. */
	if (p[key] != '=' || missing == (a != NULL))
		return;
	a = a ? a : "not said";
	b = b ? b : "not said";
	if (strcspn(a, "\n") == strcspn(b, "\n") &&
	    !strncmp(a, b, strcspn(a, "\n")))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)key, p);
	add_difference(t, name, a, strcspn(a, "\n"), b, strcspn(b, "\n"));
}

static void add_lines(struct text *t, const char *of, const char *was,
		      const char *is, bool missing)
{
	for (const char *p = of; *p;) {
		add_line(t, p, was, is, missing);
		p += strcspn(p, "\n");
		p += *p == '\n';
	}
}

static bool same_field(const struct tsock_field *a, const struct tsock_field *b)
{
	return !strncmp(a->name, b->name, sizeof(a->name)) &&
	       a->dtype == b->dtype && a->flags == b->flags &&
	       a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, a->ndim * sizeof(a->shape[0]));
}

static void add_fields(struct text *t, const struct tsi_msg_stream *was,
		       const struct tsi_msg_stream *is)
{
	add_number(t, "its number of fields", was->nfields, is->nfields);
	for (unsigned i = 0; i < was->nfields && was->nfields == is->nfields;
	     i++)
		if (!same_field(&was->field[i], &is->field[i]))
			add_difference(t, "a field", was->field[i].name,
				       strlen(was->field[i].name),
				       "another or of another "
				       "shape",
				       27);
}

/* The first class that has another name: labels mean something else then. */
static void add_class(struct text *t, const struct tsi_meta *was,
		      const struct tsi_meta *is)
{
	const char *a, *b;

	for (uint32_t i = 0; (a = tsi_meta_class(was, i)); i++) {
		char what[24];

		b = tsi_meta_class(is, i);
		if (!b || !strcmp(a, b))
			continue;
		snprintf(what, sizeof(what), "class %u", i);
		add_difference(t, what, a, strlen(a), b, strlen(b));
		return;
	}
}

bool tsi_difference(const struct tsi_said *was, const struct tsi_said *is,
		    char *why, size_t size)
{
	const struct tsi_msg_stream *a = was->stream, *b = is->stream;
	const char *said = tsi_meta_identity(was->meta);
	const char *says = tsi_meta_identity(is->meta);
	struct text t = { .at = why, .size = size };

	why[0] = '\0';
	add_number(&t, "its epoch's length", a->epoch_len, b->epoch_len);
	add_number(&t, "its data set's length", a->dataset_len, b->dataset_len);
	add_number(&t, "its number of segments", a->segments, b->segments);
	add_number(&t, "resumable", a->resumable, b->resumable);
	add_number(&t, "sequential", a->sequential, b->sequential);
	add_fields(&t, a, b);
	if (strcmp(said, says) != 0) {
		add_lines(&t, said, said, says, false);
		add_lines(&t, says, said, says, true);
		if (!t.len)
			add_difference(&t, "its identity", "one", 3, "another",
				       7);
	}
	/* A data set's identity has said so of its classes already. */
	if (!t.len)
		add_number(&t, "its number of classes", a->nclasses,
			   b->nclasses);
	if (!t.len)
		add_class(&t, was->meta, is->meta);
	return t.len > 0;
}
