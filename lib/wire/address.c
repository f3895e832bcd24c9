/* SPDX-License-Identifier: MIT */
/*
 * address.c - where a stream's sockets are.
 *
 * A link in /tmp that another user may have made is not followed, and the mode
 * of a folder is never widened.  Paths are made absolute when they are looked
 * up, so a later chdir() doesn't matter.
 */
#include "wire/address.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define MAX_PATH 4096

/* Folders to look in, in order; given says that the user named it. */
struct folders {
	char path[TSI_ADDRESSES][MAX_PATH];
	unsigned n;
	bool given;
	bool run; /* the first is $XDG_RUNTIME_DIR's */
};

const char *tsi_address_users = "/run/user";

/* ------------------------------------------------------------------------
 * Names and paths
 */

bool tsi_address_is_name(const char *name)
{
	size_t len = strlen(name);

	return len >= 1 && len <= TSI_NAME_MAX && name[0] != '.' &&
	       strspn(name, TSI_NAME_CHARS) == len;
}

static int check_name(const char *name)
{
	if (!tsi_address_is_name(name))
		return tsi_err(TSOCK_EARG,
			       "\"%.80s\" can't be a stream's name: 1 to 63 "
			       "letters, digits, '.', '_' or '-', not "
			       "beginning with '.'",
			       name);
	return 0;
}

/* Add a folder, made absolute and without slashes at its end. */
static int add_folder(struct folders *f, const char *path, size_t len,
		      const char *tail)
{
	char *out = f->path[f->n], cwd[MAX_PATH] = "";
	size_t at;
	int n;

	if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return tsi_err_sys("find the current folder");
	n = snprintf(out, MAX_PATH, "%s%s%.*s%s", cwd, cwd[0] ? "/" : "",
		     (int)len, path, tail);
	if (n < 0 || n >= MAX_PATH)
		return tsi_err(TSOCK_EARG,
			       "the folder %.40s... has too long a "
			       "path",
			       path);
	for (at = (size_t)n; at > 1 && out[at - 1] == '/';)
		out[--at] = 0;
	f->n++;
	return 0;
}

/* A variable that is set and not empty, else NULL. */
static const char *variable(const char *name)
{
	const char *v = getenv(name);

	return v && v[0] ? v : NULL;
}

static int add_tmp(struct folders *f)
{
	char tmp[40];

	snprintf(tmp, sizeof(tmp), "/tmp/tsock-%u", (unsigned)geteuid());
	return add_folder(f, tmp, strlen(tmp), "");
}

static int add_run(struct folders *f, const char *run)
{
	size_t len = strlen(run);

	while (len && run[len - 1] == '/')
		len--;
	return add_folder(f, run, len, "/tsock");
}

static int default_folders(struct folders *f)
{
	const char *dir = variable("TSOCK_DIR"),
		   *run = variable("XDG_RUNTIME_DIR");
	char users[MAX_PATH];
	int err;

	if (dir) {
		f->given = true;
		return add_folder(f, dir, strlen(dir), "");
	}
	if (run && run[0] == '/') {
		err = add_run(f, run);
		if (err)
			return err;
		f->run = true;
	}
	snprintf(users, sizeof(users), "%s/%u", tsi_address_users,
		 (unsigned)geteuid());
	err = add_run(f, users);
	if (err)
		return err;
	/* As a rule $XDG_RUNTIME_DIR is that folder: look there once. */
	if (f->n == 2 && !strcmp(f->path[0], f->path[1]))
		f->n = 1;
	return add_tmp(f);
}

/* Split a name: *base is the stream's, f the folders where it may be. */
static int split_name(const char *name, struct folders *f, const char **base)
{
	const char *slash = strrchr(name, '/');
	int err;

	*f = (struct folders){ .n = 0 };
	*base = slash ? slash + 1 : name;
	err = check_name(*base);
	if (err)
		return err;
	if (!slash)
		return default_folders(f);
	f->given = true;
	return add_folder(f, name, slash == name ? 1 : (size_t)(slash - name),
			  "");
}

