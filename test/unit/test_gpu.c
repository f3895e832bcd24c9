/* SPDX-License-Identifier: MIT */
/*
 * test_gpu.c - devices and memory of GPUs: on a real one where there is one,
 * else on the simulation, else what a machine without any says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "test/lib/gpu_child.h"
#include "mem/gpu.h"

/* ---- devices ---- */

static void see_line(void *arg, const char *line)
{
	unsigned *lines = arg;

	assert_true(strlen(line) > 10);
	assert_null(strchr(line, '\n'));
	++*lines;
}

static void each_device_is_told_in_one_line(void **state)
{
	unsigned lines = 0;

	(void)state;
	assert_int_equal(tsock_devices(see_line, &lines), gpu_child_gpus);
	assert_int_equal(lines, gpu_child_gpus ? gpu_child_gpus : 1);
}

static void without_a_gpu_every_call_says_why(void **state)
{
	struct tsi_gpu_info info;
	uint8_t uuid[TSI_UUID] = { 1 };
	unsigned n;
	void *p;

	(void)state;
	assert_int_equal(tsi_gpu_count(&n), TSOCK_ENOTSUP);
	assert_true(strlen(tsock_errmsg()) > 10);
	assert_int_equal(tsi_gpu_info(0, &info), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_find(uuid, &n), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_pin(0, &info, 1), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_alloc(0, 1, &p), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_host_alloc(0, 1, &p), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_stream_create(0, &p), TSOCK_ENOTSUP);
	assert_int_equal(tsi_gpu_healthy(0), TSOCK_ENOTSUP);
	assert_false(tsi_gpu_peer(0, 1));
	tsi_gpu_host_free(0, NULL);
	tsi_gpu_free(0, NULL);
	tsi_gpu_mem_close(NULL);
	tsi_gpu_event_destroy(NULL);
	tsi_gpu_stream_destroy(0, NULL);
}

static void devices_are_found_by_uuid(void **state)
{
	struct tsi_gpu_info info;
	unsigned found;

	(void)state;
	gpu_child_need_gpus(1);
	for (unsigned i = 0; i < gpu_child_gpus; i++) {
		assert_int_equal(tsi_gpu_info(i, &info), 0);
		assert_int_equal(tsi_gpu_find(info.uuid, &found), 0);
		assert_int_equal(found, i);
		assert_true(strlen(info.name) > 3);
		assert_true(info.free_bytes <= info.total_bytes);
		assert_true(info.free_bytes > 0);
		if (info.vmm_fd)
			assert_true(info.granularity >= 4096);
		assert_int_equal(tsi_gpu_healthy(i), 0);
	}
}

static void an_unknown_device_is_refused(void **state)
{
	struct tsi_gpu_info info;
	uint8_t uuid[TSI_UUID] = { 0xde, 0xad };
	unsigned found = 77;
	void *p = &p;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_find(uuid, &found), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "dead0000"));
	assert_int_equal(found, 77);
	assert_int_equal(tsi_gpu_info(gpu_child_gpus, &info), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "there is no GPU"));
	assert_int_equal(tsi_gpu_alloc(4000000, 4096, &p), TSOCK_EARG);
	assert_ptr_equal(p, &p);
}

static void the_current_device_stays(void **state)
{
	int device = -1;
	void *p;

	(void)state;
	gpu_child_need_gpus(2);
	assert_int_equal(cudaSetDevice(1), 0);
	assert_int_equal(tsi_gpu_alloc(0, 4096, &p), 0);
	tsi_gpu_free(0, p);
	assert_int_equal(cudaGetDevice(&device), 0);
	assert_int_equal(device, 1);
	assert_int_equal(cudaSetDevice(0), 0);
	assert_int_equal(tsi_gpu_alloc(1, 4096, &p), 0);
	tsi_gpu_free(1, p);
	assert_int_equal(cudaGetDevice(&device), 0);
	assert_int_equal(device, 0);
}

