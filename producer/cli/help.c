/* SPDX-License-Identifier: MIT */
/*
 * help.c - what tsock-producer --help prints.
 */
#include "cli/help.h"

#include <string.h>

#include "cli/option_table.h"

#define HELP_COLUMN 26
#define HELP_WIDTH 79

static const char help_top[] =
	"Usage: tsock-producer --dataset imagenet --root DIR [OPTION]...\n"
	"Read, decode and augment a data set once, for every training job on "
	"this\nmachine.  Defaults are in brackets.\n";

static const char help_end[] =
	"\n"
	"Exit status:\n"
	"  0   ended as asked: by a signal, --epochs or --exit-when-idle\n"
	"  1   the stream stopped on an error (a bad file with --on-error "
	"raise, EIO)\n"
	"  2   a wrong option\n"
	"  66  no data set: missing, unreadable, empty, or nothing good in "
	"it\n"
	"  69  another producer has the name; --stop: it has readers, or there "
	"is none\n"
	"  71  the system: memory, descriptors, a missing kernel feature\n"
	"  78  options that are each right and don't fit this data set or "
	"memory\n"
	"\n"
	"Environment:\n"
	"  TSOCK_DIR         folder of the sockets ($XDG_RUNTIME_DIR/tsock, "
	"else\n"
	"                    /tmp/tsock-UID)\n"
	"  XDG_CACHE_HOME    its folder tsock keeps scans (~/.cache)\n"
	"  COLUMNS           width of the live line, where the terminal "
	"doesn't say\n"
	"  NO_COLOR          if set and not empty: no colour\n"
	"\n"
	"Examples:\n"
	"  tsock-producer --dataset imagenet --root /data/imagenet\n"
	"  tsock-producer --dataset imagenet --root /data/imagenet --split "
	"val\n"
	"  tsock-producer --dataset imagefolder --root ~/flowers --name "
	"flowers \\\n"
	"                 --memory 4G --exit-when-idle 600\n"
	"\n"
	"A training job then reads it by name, in Python and in C:\n"
	"  tsock.DataLoader(\"imagenet\", batch_size=256)\n"
	"  tsock_open(\"imagenet\", &opts, &t);\n";

/* Words from *text on that fit in a line; moves it to the next line's. */
static int fit(const char **text, const char **line)
{
	int len = 0;

	*line = *text;
	for (;;) {
		int next = len + (len > 0);

		next += (int)strcspn(*line + next, " \n");
		if (len && next > HELP_WIDTH - HELP_COLUMN)
			break;
		len = next;
		if ((*line)[len] != ' ')
			break;
	}
	*text = *line + len + ((*line)[len] != '\0');
	return len;
}

/* A value from column n on; words that don't fit in a line begin the next one,
 * below the first.  Returns the column behind it. */
static int help_arg(FILE *to, const char *arg, int n)
{
	const int first = n;

	while (*arg) {
		int len = (int)strcspn(arg, "|");

		len += arg[len] == '|';
		if (n > first && n + len > HELP_WIDTH)
			n = fprintf(to, "\n%*s", first, "") - 1;
		n += fprintf(to, "%.*s", len, arg);
		arg += len;
	}
	return n;
}

static void help_row(FILE *to, const struct tsi_opt *r)
{
	const char *text = r->help, *line;
	int n;

	n = fprintf(to, "  %c%c%c --%s%s", r->letter ? '-' : ' ',
		    r->letter ? r->letter : ' ', r->letter ? ',' : ' ', r->name,
		    r->arg ? " " : "");
	if (r->arg)
		n = help_arg(to, r->arg, n);
	if (n > HELP_COLUMN - 2) {
		fputc('\n', to);
		n = 0;
	}
	while (*text) {
		int len = fit(&text, &line);

		fprintf(to, "%*s%.*s\n", HELP_COLUMN - n, "", len, line);
		n = 0;
	}
}

void tsi_help_print(FILE *to)
{
	fputs(help_top, to);
	for (size_t i = 0; i < tsi_opts_count; i++) {
		if (tsi_opts[i].kind == TSI_OPT_GROUP)
			fprintf(to, "\n%s:\n", tsi_opts[i].name);
		else
			help_row(to, &tsi_opts[i]);
	}
	fputs(help_end, to);
}
