/* SPDX-License-Identifier: MIT */
/*
 * fault.c - errors on demand and errors that stay.
 *
 * SIMCUDA_FAULT is a list of NAME:N=CODE (the N-th call of that function fails
 * with that code), NAME:N+=CODE (from the N-th call on), NAME=CODE (every
 * call) and slow=MS (each piece of work takes that much longer).  The name
 * `work` is the execution of work, not a call.  NAME@D counts device D alone:
 * the one that a call names, else the current one.
 *
 * The name `ncclKernel` is a rank's part of a broadcast, which then never gets
 * on, without an error, until all ranks are aborted.  `ncclGroup` is a group of
 * broadcasts whose ncclGroupEnd() returns when a rank is aborted, and not before.
 *
 * The code `lost` is a device that has gone: every later call fails.  The code
 * `hang` is a call that never returns, `300ms` one that takes that much longer,
 * and `told` one that goes on when a byte can be read from the descriptor
 * SIMCUDA_GO, where it stays for other such calls; of cuInit they hold for the
 * first call of any function, which all others wait for.  Each of the three
 * writes a byte to the descriptor SIMCUDA_TELL when it begins.
 */
#include "sim.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* After these a context is of no use any more. */
bool sim_is_sticky(cudaError_t err)
{
	switch ((int)err) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorMpsRpcFailure:
	case cudaErrorMpsClientTerminated:
	case cudaErrorExternalDevice:
	case cudaErrorUnknown:
		return true;
	}
	return false;
}

void sim_break(unsigned device, cudaError_t err)
{
	if (!sim.dev[device].sticky)
		sim.dev[device].sticky = err;
	for (struct sim_stream *s = sim.stream; s; s = s->next)
		if (s->device == device)
			sim_stream_drop(s);
	pthread_cond_broadcast(&sim.done);
}

static void rest(int64_t ns)
{
	struct timespec ts = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&ts, NULL);
}

static void await_word(void)
{
	const char *go = getenv("SIMCUDA_GO");
	struct pollfd p = { .fd = go ? atoi(go) : -1, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, -1);
	while (n < 0 && errno == EINTR);
	if (n != 1 || !(p.revents & POLLIN))
		sim_die("SIMCUDA_GO=%s can't be read", go ? go : "");
}

/* With the lock or without it: a call that others needn't wait for. */
static void linger(const struct sim_fault *f, bool unlocked)
{
	const char *tell = getenv("SIMCUDA_TELL");
	int64_t ns = f->late_ns;
	bool hang = f->hang, told = f->told;

	if (tell && write(atoi(tell), "x", 1) != 1)
		sim_die("SIMCUDA_TELL=%s can't be written to", tell);
	if (unlocked)
		pthread_mutex_unlock(&sim.lock);
	while (hang)
		pause();
	if (told)
		await_word();
	rest(ns);
	if (unlocked)
		pthread_mutex_lock(&sim.lock);
}

static cudaError_t happens(const struct sim_fault *f, unsigned device)
{
	if (f->hang || f->told || f->late_ns) {
		linger(f, true);
		return cudaSuccess;
	}
	if (f->lost && f->device < 0) {
		for (unsigned i = 0; i < sim.ndev; i++)
			sim_break(i, f->code);
	} else if (f->lost || sim_is_sticky(f->code)) {
		sim_break(device, f->code);
	}
	return f->code;
}

cudaError_t sim_fault(const char *name, unsigned device)
{
	for (unsigned i = 0; i < sim.nfault; i++) {
		struct sim_fault *f = &sim.fault[i];

		if (strcmp(f->name, name) != 0 ||
		    (f->device >= 0 && (unsigned)f->device != device))
			continue;
		f->calls++;
		if (!f->nth || f->calls == f->nth ||
		    (f->onwards && f->calls > f->nth))
			return happens(f, device);
	}
	return cudaSuccess;
}

void sim_fault_init(void)
{
	for (unsigned i = 0; i < sim.nfault; i++)
		if (strcmp(sim.fault[i].name, "cuInit") == 0)
			linger(&sim.fault[i], false);
}

/* Cut a number off the end of text, where the mark is. */
static bool cut(char *text, char mark, unsigned long *n)
{
	char *at = strchr(text, mark), *end;

	if (!at)
		return true;
	*at++ = '\0';
	*n = strtoul(at, &end, 10);
	return end != at && !*end;
}

static bool parse(char *item, struct sim_fault *f)
{
	unsigned long nth = 0, device = UINT_MAX;
	char *eq = strchr(item, '='), *end;
	bool counted;

	if (!eq)
		return false;
	f->onwards = eq > item && eq[-1] == '+';
	eq[f->onwards ? -1 : 0] = '\0';
	eq++;
	counted = strchr(item, ':') != NULL;
	if (!cut(item, ':', &nth) || (counted && !nth) ||
	    !cut(item, '@', &device))
		return false;
	f->nth = (unsigned)nth;
	f->device = (int)device;
	f->lost = strcmp(eq, "lost") == 0;
	f->hang = strcmp(eq, "hang") == 0;
	f->told = strcmp(eq, "told") == 0;
	f->code = (cudaError_t)strtol(eq, &end, 10);
	if (f->lost) {
		f->code = cudaErrorUnknown;
	} else if (end != eq && strcmp(end, "ms") == 0) {
		f->late_ns = (int64_t)f->code * SIM_MS;
		/* The work may be dropped meanwhile: `slow` is for that. */
		if (strcmp(item, "work") == 0)
			return false;
	} else if (!f->hang && !f->told && (end == eq || *end)) {
		return false;
	}
	if (strlen(item) >= sizeof(f->name))
		return false;
	memcpy(f->name, item, strlen(item) + 1);
	return true;
}

void sim_parse_faults(const char *text)
{
	char *copy = text ? strdup(text) : NULL, *save = NULL;

	for (char *t = copy ? strtok_r(copy, ",", &save) : NULL; t;
	     t = strtok_r(NULL, ",", &save)) {
		struct sim_fault f = { 0 };
		char item[96];

		snprintf(item, sizeof(item), "%s", t);
		if (!parse(item, &f) || sim.nfault == 32)
			sim_die("SIMCUDA_FAULT: \"%s\" isn't NAME:N=CODE", t);
		if (strcmp(f.name, "slow") == 0)
			sim.slow_ns = (int64_t)f.code * SIM_MS;
		else
			sim.fault[sim.nfault++] = f;
	}
	free(copy);
}

void simcuda_set_faults(const char *list)
{
	if (!sim_enter("simcuda_set_faults", SIM_ANYTIME)) {
		sim.nfault = 0;
		sim_parse_faults(list);
	}
	sim_leave(cudaSuccess);
}
