/* SPDX-License-Identifier: MIT */
/*
 * walk.c - a piece of work again and again, with another call failing.
 *
 * Calls that are made often are tried more rarely the later they come; with
 * $FAULT_ALL each is.  $FAULT_ONLY names a single fault as a failure prints it:
 * KIND ERRNO N TIMES; the cases that have faults of that kind try it.  With
 * $FAULT_VERBOSE what came of each is printed.
 */
#include "test/faults/walk.h"

#include <dirent.h>
#include <limits.h>
#include <poll.h>

#include "test/faults/inject.h"
#include "test/lib/proc.h"

#define HANGS_MS 120000
#define PATIENCE_MS 30000
#define LASTING_MS 1000 /* while a fault lasts */
#define EACH 12         /* calls of a kind are tried without leaving one out */

/* What a child tells its parent. */
struct outcome {
	int code, again;
	unsigned reached;
	size_t live;
	unsigned descriptors, threads, files;
	char said[512];
};

/* Failures are told when they are seen, and counted. */
static unsigned wrong;

#define complain(...) (wrong++, print_error(__VA_ARGS__), print_error("\n"))

struct fault {
	unsigned kind;
	int err;
	unsigned n, times;
};

static unsigned entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void child(const struct walk *w, const struct fault *f, int to)
{
	struct outcome o = { .code = 0 };

	if (f)
		inject_arm(f->kind, f->err, f->n, f->times);
	o.code = w->work(f && f->times > 1 ? LASTING_MS : PATIENCE_MS);
	o.reached = inject_reached();
	inject_disarm();
	inject_pause();
	snprintf(o.said, sizeof(o.said), "%s", tsock_errmsg());
	inject_resume();
	o.again = w->work(PATIENCE_MS);
	inject_pause();
	if (o.again)
		fprintf(stderr, "without a fault: %s\n", tsock_errmsg());
	o.live = inject_live();
	o.descriptors = entries("/proc/self/fd");
	/* A thread that has ended may be there for a moment yet. */
	for (unsigned i = 0; i < 5000; i++) {
		o.threads = entries("/proc/self/task");
		if (o.threads == 3) /* with . and .. */
			break;
		proc_pause_us(1000);
	}
	o.files = entries(getenv("TSOCK_DIR"));
	if (write(to, &o, sizeof(o)) != sizeof(o))
		_exit(1);
	_exit(0);
}

static const char *error_name(int err)
{
	return err == INJECT_SHORT ? "SHORT" : strerrorname_np(err);
}

static const char *fault_text(const struct walk *w, const struct fault *f)
{
	static char text[160];

	if (f)
		snprintf(text, sizeof(text), "%s: %s %s %u %u", w->name,
			 inject_calls()[f->kind].name, error_name(f->err), f->n,
			 f->times);
	else
		snprintf(text, sizeof(text), "%s: no fault", w->name);
	return text;
}

/* A folder for the sockets of each child. */
static void new_folder(char *path, size_t size, const char *in)
{
	snprintf(path, size, "%s/w-XXXXXX", in);
	if (!mkdtemp(path) || setenv("TSOCK_DIR", path, 1))
		fail_msg("%s: %s", path, strerror(errno));
}

static void remove_folder(const char *path)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
}

/* Returns whether the child has told what came of it. */
static bool run_child(const struct walk *w, const struct fault *f,
		      struct outcome *o)
{
	static const char *folder;
	struct pollfd p = { .events = POLLIN };
	char path[256];
	int fd[2], status;
	bool told;
	pid_t pid;

	if (!folder) {
		proc_own_folder();
		folder = strdup(getenv("TSOCK_DIR"));
	}
	new_folder(path, sizeof(path), folder);
	assert_int_equal(pipe(fd), 0);
	pid = proc_spawn();
	if (pid == 0) {
		close(fd[0]);
		child(w, f, fd[1]);
	}
	close(fd[1]);
	p.fd = fd[0];
	if (poll(&p, 1, HANGS_MS) != 1) {
		complain("%s: hangs", fault_text(w, f));
		kill(pid, SIGABRT);
	}
	told = read(fd[0], o, sizeof(*o)) == sizeof(*o);
	close(fd[0]);
	status = proc_ended(pid);
	if (!told || status)
		complain("%s: ends with %d", fault_text(w, f), status);
	remove_folder(path);
	return told;
}

/* A sentence, as far as a program can tell. */
static bool is_sentence(const char *said)
{
	return strlen(said) > 15 && strchr(said, ' ') && !strchr(said, '\n');
}

static void same_number(const char *text, const char *of, size_t is,
			size_t clean)
{
	if (is != clean)
		complain("%s: %zu %s are left, not %zu", text, is, of, clean);
}

