/* SPDX-License-Identifier: MIT */
/*
 * pickle_stack.c - pickle's stack machine: values, lists, the memo, and reading
 * what stands behind an opcode.
 */
#include "data/rows/pickle_impl.h"

#include "base/err.h"
#include "data/text.h"

#define VALUES_MAX (1u << 25) /* of a file; batches have 128,000 labels */

int tsi_pickle_fail(const struct tsi_pickle *p, const char *what)
{
	return tsi_err(TSOCK_EDATA, "%s: %s", tsi_rows_path(p->rows, p->file),
		       what);
}

int tsi_pickle_odd(const struct tsi_pickle *p)
{
	return tsi_pickle_fail(p, "is no pickled batch, or damaged");
}

/* ---- lists and the stack ---- */

static int append(struct list *l, struct value v)
{
	int err = tsi_text_grow(&l->item, l->n, &l->room, sizeof(v));

	if (!err)
		l->item[l->n++] = v;
	return err;
}

int tsi_pickle_push(struct tsi_pickle *p, struct value v)
{
	if (p->values++ > VALUES_MAX)
		return tsi_pickle_fail(p, "holds too many values");
	return append(&p->stack, v);
}

int tsi_pickle_pop(struct tsi_pickle *p, struct value *v)
{
	v->kind = NOTHING;
	v->a = v->b = 0;
	if (!p->stack.n)
		return tsi_pickle_odd(p);
	*v = p->stack.item[--p->stack.n];
	return 0;
}

/* Where the items above the last mark begin. */
static int find_mark(const struct tsi_pickle *p, uint64_t *first)
{
	uint64_t k = p->stack.n;

	while (k > 0 && p->stack.item[k - 1].kind != MARK)
		k--;
	*first = k;
	return k ? 0 : tsi_pickle_odd(p);
}

int tsi_pickle_push_list(struct tsi_pickle *p)
{
	int err = tsi_text_grow(&p->list, p->lists, &p->list_room,
				sizeof(*p->list));

	if (err)
		return err;
	p->list[p->lists] = (struct list){ .n = 0 };
	return tsi_pickle_push(p,
			       (struct value){ .kind = LIST, .a = p->lists++ });
}

/* Put the items from first on into the list below them, and drop n below. */
int tsi_pickle_extend(struct tsi_pickle *p, uint64_t first, uint64_t marks)
{
	uint64_t below = first - marks;
	struct list *to;
	int err = 0;

	if (first < marks || !below || p->stack.item[below - 1].kind != LIST)
		return tsi_pickle_odd(p);
	to = &p->list[p->stack.item[below - 1].a];
	for (uint64_t k = first; k < p->stack.n && !err; k++)
		err = append(to, p->stack.item[k]);
	p->stack.n = below;
	return err;
}

int tsi_pickle_extend_marked(struct tsi_pickle *p)
{
	uint64_t first;
	int err = find_mark(p, &first);

	return err ? err : tsi_pickle_extend(p, first, 1);
}

/* A new list of the items from first on, in their place. */
int tsi_pickle_gather(struct tsi_pickle *p, uint64_t first, uint64_t marks)
{
	struct value list;
	int err;

	if (p->stack.n < first || first < marks)
		return tsi_pickle_odd(p);
	err = tsi_pickle_push_list(p);
	if (err)
		return err;
	tsi_pickle_pop(p, &list);
	for (uint64_t k = first; k < p->stack.n && !err; k++)
		err = append(&p->list[list.a], p->stack.item[k]);
	p->stack.n = first - marks;
	return err ? err : tsi_pickle_push(p, list);
}

int tsi_pickle_gather_marked(struct tsi_pickle *p)
{
	uint64_t first;
	int err = find_mark(p, &first);

	return err ? err : tsi_pickle_gather(p, first, 1);
}

/* ---- the memo ---- */

int tsi_pickle_memo(struct tsi_pickle *p, uint64_t k)
{
	struct value v = { .kind = NOTHING };
	int err = 0;

	if (!p->stack.n || k > p->values)
		return tsi_pickle_odd(p);
	while (!err && p->memo.n <= k)
		err = append(&p->memo, v);
	if (!err)
		p->memo.item[k] = p->stack.item[p->stack.n - 1];
	return err;
}

int tsi_pickle_recall(struct tsi_pickle *p, uint64_t k)
{
	if (k >= p->memo.n)
		return tsi_pickle_odd(p);
	return tsi_pickle_push(p, p->memo.item[k]);
}

/* ---- the file ---- */

int tsi_pickle_take(struct tsi_pickle *p, void *to, size_t n)
{
	int err = tsi_rows_read(p->rows, p->file, p->at, to, n, "pickle");

	p->at += n;
	return err;
}

int tsi_pickle_number(struct tsi_pickle *p, unsigned bytes, uint64_t *out)
{
	uint8_t raw[8] = { 0 };
	int err = tsi_pickle_take(p, raw, bytes);

	*out = 0;
	for (unsigned k = bytes; k-- > 0;)
		*out = *out << 8 | raw[k];
	return err;
}

/* A string whose length stands before it. */
int tsi_pickle_push_string(struct tsi_pickle *p, unsigned bytes)
{
	struct value v = { .kind = STRING };
	int err = tsi_pickle_number(p, bytes, &v.b);
	uint64_t len = tsi_rows_len(p->rows, p->file);

	v.a = p->at;
	if (!err && (p->at > len || v.b > len - p->at))
		err = tsi_pickle_odd(p);
	p->at += v.b;
	return err ? err : tsi_pickle_push(p, v);
}

int tsi_pickle_push_int(struct tsi_pickle *p, unsigned bytes, bool is_signed)
{
	struct value v = { .kind = NUMBER };
	int err = tsi_pickle_number(p, bytes, &v.a);

	if (is_signed && bytes < 8 && v.a >> (8 * bytes - 1))
		v.a |= ~(uint64_t)0 << (8 * bytes);
	return err ? err : tsi_pickle_push(p, v);
}

int tsi_pickle_push_long(struct tsi_pickle *p)
{
	uint64_t n;
	int err = tsi_pickle_number(p, 1, &n);

	if (!err && n > 8)
		err = tsi_pickle_fail(p, "holds a number of more than 64 bits");
	return err ? err : tsi_pickle_push_int(p, (unsigned)n, n > 0);
}
