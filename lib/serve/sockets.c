/*
 * sockets.c - the stream's name is locked, its sockets are made and watched.
 *
 * Cleaners of /tmp, a logout and people remove files that are in use.  Readers
 * don't notice; but no consumer could join any more, and a second producer
 * could lock the name.  So the files are looked at about once a second.
 */
#include "serve/sockets.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

#define LOOK_MS 1000
#define TRIES 5 /* whoever removes a folder may not be done yet */

/* While its socket is open nothing else gets a file's number. */
static bool is_there(const char *path, const struct tsi_file *f)
{
	struct stat st;

	return !lstat(path, &st) && st.st_dev == f->dev && st.st_ino == f->ino;
}

static int note(const char *path, struct tsi_file *f)
{
	struct stat st;

	if (lstat(path, &st))
		return tsi_err_sys("look at %s", path);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return 0;
}

int tsi_sockets_open(struct tsock_server *s, const char *name)
{
	int err = tsi_address_lock(name, &s->address, &s->lock_fd);

	if (err)
		return err;
	s->first = s->address;
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->event < 0)
		return tsi_err_sys("eventfd");
	err = tsi_channel_bind(s->address.channel, &s->channel);
	if (!err)
		err = tsi_fdpass_listen(s->address.fdpass, &s->fdpass);
	if (!err)
		err = note(s->address.channel, &s->channel_file);
	return err ? err : note(s->address.fdpass, &s->fdpass_file);
}

bool tsi_sockets_gone(struct tsock_server *s, int64_t now_ms)
{
	if (now_ms - s->files_ms < LOOK_MS)
		return false;
	s->files_ms = now_ms;
	return !tsi_address_holds_lock(&s->address, s->lock_fd) ||
	       !is_there(s->address.channel, &s->channel_file) ||
	       !is_there(s->address.fdpass, &s->fdpass_file);
}

static int replace_fdpass(struct tsock_server *s)
{
	int fdpass, err = tsi_fdpass_listen(s->address.fdpass, &fdpass);

	if (err)
		return err;
	close(s->fdpass);
	s->fdpass = fdpass;
	return note(s->address.fdpass, &s->fdpass_file);
}

/* The lock first: with it the rest is ours to replace. */
static int make_again(struct tsock_server *s)
{
	int err = tsi_address_relock(&s->address, &s->lock_fd);

	if (!err && !is_there(s->address.channel, &s->channel_file)) {
		err = tsi_channel_rebind(s->channel, s->address.channel);
		if (!err)
			err = note(s->address.channel, &s->channel_file);
	}
	if (!err && !is_there(s->address.fdpass, &s->fdpass_file))
		err = replace_fdpass(s);
	return err;
}

void tsi_sockets_again(struct tsock_server *s)
{
	char why[200];
	int err;

	if (s->failed || s->stop)
		return;
	err = make_again(s);
	if (!err) {
		s->lost = 0;
		tsi_log(TSOCK_LOG_WARN,
			"the sockets of %s were removed; they are made again "
			"in %s",
			s->address.name, s->address.folder);
		return;
	}
	if (err != TSOCK_EEXIST && ++s->lost < TRIES)
		return;
	snprintf(why, sizeof(why),
		 "its sockets were removed, and can't be made again: %s",
		 tsock_errmsg());
	tsi_server_fail(s, why);
}

int tsi_sockets_connected(struct tsock_server *s)
{
	struct tsi_address now, first;
	bool moved;
	int n;

	pthread_mutex_lock(&s->lock);
	now = s->address;
	first = s->first;
	pthread_mutex_unlock(&s->lock);
	moved = strcmp(now.channel, first.channel);
	n = tsi_address_connections(&now);
	return moved ? n + tsi_address_connections(&first) : n;
}