/* Returns whether the fault was reached. */
static bool try_fault(const struct walk *w, const struct fault *f,
		      const struct outcome *clean)
{
	const char *text = fault_text(w, f);
	struct outcome o;

	if (!run_child(w, f, &o))
		return true;
	if (getenv("FAULT_VERBOSE") && o.reached)
		fprintf(stderr, "%-60s %s\n", text, o.code ? o.said : "fine");
	if (o.code == TSOCK_EAGAIN && f->times == 1)
		complain("%s: the work waits in vain", text);
	if (o.code && o.code != TSOCK_EAGAIN && !is_sentence(o.said))
		complain("%s: %d, and no sentence: \"%s\"", text, o.code,
			 o.said);
	if (o.again)
		complain("%s: after that nothing works: %d", text, o.again);
	same_number(text, "allocations", o.live, clean->live);
	same_number(text, "descriptors", o.descriptors, clean->descriptors);
	same_number(text, "threads", o.threads, clean->threads);
	same_number(text, "files", o.files, clean->files);
	return o.reached > 0;
}

/* The call that is tried after this one. */
static unsigned next_call(unsigned n, unsigned times)
{
	if (times > 1)
		return 4 * n;
	return n < EACH || getenv("FAULT_ALL") ? n + 1 : n + n / 4;
}

static int shortage_of(const struct inject_call *c)
{
	int found = 0;

	for (unsigned i = 0; i < 8 && c->error[i]; i++)
		if (c->error[i] == EMFILE || (c->error[i] == ENOMEM && !found))
			found = c->error[i];
	return found;
}

/* Is it one of the names, each of which has a space behind it? */
static bool is_named(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (; *names; names += strcspn(names, " ") + 1)
		if (!strncmp(names, name, len) && names[len] == ' ')
			return true;
	return false;
}

static bool chosen(const struct walk *w, const struct fault *f)
{
	const struct inject_call *c = &inject_calls()[f->kind];

	if (w->shortage && f->err != shortage_of(c))
		return false;

	if (strncmp(c->name, "io_uring_o", 10) == 0 ||
	    strncmp(c->name, "io_uring_r", 10) == 0)
		if (!inject_uring_works())
			return false;
	return !w->kinds || is_named(w->kinds, c->name);
}

/* From the first call on to the first that isn't made.  A kind that is named
 * has one: else the call has another name in this build. */
static void walk_error(const struct walk *w, unsigned kind, int err,
		       unsigned times, const struct outcome *clean)
{
	struct fault f = { kind, err, 1, times };

	while (chosen(w, &f) && try_fault(w, &f, clean))
		f.n = next_call(f.n, times);
	if (w->kinds && chosen(w, &f) && f.n == 1)
		complain("%s: no such call is made", fault_text(w, &f));
}

/* The one that $FAULT_ONLY names. */
static void walk_only(const struct walk *w, unsigned times)
{
	char kind[48], err[24];
	struct fault f;
	struct outcome clean;

	if (sscanf(getenv("FAULT_ONLY"), "%47s %23s %u %u", kind, err, &f.n,
		   &f.times) != 4)
		fail_msg("FAULT_ONLY is KIND ERRNO N TIMES");
	if (f.times != times || !run_child(w, NULL, &clean))
		return;
	for (f.kind = 0; inject_calls()[f.kind].name; f.kind++)
		for (unsigned i = 0; i < 8; i++) {
			f.err = inject_calls()[f.kind].error[i];
			if (f.err && chosen(w, &f) &&
			    !strcmp(inject_calls()[f.kind].name, kind) &&
			    !strcmp(error_name(f.err), err))
				try_fault(w, &f, &clean);
		}
	assert_int_equal(wrong, 0);
}

/* Each call of the others is a try of its own; an I/O error that lasts is one
 * of the file's. */
static bool may_last(int err)
{
	return err != EINTR && err != EAGAIN && err != EIO &&
	       err != INJECT_SHORT;
}

static void walk(const struct walk *w, unsigned times)
{
	struct outcome clean;

	wrong = 0;
	if (getenv("FAULT_ONLY")) {
		walk_only(w, times);
		return;
	}
	if (!run_child(w, NULL, &clean) || clean.code || clean.again)
		fail_msg("%s: without any fault: %s", w->name, clean.said);
	for (unsigned k = 0; inject_calls()[k].name; k++) {
		const int *err = inject_calls()[k].error;

		for (unsigned i = 0; i < 8 && err[i]; i++) {
			if (times > 1 && !may_last(err[i]))
				continue;
			walk_error(w, k, err[i], times, &clean);
		}
	}
	if (wrong)
		fail_msg("%s: %u faults have come to nothing good", w->name,
			 wrong);
}

void walk_one_by_one(const struct walk *w)
{
	walk(w, 1);
}

void walk_from_each_on(const struct walk *w)
{
	walk(w, UINT_MAX);
}
