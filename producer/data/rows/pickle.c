/* SPDX-License-Identifier: MIT */
/*
 * pickle.c - the opcodes of pickle that build data, and what they call.
 */
#include "data/rows/pickle_impl.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/rows/npy.h"
#include "data/text.h"

/* ---- names, and what they build ---- */

static int add_global(struct tsi_pickle *p, const char *module,
		      const char *name)
{
	int err = tsi_text_grow(&p->global, p->globals, &p->global_room,
				sizeof(*p->global));

	if (err)
		return err;
	snprintf(p->global[p->globals], TSI_PICKLE_NAME, "%s.%s", module, name);
	return tsi_pickle_push(
		p, (struct value){ .kind = GLOBAL, .a = p->globals++ });
}

static int take_line(struct tsi_pickle *p, char to[TSI_PICKLE_NAME])
{
	for (size_t k = 0; k < TSI_PICKLE_NAME; k++) {
		int err = tsi_pickle_take(p, &to[k], 1);

		if (err)
			return err;
		if (to[k] == '\n') {
			to[k] = '\0';
			return 0;
		}
	}
	return tsi_pickle_odd(p);
}

static int take_global(struct tsi_pickle *p)
{
	char module[TSI_PICKLE_NAME], name[TSI_PICKLE_NAME];
	int err = take_line(p, module);

	if (!err)
		err = take_line(p, name);
	return err ? err : add_global(p, module, name);
}

int tsi_pickle_text(const struct tsi_pickle *p, const struct value *v,
		    char to[TSI_PICKLE_NAME])
{
	size_t n = v->b < TSI_PICKLE_NAME ? (size_t)v->b : TSI_PICKLE_NAME - 1;

	memset(to, 0, TSI_PICKLE_NAME);
	if (v->kind != STRING)
		return tsi_pickle_odd(p);
	return tsi_rows_read(p->rows, p->file, v->a, to, n, "pickle");
}

static int global_of_stack(struct tsi_pickle *p)
{
	char module[TSI_PICKLE_NAME], name[TSI_PICKLE_NAME];
	struct value m, n;
	int err = tsi_pickle_pop(p, &n);

	if (!err)
		err = tsi_pickle_pop(p, &m);
	if (!err)
		err = tsi_pickle_text(p, &m, module);
	if (!err)
		err = tsi_pickle_text(p, &n, name);
	return err ? err : add_global(p, module, name);
}

/* Item k of a list; nothing, if there is no such. */
static struct value item(const struct tsi_pickle *p, struct value list,
			 uint64_t k)
{
	if (list.kind != LIST || k >= p->list[list.a].n)
		return (struct value){ .kind = NOTHING };
	return p->list[list.a].item[k];
}

static int push_array(struct tsi_pickle *p)
{
	int err = tsi_text_grow(&p->array, p->arrays, &p->array_room,
				sizeof(*p->array));

	if (err)
		return err;
	p->array[p->arrays] = (struct tsi_pickle_array){ .at = 0 };
	return tsi_pickle_push(
		p, (struct value){ .kind = ARRAY, .a = p->arrays++ });
}

/* shape, dtype and bytes of an array, in C's order. */
static int set_array(struct tsi_pickle *p, struct value array,
		     struct value shape, struct value dtype, struct value bytes)
{
	struct tsi_pickle_array *a = &p->array[array.a];
	uint64_t want;

	if (shape.kind != LIST || dtype.kind != DTYPE || bytes.kind != STRING)
		return tsi_pickle_odd(p);
	if (p->list[shape.a].n > TSI_PICKLE_DIMS)
		return tsi_pickle_fail(p,
				       "holds an array of too many dimensions");
	a->dtype = (uint32_t)dtype.a;
	a->at = bytes.a;
	a->len = bytes.b;
	want = tsock_dtype_size(a->dtype);
	for (a->ndim = 0; a->ndim < p->list[shape.a].n; a->ndim++) {
		uint64_t n = p->list[shape.a].item[a->ndim].a;

		if (n && want > UINT64_MAX / n)
			return tsi_pickle_odd(p);
		a->shape[a->ndim] = n;
		want *= n;
	}
	/* A dtype that isn't known may be that of an array nobody asks for. */
	return !a->dtype || want == a->len ? 0 : tsi_pickle_odd(p);
}

