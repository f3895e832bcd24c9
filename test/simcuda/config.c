/* SPDX-License-Identifier: MIT */
/*
 * config.c - the machine that is simulated, from the environment.
 *
 * SIMCUDA_DEVICES=4          devices of the machine (0 to 16)
 * SIMCUDA_MEM=BYTES          memory of each; 4 GiB
 * SIMCUDA_NO_P2P=all|0-1,..  pairs without peer access
 * SIMCUDA_PEERS_MAX=N        other devices that may use an allocation
 * SIMCUDA_LIES=all|0-1,..    pairs whose copies arrive with a wrong byte
 * SIMCUDA_NCCL_LIES=1        broadcasts do
 * SIMCUDA_MIG=all|0,2,..     devices that are MIG instances; a process sees
 *                            one of them, and nothing else
 * SIMCUDA_CONTEXT_MEM=BYTES, SIMCUDA_CONTEXT_MS  what a context costs
 * SIMCUDA_NO_IMAGE=all|0,2,..  devices that kernels are not compiled for
 * SIMCUDA_NO_VMM=1           no virtual memory management
 * SIMCUDA_NO_FD=1            VMM without descriptors
 * SIMCUDA_NO_REGISTER=1      host memory can't be page-locked
 * SIMCUDA_RO_REGISTER=1      it can even if mapped read-only
 * SIMCUDA_REGISTER_MAX=BYTES the most that one call page-locks; 512 GiB
 * SIMCUDA_DRIVER=none|old|12020  no driver; one too old for the runtime; one of
 *                            that version, which the runtime takes all the same
 * SIMCUDA_MODE=eager|late|random|reverse|stuck, SIMCUDA_SEED=N
 *                            when work runs (engine.c)
 * SIMCUDA_LATE_MS, SIMCUDA_STUCK_MS  how late at the most, how long stuck
 * SIMCUDA_FAULT, SIMCUDA_TELL  errors on demand (fault.c)
 * CUDA_VISIBLE_DEVICES       as with the real runtime
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static unsigned long long number(const char *name, unsigned long long otherwise)
{
	const char *s = getenv(name);
	unsigned long long n;
	char *end;

	if (!s || !*s)
		return otherwise;
	n = strtoull(s, &end, 0);
	if (*end)
		sim_die("%s=%s is no number", name, s);
	return n;
}

static bool all(const char *s)
{
	return strcmp(s, "all") == 0;
}

/* "0-1,2-3": pairs; "all"; "1" is all too. */
static void set_pairs(const char *name, bool pair[SIM_DEVICES][SIM_DEVICES],
		      bool value)
{
	const char *s = getenv(name);
	unsigned a, b;
	int used;

	if (!s || !*s)
		return;
	if (all(s) || strcmp(s, "1") == 0) {
		memset(pair, value, SIM_DEVICES * SIM_DEVICES);
		return;
	}
	while (sscanf(s, "%u-%u%n", &a, &b, &used) == 2) {
		if (a >= SIM_DEVICES || b >= SIM_DEVICES)
			sim_die("%s: no device %u-%u", name, a, b);
		pair[a][b] = pair[b][a] = value;
		s += used;
		s += *s == ',';
	}
	if (*s)
		sim_die("%s: \"%s\" is no list of pairs", name, s);
}

static void configure_p2p(void)
{
	for (unsigned i = 0; i < sim.ndev; i++)
		for (unsigned j = 0; j < sim.ndev; j++)
			sim.p2p[i][j] =
				i != j && !sim.dev[i].mig && !sim.dev[j].mig;
	set_pairs("SIMCUDA_NO_P2P", sim.p2p, false);
	set_pairs("SIMCUDA_LIES", sim.lies, true);
	sim.nccl_lies = number("SIMCUDA_NCCL_LIES", 0);
}

/* "0,2"; or "all". */
static bool is_listed(const char *name, unsigned device)
{
	const char *s = getenv(name);
	unsigned n;
	int used;

	if (!s || !*s)
		return false;
	if (all(s))
		return true;
	while (sscanf(s, "%u%n", &n, &used) == 1) {
		if (n == device)
			return true;
		s += used;
		s += *s == ',';
	}
	return false;
}

static void configure_device(unsigned i)
{
	struct sim_device *d = &sim.dev[i];

	d->mig = is_listed("SIMCUDA_MIG", i);
	sim.no_image[i] = is_listed("SIMCUDA_NO_IMAGE", i);
	d->total = number("SIMCUDA_MEM", 4ULL << 30);
	snprintf(d->name, sizeof(d->name), "Simulated GPU%s",
		 d->mig ? " MIG 1g.10gb" : "");
	/* Equal in every process, another one for each device. */
	for (unsigned k = 0; k < 16; k++)
		d->uuid[k] = (uint8_t)((0x51u + 37 * k) ^ (i * 0x1d + i * k));
}