/* ---- memory that another process opens ---- */

#define OPENED (3 * 64 * 1024 + 12345)

/* argv: transport, descriptor, handle, bytes, twice, where. */
static void child_open(int argc, char **argv)
{
	uint8_t handle[TSI_GPU_HANDLE];
	uint8_t *want = malloc(OPENED), *got = malloc(OPENED);
	uint64_t bytes = strtoull(argv[3], NULL, 10);
	uint64_t at = strtoull(argv[5], NULL, 10);
	struct tsi_gpu_mem m;
	tsi_gpu_stream s;
	int err;

	(void)argc;
	for (unsigned i = 0; i < TSI_GPU_HANDLE; i++)
		sscanf(argv[2] + (size_t)i * 2, "%2hhx", &handle[i]);
	err = tsi_gpu_mem_open(0, (enum tsock_transport)atoi(argv[0]),
			       atoi(argv[1]), handle, bytes, atoi(argv[4]) != 0,
			       &m);
	if (err) {
		printf("%d %s", err, tsock_errmsg());
		return;
	}
	tsi_gpu_stream_create(0, &s);
	gpu_child_fetch(0, s, got, (char *)m.base + at, OPENED);
	gpu_child_pattern(want, OPENED, 7);
	/* Beyond the end it goes on at the beginning. */
	printf("%d", memcmp(want, got, OPENED) == 0 ? 42 : 43);
	tsi_gpu_stream_destroy(0, s);
	tsi_gpu_mem_close(&m);
	free(want);
	free(got);
}

static void open_elsewhere(const struct tsi_gpu_mem *m, bool twice, uint64_t at,
			   char *out, size_t n)
{
	char transport[8], fd[16], hex[TSI_GPU_HANDLE * 2 + 1], bytes[32],
		where[32];
	char *argv[] = { (char *)"open",
			 transport,
			 fd,
			 hex,
			 bytes,
			 (char *)(twice ? "1" : "0"),
			 where,
			 NULL };

	snprintf(transport, sizeof(transport), "%d", (int)m->transport);
	snprintf(fd, sizeof(fd), "%d", m->fd);
	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)m->bytes);
	snprintf(where, sizeof(where), "%llu", (unsigned long long)at);
	for (unsigned i = 0; i < TSI_GPU_HANDLE; i++)
		sprintf(hex + (size_t)i * 2, "%02x", m->handle[i]);
	if (m->fd >= 0)
		assert_int_equal(fcntl(m->fd, F_SETFD, 0), 0);
	assert_int_equal(gpu_child_run(argv, NULL, out, n), 0);
}

/* The pattern at a place that may cross the end. */
static void put_pattern(const struct tsi_gpu_mem *m, uint64_t at)
{
	uint8_t *p = malloc(OPENED);
	uint64_t first = m->bytes - at < OPENED ? m->bytes - at : OPENED;
	tsi_gpu_stream s;

	gpu_child_pattern(p, OPENED, 7);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	gpu_child_upload(0, s, (char *)m->base + at, p, first);
	gpu_child_upload(0, s, m->base, p + first, OPENED - first);
	tsi_gpu_stream_destroy(0, s);
	free(p);
}

static void need_transport(enum tsock_transport transport,
			   struct tsi_gpu_info *info)
{
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_info(0, info), 0);
	if (transport == TSOCK_TRANSPORT_VMM ? !info->vmm_fd
					     : !info->legacy_ipc) {
		print_message("the GPU doesn't have it\n");
		skip();
	}
}