static bool ends(const char *name, const char *word)
{
	size_t n = strlen(name), m = strlen(word);

	return n >= m && !strcmp(name + n - m, word);
}

static int reduce_dtype(struct tsi_pickle *p, struct value args)
{
	struct value code = item(p, args, 0);
	char text[TSI_PICKLE_NAME];
	int err = tsi_pickle_text(p, &code, text);

	return err ? err
		   : tsi_pickle_push(
			     p, (struct value){
					.kind = DTYPE,
					.a = tsi_npy_dtype(text, code.b) });
}

static int reduce(struct tsi_pickle *p)
{
	struct value args, f, array;
	const char *name;
	int err = tsi_pickle_pop(p, &args);

	if (!err)
		err = tsi_pickle_pop(p, &f);
	if (err)
		return err;
	if (f.kind != GLOBAL)
		return tsi_pickle_odd(p);
	name = p->global[f.a];
	if (!strncmp(name, "numpy", 5) && ends(name, ".dtype"))
		return reduce_dtype(p, args);
	if (!strncmp(name, "numpy", 5) && ends(name, "._reconstruct"))
		return push_array(p);
	if (strncmp(name, "numpy", 5) != 0 || !ends(name, "._frombuffer"))
		return tsi_pickle_push(p, (struct value){ .kind = NOTHING });
	err = push_array(p);
	if (err)
		return err;
	array = p->stack.item[p->stack.n - 1];
	return set_array(p, array, item(p, args, 2), item(p, args, 1),
			 item(p, args, 0));
}

/* An array's state is (version, shape, dtype, Fortran's order?, bytes). */
static int build(struct tsi_pickle *p)
{
	struct value state, of;
	int err = tsi_pickle_pop(p, &state);

	if (err || !p->stack.n)
		return err ? err : tsi_pickle_odd(p);
	of = p->stack.item[p->stack.n - 1];
	if (of.kind == DTYPE) {
		struct value order = item(p, state, 1);
		char text[TSI_PICKLE_NAME];

		if (order.kind == STRING && !tsi_pickle_text(p, &order, text) &&
		    text[0] == '>')
			p->stack.item[p->stack.n - 1].a = 0;
		return 0;
	}
	if (of.kind != ARRAY)
		return 0;
	err = set_array(p, of, item(p, state, 1), item(p, state, 2),
			item(p, state, 4));
	if (!err && item(p, state, 3).a && p->array[of.a].ndim > 1)
		err = tsi_pickle_fail(p, "holds an array in Fortran's order");
	return err;
}

/* With a number of so many bytes behind the opcode. */
static int with_number(struct tsi_pickle *p, unsigned bytes,
		       int (*f)(struct tsi_pickle *p, uint64_t k))
{
	uint64_t k;
	int err = tsi_pickle_number(p, bytes, &k);

	return err ? err : f(p, k);
}

/* ---- opcodes ---- */

static int skip(struct tsi_pickle *p, unsigned bytes)
{
	uint64_t n;

	return tsi_pickle_number(p, bytes, &n);
}

static int push_kind(struct tsi_pickle *p, enum kind kind, uint64_t a)
{
	return tsi_pickle_push(p, (struct value){ .kind = kind, .a = a });
}

static int drop_float(struct tsi_pickle *p)
{
	int err = skip(p, 8);

	return err ? err : push_kind(p, NOTHING, 0);
}

static int pop_one(struct tsi_pickle *p)
{
	struct value v;

	return tsi_pickle_pop(p, &v);
}

static int extend_by(struct tsi_pickle *p, uint64_t n)
{
	return p->stack.n < n ? tsi_pickle_odd(p)
			      : tsi_pickle_extend(p, p->stack.n - n, 0);
}

