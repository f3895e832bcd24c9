/* SPDX-License-Identifier: MIT */
/*
 * text.c - the text of a recipe, token by token.
 */
#include "recipe/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

/* Bytes of the text that a message shows on each side. */
#define AROUND 40

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

/*
 * How torch.nn numbers what it prints: "(0): ".  Returns what is behind, or at
 * itself.
 */
static const char *skip_number(const char *at)
{
	const char *p = at + 1;

	if (*at != '(' || !isdigit((unsigned char)*p))
		return at;
	while (isdigit((unsigned char)*p))
		p++;
	return p[0] == ')' && p[1] == ':' ? p + 2 : at;
}

static const char *skip_space(const char *at)
{
	for (;;) {
		const char *p = skip_number(at);

		if (p == at && !(*p && strchr(" \t\r\n,;", *p)))
			return at;
		at = p == at ? at + 1 : p;
	}
}

/* Two numbers with a '/' between them are one, as in Python. */
static const char *read_number(const char *at, double *out)
{
	char *end;
	double below;

	*out = strtod(at, &end);
	if (*end == '/') {
		below = strtod(end + 1, &end);
		*out /= below;
	}
	return end;
}

/* In quotes, or not. */
static const char *read_name(const char *at, struct tsi_token *token)
{
	const char quote = *at == '\'' || *at == '"' ? *at : 0;
	const char *end = at + (quote != 0);
	const char *dot = end;

	token->kind = TSI_TOKEN_NAME;
	for (; quote ? *end && *end != quote : is_name(*end); end++)
		if (*end == '.')
			dot = end + 1;
	if (quote && !*end)
		token->kind = TSI_TOKEN_STRANGE;
	token->text = quote ? at + 1 : dot;
	token->len = (size_t)(end - token->text);
	return end + (quote && *end);
}

static bool begins_number(const char *at)
{
	at += *at == '-' || *at == '+';
	at += *at == '.';
	return isdigit((unsigned char)*at);
}

static void read_token(const char *at, struct tsi_token *token)
{
	*token = (struct tsi_token){ .kind = TSI_TOKEN_STRANGE, .from = at };
	token->to = at + (*at != 0);
	if (!*at)
		token->kind = TSI_TOKEN_END;
	else if (*at == '(' || *at == '[')
		token->kind = TSI_TOKEN_OPEN;
	else if (*at == ')' || *at == ']')
		token->kind = TSI_TOKEN_CLOSE;
	else if (*at == '=')
		token->kind = TSI_TOKEN_EQUALS;
	else if (begins_number(at)) {
		token->kind = TSI_TOKEN_NUMBER;
		token->to = read_number(at, &token->number);
		/* "3a" */
		if (isalpha((unsigned char)*token->to))
			token->to = read_name(at, token);
	} else if (isalpha((unsigned char)*at) || *at == '_' || *at == '\'' ||
		   *at == '"')
		token->to = read_name(at, token);
}

void tsi_recipe_text_next(struct tsi_recipe_text *t)
{
	read_token(skip_space(t->at), &t->token);
	t->at = t->token.to;
}

void tsi_recipe_text_begin(struct tsi_recipe_text *t, const char *text)
{
	*t = (struct tsi_recipe_text){ .text = text, .at = text };
	tsi_recipe_text_next(t);
}

enum tsi_token_kind tsi_recipe_text_peek(const struct tsi_recipe_text *t)
{
	struct tsi_token token;

	read_token(skip_space(t->at), &token);
	return token.kind;
}

bool tsi_recipe_text_is(const struct tsi_token *token, const char *name)
{
	return token->kind == TSI_TOKEN_NAME && strlen(name) == token->len &&
	       !strncasecmp(token->text, name, token->len);
}

bool tsi_recipe_text_is_sign(const struct tsi_token *token, char sign)
{
	return token->kind == TSI_TOKEN_STRANGE && *token->from == sign;
}

int tsi_recipe_text_fail(const struct tsi_recipe_text *t,
			 const struct tsi_token *where, const char *fmt, ...)
{
	const char *from = where->from, *to = where->to;
	const char *begin = from - t->text > AROUND ? from - AROUND : t->text;
	const char *end = to + strnlen(to, AROUND);
	char what[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return tsi_err(TSOCK_EARG, "transform: %s: %s%.*s >>%.*s<< %.*s%s",
		       what, begin > t->text ? "..." : "", (int)(from - begin),
		       begin, (int)(to - from), from, (int)(end - to), to,
		       *end ? "..." : "");
}