static int make_path(const char *folder, const char *name, const char *suffix,
		     char out[TSI_SOCKET_PATH])
{
	const char *sep = strcmp(folder, "/") ? "/" : "";
	int len = snprintf(out, TSI_SOCKET_PATH, "%s%s%s%s", folder, sep, name,
			   suffix);

	if (len < TSI_SOCKET_PATH)
		return 0;
	return tsi_err(TSOCK_EARG,
		       "%s%s%s%s has %d bytes, and a unix "
		       "socket's path at most %d: use a shorter name, "
		       "or a shorter folder in TSOCK_DIR",
		       folder, sep, name, suffix, len, TSI_SOCKET_PATH - 1);
}

static int fill_address(const struct folders *f, unsigned i, const char *name,
			struct tsi_address *out)
{
	struct tsi_address a = { .given = f->given };
	const char *folder = f->path[i];
	int err = make_path(folder, name, ".door", a.fdpass);

	if (!err)
		err = make_path(folder, name, ".lock", a.lock);
	if (!err)
		err = make_path(folder, name, ".bus", a.channel);
	if (err)
		return err;
	/* They fit: check_name() passed, and a path holds both of them. */
	strcpy(a.name, name);
	strcpy(a.folder, folder);
	*out = a;
	return 0;
}

/* ------------------------------------------------------------------------
 * Folders
 */

/*
 * Does the folder belong to this user, and is it closed to all others?  A
 * folder that the user named may be reached through a link, one in /tmp may
 * not.
 */
static int check_folder(const char *path, bool given, struct stat *st)
{
	if (given ? stat(path, st) : lstat(path, st))
		return tsi_err_sys("look at the folder %s", path);
	if (!S_ISDIR(st->st_mode))
		return tsi_err(TSOCK_EREFUSED,
			       "%s isn't a folder: remove it, or set TSOCK_DIR "
			       "to a folder of your own",
			       path);
	if (st->st_uid != geteuid())
		return tsi_err(
			TSOCK_EREFUSED,
			"the folder %s belongs to uid %u, not to you "
			"(uid %u): set TSOCK_DIR to a folder of your own",
			path, (unsigned)st->st_uid, (unsigned)geteuid());
	if (st->st_mode & 077)
		return tsi_err(TSOCK_EREFUSED,
			       "the folder %s is open to other users (mode "
			       "%03o): chmod 700 %s, or set TSOCK_DIR to "
			       "another",
			       path, (unsigned)st->st_mode & 0777, path);
	return 0;
}

/* $XDG_RUNTIME_DIR may be another user's, after su, or not exist. */
static bool parent_is_ours(const char *path)
{
	char parent[MAX_PATH];
	char *slash;
	struct stat st;

	strcpy(parent, path);
	slash = strrchr(parent, '/');
	*slash = 0;
	return !stat(slash == parent ? "/" : parent, &st) &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

int tsi_address_choose(const char *name, struct tsi_address *out)
{
	struct folders f;
	const char *base;
	int err = split_name(name, &f, &base);

	if (err)
		return err;
	if (f.given || (f.run && parent_is_ours(f.path[0])))
		return fill_address(&f, 0, base, out);
	return fill_address(&f, f.n - 1, base, out);
}

int tsi_address_move(const struct tsi_address *a, struct tsi_address *out)
{
	struct folders f = { .n = 0, .given = a->given };
	int err;

	if (a->given || parent_is_ours(a->folder))
		err = add_folder(&f, a->folder, strlen(a->folder), "");
	else
		err = add_tmp(&f);
	return err ? err : fill_address(&f, 0, a->name, out);
}

/* May this process make files there?  Root may, but not on read-only media. */
static bool may_write(const char *folder)
{
	return !faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS);
}

int tsi_address_check(const struct tsi_address *a)
{
	char parent[TSI_SOCKET_PATH + 4];
	struct stat st;
	int err;

	if (!lstat(a->folder, &st)) {
		err = check_folder(a->folder, a->given, &st);
		if (err || may_write(a->folder))
			return err;
		return tsi_err_sys("open %s", a->lock);
	}
	strcpy(parent, a->folder);
	/* With "/." at its end, the path of a file leads nowhere. */
	strcpy(strrchr(parent, '/') + 1, ".");
	if (may_write(parent))
		return 0;
	return tsi_err_sys("make the folder %s", a->folder);
}

int tsi_address_make_folder(const struct tsi_address *a, struct stat *st)
{
	if (mkdir(a->folder, 0700) && errno != EEXIST)
		return tsi_err_sys("make the folder %s", a->folder);
	return check_folder(a->folder, a->given, st);
}