static void uuid_text(const struct sim_device *d, char out[48])
{
	const uint8_t *u = d->uuid;
	int n = sprintf(out, d->mig ? "MIG-" : "GPU-");

	for (unsigned i = 0; i < 16; i++)
		n += sprintf(out + n, "%s%02x",
			     i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			     u[i]);
}

/* A device by its number or by the beginning of its UUID; -1: none. */
static int device_of(const char *item)
{
	char text[48], *end;
	long n = strtol(item, &end, 10);
	int found = -1;

	if (end != item && !*end)
		return n >= 0 && n < (long)sim.ndev ? (int)n : -1;
	for (unsigned i = 0; i < sim.ndev; i++) {
		uuid_text(&sim.dev[i], text);
		if (strlen(item) < 5 ||
		    strncasecmp(text, item, strlen(item)) != 0)
			continue;
		if (found >= 0)
			return -1; /* of two */
		found = (int)i;
	}
	return found;
}

/* The list ends at the first device that isn't there, or is there twice. */
void sim_find_visible(const char *list)
{
	char *copy = strdup(list), *save = NULL;

	sim.nvisible = 0;
	for (char *t = copy ? strtok_r(copy, ", ", &save) : NULL; t;
	     t = strtok_r(NULL, ", ", &save)) {
		int d = device_of(t);

		if (d < 0)
			break;
		if (sim_ordinal_of((unsigned)d) >= 0) {
			sim.nvisible = 0;
			break;
		}
		sim.visible[sim.nvisible++] = (unsigned)d;
	}
	free(copy);
}

/* A process sees one MIG instance, the first, and no other GPU beside it. */
static void hide_beside_mig(void)
{
	for (unsigned i = 0; i < sim.nvisible; i++)
		if (sim.dev[sim.visible[i]].mig) {
			sim.visible[0] = sim.visible[i];
			sim.nvisible = 1;
		}
}

static void configure_time(void)
{
	static const char *const names[] = { "eager", "late", "random",
					     "reverse", "stuck" };
	const char *s = getenv("SIMCUDA_MODE");
	unsigned i = SIM_RANDOM;

	if (s && *s)
		for (i = 0; i < 5 && strcmp(s, names[i]) != 0;)
			i++;
	if (i == 5)
		sim_die("SIMCUDA_MODE=%s: eager, late, random, reverse, stuck",
			s);
	sim.mode = (enum sim_mode)i;
	/* Any seed but 0 will do for the generator. */
	sim.rng = (number("SIMCUDA_SEED", 1) + 1) * 0x9e3779b97f4a7c15ULL | 1;
	for (i = 0; i < 8; i++)
		sim_random();
	sim.stuck_order = 3 + sim_random() % 5;
	sim.late_ns = (int64_t)number("SIMCUDA_LATE_MS", 1000) * SIM_MS;
	sim.stuck_ns = (int64_t)number("SIMCUDA_STUCK_MS", 2000) * SIM_MS;
}

static void configure_driver(void)
{
	const char *s = getenv("SIMCUDA_DRIVER");

	sim.driver_version = CUDA_VERSION;
	if (!s || !*s)
		return;
	if (strcmp(s, "none") != 0 && strcmp(s, "old") != 0) {
		sim.driver_version = (int)number("SIMCUDA_DRIVER", 0);
		return;
	}
	sim.driver_version = strcmp(s, "old") == 0 ? 11040 : 0;
	sim.unusable = cudaErrorInsufficientDriver;
}

void sim_configure(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	sim.ndev = (unsigned)number("SIMCUDA_DEVICES", 4);
	if (sim.ndev > SIM_DEVICES)
		sim_die("SIMCUDA_DEVICES: at most %d", SIM_DEVICES);
	for (unsigned i = 0; i < sim.ndev; i++) {
		configure_device(i);
		sim.visible[sim.nvisible++] = i;
	}
	configure_p2p();
	if (visible)
		sim_find_visible(visible);
	hide_beside_mig();
	sim.peers_max = (unsigned)number("SIMCUDA_PEERS_MAX", SIM_DEVICES);
	sim.no_vmm = number("SIMCUDA_NO_VMM", 0);
	sim.no_fd = number("SIMCUDA_NO_FD", 0);
	sim.no_register = number("SIMCUDA_NO_REGISTER", 0);
	sim.ro_register = number("SIMCUDA_RO_REGISTER", 0);
	sim.register_max = number("SIMCUDA_REGISTER_MAX", 512ULL << 30);
	sim.context_bytes = number("SIMCUDA_CONTEXT_MEM", 300ULL << 20);
	sim.context_ns = (int64_t)number("SIMCUDA_CONTEXT_MS", 2) * SIM_MS;
	configure_time();
	sim_parse_faults(getenv("SIMCUDA_FAULT"));
	if (!sim.nvisible)
		sim.unusable = cudaErrorNoDevice;
	configure_driver();
}