static int gather_last(struct tsi_pickle *p, uint64_t n)
{
	return p->stack.n < n ? tsi_pickle_odd(p)
			      : tsi_pickle_gather(p, p->stack.n - n, 0);
}

static int follow_data(struct tsi_pickle *p, uint8_t op)
{
	switch (op) {
	case 'J':
		return tsi_pickle_push_int(p, 4, true);
	case 'K':
		return tsi_pickle_push_int(p, 1, false);
	case 'M':
		return tsi_pickle_push_int(p, 2, false);
	case 0x8a:
		return tsi_pickle_push_long(p);
	case 'G':
		return drop_float(p);
	case 'U':
	case 'C':
	case 0x8c:
		return tsi_pickle_push_string(p, 1);
	case 'T':
	case 'X':
	case 'B':
		return tsi_pickle_push_string(p, 4);
	case 0x8d:
	case 0x8e:
	case 0x96:
		return tsi_pickle_push_string(p, 8);
	case 'N':
		return push_kind(p, NOTHING, 0);
	case 0x88:
		return push_kind(p, NUMBER, 1);
	case 0x89:
		return push_kind(p, NUMBER, 0);
	default:
		return tsi_pickle_fail(
			p, "does more than hold arrays and lists: a batch "
			   "of CIFAR or of downsampled ImageNet is wanted");
	}
}

static int follow(struct tsi_pickle *p, uint8_t op)
{
	switch (op) {
	case 0x80:
		return skip(p, 1);
	case 0x95:
		return skip(p, 8);
	case '(':
		return push_kind(p, MARK, 0);
	case '0':
		return pop_one(p);
	case ')':
	case ']':
	case '}':
		return tsi_pickle_push_list(p);
	case 0x85:
	case 0x86:
	case 0x87:
		return gather_last(p, op - 0x84);
	case 't':
	case 'l':
	case 'd':
		return tsi_pickle_gather_marked(p);
	case 'a':
		return extend_by(p, 1);
	case 's':
		return extend_by(p, 2);
	case 'e':
	case 'u':
		return tsi_pickle_extend_marked(p);
	case 'q':
		return with_number(p, 1, tsi_pickle_memo);
	case 'r':
		return with_number(p, 4, tsi_pickle_memo);
	case 0x94:
		return tsi_pickle_memo(p, p->memo.n);
	case 'h':
		return with_number(p, 1, tsi_pickle_recall);
	case 'j':
		return with_number(p, 4, tsi_pickle_recall);
	case 'c':
		return take_global(p);
	case 0x93:
		return global_of_stack(p);
	case 'R':
		return reduce(p);
	case 'b':
		return build(p);
	default:
		return follow_data(p, op);
	}
}

static int run(struct tsi_pickle *p)
{
	for (;;) {
		uint8_t op;
		int err = tsi_pickle_take(p, &op, 1);

		if (!err && op == '.')
			return tsi_pickle_pop(p, &p->top);
		if (!err)
			err = follow(p, op);
		if (err)
			return err;
	}
}

int tsi_pickle_open(const struct tsi_rows *rows, unsigned file,
		    struct tsi_pickle **out)
{
	struct tsi_pickle *p = calloc(1, sizeof(*p));
	int err;

	*out = NULL;
	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a batch");
	p->rows = rows;
	p->file = file;
	err = run(p);
	if (!err && p->top.kind != LIST)
		err = tsi_pickle_odd(p);
	if (err) {
		tsi_pickle_close(p);
		return err;
	}
	*out = p;
	return 0;
}

void tsi_pickle_close(struct tsi_pickle *p)
{
	if (!p)
		return;
	for (uint64_t k = 0; k < p->lists; k++)
		free(p->list[k].item);
	free(p->list);
	free(p->stack.item);
	free(p->memo.item);
	free(p->global);
	free(p->array);
	free(p);
}