/* ------------------------------------------------------------------------
 * Consumers
 */

/* A folder that doesn't exist is no error: it may still be made. */
static int check_if_there(const char *path, bool given)
{
	struct stat st;

	if ((given ? stat(path, &st) : lstat(path, &st)) && errno == ENOENT)
		return 0;
	return check_folder(path, given, &st);
}

/*
 * A path in a folder that isn't fit for sockets, and has none of that name: it
 * may be a data set's, whose folder's mode is nobody's business here.
 */
static int err_no_stream(const char *path, const struct tsi_address *a)
{
	return tsi_err(TSOCK_EREFUSED,
		       "%s is no stream: there is no %s, and the folder isn't "
		       "one that this user alone may enter, as a folder of "
		       "sockets is; a stream is given by its name, and a data "
		       "set is named to tsock-producer, by --root",
		       path, a->fdpass);
}

int tsi_address_find(const char *name, struct tsi_address *out, unsigned max)
{
	struct folders f;
	const char *base;
	unsigned n = 0;
	int err, bad = 0;

	err = split_name(name, &f, &base);
	if (err)
		return err;
	for (unsigned i = 0; i < f.n && n < max; i++) {
		err = fill_address(&f, i, base, &out[n]);
		if (!err) {
			err = check_if_there(f.path[i], f.given);
			if (err && strchr(name, '/') &&
			    access(out[n].fdpass, F_OK))
				err = err_no_stream(name, &out[n]);
		}
		if (err)
			bad = err;
		else
			n++;
	}
	return n ? (int)n : bad;
}

int tsi_address_err_restarted(const struct tsi_address *a)
{
	return tsi_err(TSOCK_ELOST,
		       "the producer of '%s' was restarted, and its stream "
		       "began anew: close this handle, and open another (in "
		       "Python: make a new DataLoader)",
		       a->name);
}

void tsi_address_folders(const struct tsi_address *a, unsigned n, char *buf,
			 size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s",
				       i == 0       ? ""
				       : i == n - 1 ? " and "
						    : ", ",
				       a[i].folder);
}

static void list_folder(const struct folders *f, unsigned i,
			void (*fn)(void *arg, const struct tsi_address *a),
			void *arg)
{
	struct tsi_address a;
	struct dirent *e;
	char name[256];
	DIR *d = opendir(f->path[i]);

	if (!d)
		return;
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len < 6 || len >= sizeof(name) ||
		    strcmp(e->d_name + len - 5, ".door"))
			continue;
		memcpy(name, e->d_name, len - 5);
		name[len - 5] = 0;
		if (!check_name(name) && !fill_address(f, i, name, &a))
			fn(arg, &a);
	}
	closedir(d);
}

int tsi_address_list(void (*fn)(void *arg, const struct tsi_address *a),
		     void *arg)
{
	struct folders f = { .n = 0 };
	unsigned good = 0;
	int err, bad = 0;

	err = default_folders(&f);
	if (err)
		return err;
	for (unsigned i = 0; i < f.n; i++) {
		err = check_if_there(f.path[i], f.given);
		if (err) {
			bad = err;
			continue;
		}
		list_folder(&f, i, fn, arg);
		good++;
	}
	return good ? 0 : bad;
}

/* ---- connections ----
 *
 * /proc/net/unix has a line for each socket, and a socket that a listener
 * accepted has the listener's path.  A consumer keeps its connection from the
 * moment that it was opened until it is closed, or its process ends.
 */

#define CONNECTED 3 /* SS_CONNECTED of linux/net.h */

static int count_lines(FILE *f, const char *path)
{
	char line[TSI_SOCKET_PATH + 128];
	int n = 0;

	while (fgets(line, sizeof(line), f)) {
		unsigned state;
		int at = 0;

		line[strcspn(line, "\n")] = 0;
		/* Address, references, protocol, flags, type, state, inode. */
		if (sscanf(line, "%*s %*x %*x %*x %*x %x %*u %n", &state,
			   &at) == 1 &&
		    at && state == CONNECTED && !strcmp(line + at, path))
			n++;
	}
	return n;
}

int tsi_address_connections(const struct tsi_address *a)
{
	FILE *f = fopen("/proc/net/unix", "re");
	int n;

	if (!f)
		return 0;
	n = count_lines(f, tsi_address_channel(a));
	fclose(f);
	return n;
}
