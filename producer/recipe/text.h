/* SPDX-License-Identifier: MIT */
/*
 * text.h - the text of a recipe, token by token, and what is said of a place in
 * it.
 *
 * The text is what print() shows of torchvision's transforms, or what one would
 * write to make them: calls with arguments, between which commas and spaces
 * may stand.  Names may have dots; what stands before the last one is ignored
 * (v2.Resize, InterpolationMode.BICUBIC).
 */
#ifndef TSI_RECIPE_TEXT_H
#define TSI_RECIPE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum tsi_token_kind {
	TSI_TOKEN_END,
	TSI_TOKEN_NAME,   /* text, len: behind the last dot, without quotes */
	TSI_TOKEN_NUMBER, /* number */
	TSI_TOKEN_OPEN,   /* ( or [ */
	TSI_TOKEN_CLOSE,  /* ) or ] */
	TSI_TOKEN_EQUALS,
	TSI_TOKEN_STRANGE, /* what no token begins with */
};

struct tsi_token {
	enum tsi_token_kind kind;
	const char *text;
	size_t len;
	double number;
	const char *from; /* in the text, for messages */
	const char *to;
};

struct tsi_recipe_text {
	const char *text;
	const char *at;
	struct tsi_token token; /* the one at hand */
};

/* Begin with the first token. */
void tsi_recipe_text_begin(struct tsi_recipe_text *t, const char *text);

void tsi_recipe_text_next(struct tsi_recipe_text *t);

/* The kind of the token behind the one at hand. */
enum tsi_token_kind tsi_recipe_text_peek(const struct tsi_recipe_text *t);

/* Is the token at hand this name, in letters of any case? */
bool tsi_recipe_text_is(const struct tsi_token *token, const char *name);

/* Is it this sign, which begins no other token? */
bool tsi_recipe_text_is_sign(const struct tsi_token *token, char sign);

/*
 * Set the message: the sentence and the part of the text that it is about,
 * marked.  Returns TSOCK_EARG.
 */
int tsi_recipe_text_fail(const struct tsi_recipe_text *t,
			 const struct tsi_token *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