static void another_process_opens_a_descriptor(void **state)
{
	struct tsi_gpu_info info;
	struct tsi_gpu_mem m;
	char out[600];

	(void)state;
	need_transport(TSOCK_TRANSPORT_VMM, &info);
	assert_int_equal(tsi_gpu_mem_create(0, TSOCK_TRANSPORT_AUTO,
					    info.granularity * 2, &m),
			 0);
	assert_int_equal(m.transport, TSOCK_TRANSPORT_VMM);
	assert_true(m.fd >= 0);
	assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
	put_pattern(&m, 4097);
	open_elsewhere(&m, false, 4097, out, sizeof(out));
	assert_string_equal(out, "42");
	put_pattern(&m, m.bytes - 777);
	open_elsewhere(&m, true, m.bytes - 777, out, sizeof(out));
	assert_string_equal(out, "42");
	tsi_gpu_mem_close(&m);
}

static void another_process_opens_a_handle(void **state)
{
	struct tsi_gpu_info info;
	struct tsi_gpu_mem m, again;
	char out[600];

	(void)state;
	need_transport(TSOCK_TRANSPORT_LEGACY, &info);
	assert_int_equal(
		tsi_gpu_mem_create(0, TSOCK_TRANSPORT_LEGACY, 1000001, &m), 0);
	assert_int_equal(m.transport, TSOCK_TRANSPORT_LEGACY);
	assert_int_equal(m.fd, -1);
	put_pattern(&m, 12);
	open_elsewhere(&m, false, 12, out, sizeof(out));
	assert_string_equal(out, "42");
	/* Its own process can't, and is told why. */
	assert_int_equal(tsi_gpu_mem_open(0, TSOCK_TRANSPORT_LEGACY, -1,
					  m.handle, m.bytes, false, &again),
			 TSOCK_ENOTSUP);
	assert_non_null(strstr(tsock_errmsg(), "cudaIpcOpenMemHandle"));
	assert_int_equal(cudaGetLastError(), 0);
	tsi_gpu_mem_close(&m);
}

static void what_is_no_memory_is_not_opened(void **state)
{
	struct tsi_gpu_info info;
	struct tsi_gpu_mem m = { .fd = 99 };
	uint8_t handle[TSI_GPU_HANDLE] = { 0 };
	int fd;

	(void)state;
	need_transport(TSOCK_TRANSPORT_VMM, &info);
	fd = memfd_create("no GPU memory", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_not_equal(tsi_gpu_mem_open(0, TSOCK_TRANSPORT_VMM, fd, NULL,
					      info.granularity, true, &m),
			     0);
	close(fd);
	assert_int_not_equal(tsi_gpu_mem_open(0, TSOCK_TRANSPORT_LEGACY, -1,
					      handle, 4096, false, &m),
			     0);
	assert_int_equal(tsi_gpu_mem_open(0, TSOCK_TRANSPORT_VMM, -1, handle,
					  4096, false, &m),
			 TSOCK_EARG);
	assert_int_equal(tsi_gpu_mem_open(0, TSOCK_TRANSPORT_STAGED, -1, handle,
					  4096, false, &m),
			 TSOCK_EARG);
	assert_int_equal(
		tsi_gpu_mem_create(0, TSOCK_TRANSPORT_STAGED, 4096, &m),
		TSOCK_EARG);
	assert_int_equal(tsi_gpu_mem_create(0, TSOCK_TRANSPORT_VMM,
					    info.granularity + 1, &m),
			 TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "granularity"));
	assert_int_equal(m.fd, 99);
	assert_int_equal(cudaGetLastError(), 0);
	assert_int_equal(tsi_gpu_healthy(0), 0);
}

static void too_much_memory_is_said_with_the_sizes(void **state)
{
	struct tsi_gpu_info info;
	struct tsi_gpu_mem m;
	void *p;
	uint64_t much;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_info(0, &info), 0);
	assert_int_equal(tsi_gpu_alloc(0, info.total_bytes * 2, &p),
			 TSOCK_ENOMEM);
	assert_non_null(strstr(tsock_errmsg(), "are needed"));
	assert_non_null(strstr(tsock_errmsg(), "are free"));
	assert_int_equal(cudaGetLastError(), 0);
	if (info.vmm_fd) {
		much = info.total_bytes / info.granularity * info.granularity *
		       2;
		assert_int_equal(
			tsi_gpu_mem_create(0, TSOCK_TRANSPORT_AUTO, much, &m),
			TSOCK_ENOMEM);
		assert_non_null(strstr(tsock_errmsg(), "cuMemCreate"));
	}
	assert_int_equal(tsi_gpu_mem_create(0, TSOCK_TRANSPORT_LEGACY,
					    info.total_bytes * 2, &m),
			 TSOCK_ENOMEM);
	assert_non_null(strstr(tsock_errmsg(), "cudaMalloc"));
}

