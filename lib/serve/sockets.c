/* SPDX-License-Identifier: MIT */
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "wire/fdpass.h"
#include "wire/zmq.h"

#define LOOK_MS 1000
#define TRIES 5 /* the removal of a folder may not be done yet */

/* While its socket is open nothing else gets a file's number. */
static bool is_there(const char *path, const struct tsi_socket_file *f)
{
	struct stat st;

	return !lstat(path, &st) && st.st_dev == f->dev && st.st_ino == f->ino;
}

static int note(const char *path, struct tsi_socket_file *f)
{
	struct stat st;

	if (lstat(path, &st))
		return tsi_err_sys("look at %s", path);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return 0;
}

void tsi_sockets_init(struct tsi_sockets *k)
{
	*k = (struct tsi_sockets){ .lock_fd = -1, .fdpass = -1 };
}

int tsi_sockets_open(struct tsi_sockets *k, const char *name)
{
	int err;

	tsi_sockets_init(k);
	err = tsi_address_lock(name, &k->address, &k->lock_fd);
	if (err)
		return err;
	k->first = k->address;
	err = tsi_zmq_bind(tsi_address_channel(&k->address), &k->channel);
	if (!err)
		err = tsi_fdpass_listen(tsi_address_fdpass(&k->address),
					&k->fdpass);
	if (!err)
		err = note(tsi_address_channel(&k->address), &k->channel_file);
	return err ? err
		   : note(tsi_address_fdpass(&k->address), &k->fdpass_file);
}

void tsi_sockets_close(struct tsi_sockets *k)
{
	tsi_zmq_close(k->channel);
	if (k->fdpass >= 0)
		close(k->fdpass);
	if (k->lock_fd >= 0)
		tsi_address_unlock(&k->address, k->lock_fd);
}

bool tsi_sockets_gone(struct tsi_sockets *k, int64_t now_ms)
{
	if (now_ms - k->looked_ms < LOOK_MS)
		return false;
	k->looked_ms = now_ms;
	return !tsi_address_holds_lock(&k->address, k->lock_fd) ||
	       !is_there(tsi_address_channel(&k->address), &k->channel_file) ||
	       !is_there(tsi_address_fdpass(&k->address), &k->fdpass_file);
}

static int replace_fdpass(struct tsi_sockets *k)
{
	int fdpass, err = tsi_fdpass_listen(tsi_address_fdpass(&k->address),
					    &fdpass);

	if (err)
		return err;
	close(k->fdpass);
	k->fdpass = fdpass;
	return note(tsi_address_fdpass(&k->address), &k->fdpass_file);
}

/* The lock first: with it the rest is ours to replace. */
static int make_again(struct tsi_sockets *k)
{
	int err = tsi_address_relock(&k->address, &k->lock_fd);

	if (!err &&
	    !is_there(tsi_address_channel(&k->address), &k->channel_file)) {
		err = tsi_zmq_rebind(k->channel,
				     tsi_address_channel(&k->address));
		if (!err)
			err = note(tsi_address_channel(&k->address),
				   &k->channel_file);
	}
	if (!err && !is_there(tsi_address_fdpass(&k->address), &k->fdpass_file))
		err = replace_fdpass(k);
	return err;
}

int tsi_sockets_again(struct tsi_sockets *k)
{
	char why[200];
	int err = make_again(k);

	if (!err) {
		k->failed = 0;
		tsi_log(TSOCK_LOG_WARN,
			"the sockets of %s were removed; they are made again "
			"in %s",
			tsi_address_name(&k->address),
			tsi_address_folder(&k->address));
		return 0;
	}
	if (err != TSOCK_EEXIST && ++k->failed < TRIES)
		return TSOCK_EAGAIN;
	snprintf(why, sizeof(why), "%s", tsock_errmsg());
	return tsi_err(TSOCK_ESTREAM,
		       "its sockets were removed, and can't be made again: %s",
		       why);
}

const struct tsi_address *tsi_sockets_address(const struct tsi_sockets *k)
{
	return &k->address;
}

int tsi_sockets_err_restarted(const struct tsi_sockets *k)
{
	return tsi_address_err_restarted(&k->address);
}

int tsi_sockets_connected(const struct tsi_sockets *k)
{
	int n = tsi_address_connections(&k->address);

	if (strcmp(tsi_address_channel(&k->address),
		   tsi_address_channel(&k->first)))
		n += tsi_address_connections(&k->first);
	return n;
}
