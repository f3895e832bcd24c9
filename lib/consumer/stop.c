/* SPDX-License-Identifier: MIT */
/*
 * stop.c - ending a stream for good.
 *
 * Its producer is asked, which knows the readers.  Where none is there, others
 * may wait for the next one, or start it: for these the file says that it is
 * over.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "consumer/request.h"
#include "consumer/running.h"
#include "tsock/tsock.h"
#include "wire/address.h"
#include "wire/fdpass.h"
#include "wire/peer.h"
#include "wire/record_file.h"
#include "wire/stop_file.h"

#define LOOK_MS 20 /* between two looks whether it is gone */

/* This process, and the time of day, for people. */
static void say_who(char who[TSI_STOP_WHO])
{
	int self = tsi_peer_open_pidfd((uint32_t)getpid());
	char name[TSI_PEER_NAME] = "", when[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), " at %Y-%m-%d %H:%M:%S", &tm);
	if (self >= 0 && tsi_peer_name(self, name))
		snprintf(who, TSI_STOP_WHO, "process %d (%s)%s", (int)getpid(),
			 name, when);
	else
		snprintf(who, TSI_STOP_WHO, "process %d%s", (int)getpid(),
			 when);
	if (self >= 0)
		close(self);
}

/* Has the producer, or a process that prepares to be one, gone by then? */
static int await_end(const struct tsi_address *a, int64_t deadline)
{
	long pid = 0;

	while (tsi_address_is_locked(a, &pid) ||
	       tsi_fdpass_listening(tsi_address_fdpass(a)) > 0) {
		/* It is served by this very process, which has yet to close
		 * it. */
		if (pid == (long)getpid())
			return 0;
		if (tsi_now_ms() >= deadline)
			return tsi_err(
				TSOCK_EAGAIN,
				"the stream '%s' has ended, and its producer "
				"(process %ld) has not yet",
				tsi_address_name(a), pid);
		tsi_pause_until(deadline, LOOK_MS);
	}
	return 0;
}

static int ask_to_stop(const struct tsi_address *a, int force, const char *who,
		       int64_t deadline)
{
	struct tsi_msg m = { .type = TSI_STOP, .u.stop.force = force != 0 };
	struct tsi_msg reply;
	struct tsi_requester r;
	int err = tsi_request_open(&r, a);

	if (err)
		return err;
	m.serial = tsi_request_serial(&r);
	snprintf(m.u.stop.who, sizeof(m.u.stop.who), "%s", who);
	err = tsi_request_ask(&r, &m, deadline, &reply);
	tsi_request_close(&r);
	if (!err && reply.type != TSI_STOPPED)
		return tsi_err(TSOCK_EPROTO,
			       "the producer of '%s' answered STOP with a "
			       "message of type %u",
			       tsi_address_name(a), reply.type);
	if (err == TSOCK_EAGAIN)
		return tsi_err(TSOCK_ENOPROD,
			       "the producer of '%s' doesn't answer: is it "
			       "stopped?",
			       tsi_address_name(a));
	return err;
}

/*
 * Nobody listens.  A process that has locked the name and serves nothing yet is
 * ended, and jobs that wait for a next producer find that there will be none.
 */
static int stop_unserved(const struct tsi_address *a, int force,
			 const char *who, int64_t begin_ns, int64_t deadline)
{
	char names[160], by[TSI_STOP_WHO];
	int waiting = tsi_record_file_readers(a, names, sizeof(names)), err;
	long pid = 0;
	bool locked = tsi_address_is_locked(a, &pid);

	/* One that was killed leaves its sockets, and may be started again. */
	if (!locked && waiting < 0 && access(tsi_address_channel(a), F_OK))
		/* Or it has stopped, and its answer was lost as it ended. */
		return tsi_stop_file_since(a, begin_ns, by) ? 0 : TSOCK_ENOPROD;
	if (waiting > 0 && !force)
		return tsi_err(TSOCK_EREFUSED,
			       "%d process%s wait%s for the next producer of "
			       "the stream: %s",
			       waiting, waiting == 1 ? "" : "es",
			       waiting == 1 ? "s" : "", names);
	err = tsi_stop_file_write(a, who);
	if (err)
		return err;
	if (!locked) {
		tsi_record_file_remove(a);
		return 0;
	}
	if (pid > 0 && pid != (long)getpid())
		kill((pid_t)pid, SIGTERM);
	return await_end(a, deadline);
}

int tsock_stop(const char *name, int force, int timeout_ms)
{
	int64_t begin = tsi_now_ns();
	int64_t deadline =
		timeout_ms < 0 ? INT64_MAX : begin / 1000000 + timeout_ms;
	struct tsi_address address[TSI_ADDRESSES];
	char folders[TSI_ADDRESSES * (TSI_SOCKET_PATH + 5)], running[256];
	char who[TSI_STOP_WHO];
	int n, err = TSOCK_ENOPROD; /* where no folder is */

	if (!name)
		return tsi_err(TSOCK_EARG, "tsock_stop: name is NULL");
	n = tsi_address_find(name, address, TSI_ADDRESSES);
	if (n < 0)
		return n;
	say_who(who);
	for (int i = 0; i < n; i++) {
		err = TSOCK_ELOST;
		if (tsi_fdpass_listening(tsi_address_fdpass(&address[i])) > 0)
			err = ask_to_stop(&address[i], force, who, deadline);
		if (!err)
			return await_end(&address[i], deadline);
		/* It may have gone in between. */
		if (err == TSOCK_ELOST)
			err = stop_unserved(&address[i], force, who, begin,
					    deadline);
		if (err != TSOCK_ENOPROD || i == n - 1)
			break;
	}
	if (err != TSOCK_ENOPROD)
		return err;
	tsi_address_folders(address, (unsigned)n, folders, sizeof(folders));
	tsi_running(running, sizeof(running));
	return tsi_err(TSOCK_ENOPROD,
		       "no producer serves a stream called %s: nobody listens "
		       "in %s%s",
		       name, folders, running);
}

int tsock_stopped(const char *name, int64_t since_ns)
{
	struct tsi_address address[TSI_ADDRESSES];
	char who[TSI_STOP_WHO];
	int n;

	if (!name)
		return tsi_err(TSOCK_EARG, "tsock_stopped: name is NULL");
	n = tsi_address_find(name, address, TSI_ADDRESSES);
	for (int i = 0; i < n; i++)
		if (tsi_stop_file_since(&address[i], since_ns, who))
			return tsi_stop_file_err(&address[i], who);
	return n < 0 ? n : 0;
}