static void memory_goes_back(void **state)
{
	struct tsi_gpu_info before, after;
	struct tsi_gpu_mem m;

	(void)state;
	need_transport(TSOCK_TRANSPORT_VMM, &before);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(tsi_gpu_mem_create(0, TSOCK_TRANSPORT_VMM,
						    before.granularity * 8, &m),
				 0);
		tsi_gpu_mem_close(&m);
		assert_int_equal(m.fd, -1);
		tsi_gpu_mem_close(&m); /* closed already: nothing */
		assert_int_equal(tsi_gpu_mem_create(0, TSOCK_TRANSPORT_LEGACY,
						    5 << 20, &m),
				 0);
		tsi_gpu_mem_close(&m);
	}
	assert_int_equal(tsi_gpu_info(0, &after), 0);
	/* Others may use a real GPU meanwhile; not for as much as 20 rings. */
	assert_true(after.free_bytes + before.granularity * 8 * 10 >
		    before.free_bytes);
}

/* ---- forking ---- */

static void a_forked_child_is_told(void **state)
{
	struct tsi_gpu_event *e;
	struct tsi_gpu_info info;
	unsigned n;
	pid_t pid;
	void *p;
	int status, bad = 0;

	(void)state;
	gpu_child_need_gpus(1);
	assert_int_equal(tsi_gpu_event_create(0, true, &e), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bad |= tsi_gpu_count(&n) != TSOCK_EFORK;
		bad |= tsi_gpu_info(0, &info) != TSOCK_EFORK;
		bad |= tsi_gpu_alloc(0, 4096, &p) != TSOCK_EFORK;
		bad |= tsi_gpu_event_query(e) != TSOCK_EFORK;
		bad |= tsi_gpu_event_record(e, NULL) != TSOCK_EFORK;
		bad |= tsi_gpu_pin(0, &n, 4) != TSOCK_EFORK;
		bad |= tsi_gpu_healthy(0) != TSOCK_EFORK;
		_exit(bad ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(tsi_gpu_event_query(e), 0);
	tsi_gpu_event_destroy(e);
}

static void memory_of_a_gpu(void **state)
{
	(void)state;
	gpu_child_need_gpus(1);
}

int main(int argc, char **argv)
{
	static const struct child children[] = { { "open", child_open },
						 { NULL, NULL } };
	const struct CMUnitTest none[] = {
		cmocka_unit_test(each_device_is_told_in_one_line),
		cmocka_unit_test(without_a_gpu_every_call_says_why),
		cmocka_unit_test(memory_of_a_gpu),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_device_is_told_in_one_line),
		cmocka_unit_test(devices_are_found_by_uuid),
		cmocka_unit_test(an_unknown_device_is_refused),
		cmocka_unit_test(the_current_device_stays),
		cmocka_unit_test(another_process_opens_a_descriptor),
		cmocka_unit_test(another_process_opens_a_handle),
		cmocka_unit_test(what_is_no_memory_is_not_opened),
		cmocka_unit_test(too_much_memory_is_said_with_the_sizes),
		cmocka_unit_test(memory_goes_back),
		cmocka_unit_test(a_forked_child_is_told),
	};

	gpu_child_main(argc, argv, children);
	if (tsi_gpu_count(&gpu_child_gpus))
		gpu_child_gpus = 0;
	if (!gpu_child_gpus)
		return cmocka_run_group_tests(none, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
