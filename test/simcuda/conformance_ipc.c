/* SPDX-License-Identifier: MIT */
/*
 * conformance_ipc.c - what libtsock relies on in CUDA between processes:
 * memory by legacy handle, which processes may open it, and device names.
 *
 * What CUDA leaves undefined is asked of the simulation only.
 */
#include "conformance.h"

#include <signal.h>

#define LEN (3u << 20)

/* ---- legacy handles ---- */

/* Opens what it is sent, checks it, writes it, and waits to be ended. */
static void open_legacy(int sock)
{
	cudaIpcMemHandle_t h;
	void *p, *again;

	hear(sock, &h, sizeof(h));
	OK(cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess));
	OK(cudaIpcOpenMemHandle(&again, h, cudaIpcMemLazyEnablePeerAccess));
	assert_ptr_equal(p, again);
	OK(cudaIpcCloseMemHandle(again));
	verify_device(p, LEN, 1);
	upload(p, LEN, 2);
	nudge(sock);
	await(sock);
	verify_device(p, LEN, 3);
	OK(cudaIpcCloseMemHandle(p));
	FAILS(cudaIpcCloseMemHandle(p), cudaErrorInvalidValue);
	nudge(sock);
}

static void a_handle_opens_the_same_memory_elsewhere(void **state)
{
	cudaIpcMemHandle_t h;
	void *p = device_memory(LEN), *q;
	int sock;
	pid_t pid = child("open_legacy", NULL, &sock);

	(void)state;
	upload(p, LEN, 1);
	OK(cudaIpcGetMemHandle(&h, p));
	tell(sock, &h, sizeof(h));
	await(sock);
	verify_device(p, LEN, 2);
	upload(p, LEN, 3);
	OK(cudaDeviceSynchronize());
	nudge(sock);
	await(sock);
	assert_int_equal(ended(pid), 0);
	FAILS(cudaIpcOpenMemHandle(&q, h, cudaIpcMemLazyEnablePeerAccess),
	      cudaErrorDeviceUninitialized);
	FAILS(cudaIpcOpenMemHandle(&q, h, 0), cudaErrorInvalidValue);
	close(sock);
	OK(cudaFree(p));
}

#ifdef SIMCUDA
static void only_an_allocation_itself_has_a_handle(void **state)
{
	cudaIpcMemHandle_t h;
	char *p = device_memory(LEN);

	(void)state;
	FAILS(cudaIpcGetMemHandle(&h, p + 512), cudaErrorInvalidValue);
	FAILS(cudaIpcGetMemHandle(&h, p + LEN), cudaErrorInvalidValue);
	FAILS(cudaIpcGetMemHandle(&h, &h), cudaErrorInvalidValue);
	OK(cudaFree(p));
}

/* Two small allocations lie in one block, which is opened once. */
static void open_neighbours(int sock)
{
	cudaIpcMemHandle_t h[2];
	char *p[2];

	hear(sock, h, sizeof(h));
	for (int i = 0; i < 2; i++)
		OK(cudaIpcOpenMemHandle((void **)&p[i], h[i],
					cudaIpcMemLazyEnablePeerAccess));
	assert_true(labs(p[0] - p[1]) < 2 << 20);
	verify_device(p[0], 1000, 1);
	verify_device(p[1], 1000, 2);
	OK(cudaIpcCloseMemHandle(p[0]));
	verify_device(p[1], 1000, 2);
	OK(cudaIpcCloseMemHandle(p[1]));
}

static void small_allocations_share_a_block(void **state)
{
	cudaIpcMemHandle_t h[2];
	void *p = device_memory(1000), *q = device_memory(1000);
	int sock;
	pid_t pid = child("open_neighbours", NULL, &sock);

	(void)state;
	upload(p, 1000, 1);
	upload(q, 1000, 2);
	OK(cudaIpcGetMemHandle(&h[0], p));
	OK(cudaIpcGetMemHandle(&h[1], q));
	tell(sock, h, sizeof(h));
	assert_int_equal(ended(pid), 0);
	close(sock);
	OK(cudaFree(p));
	OK(cudaFree(q));
}

static void use_freed(int sock)
{
	cudaIpcMemHandle_t h;
	void *p;

	hear(sock, &h, sizeof(h));
	OK(cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess));
	nudge(sock);
	await(sock);
	verify_device(p, LEN, 1);
}

static void use_after_free_is_reported(void **state)
{
	cudaIpcMemHandle_t h;
	void *p = device_memory(LEN);
	int sock;
	pid_t pid = child("use_freed", NULL, &sock);

	(void)state;
	OK(cudaIpcGetMemHandle(&h, p));
	tell(sock, &h, sizeof(h));
	await(sock);
	OK(cudaFree(p));
	nudge(sock);
	assert_int_equal(ended(pid), -SIGABRT);
	close(sock);
}

static void open_far(int sock)
{
	cudaIpcMemHandle_t h;
	void *p;

	hear(sock, &h, sizeof(h));
	OK(cudaSetDevice(1));
	FAILS(cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess),
	      cudaErrorMapBufferObjectFailed);
	OK(cudaSetDevice(0));
	OK(cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess));
	OK(cudaIpcCloseMemHandle(p));
}

static void a_handle_needs_peer_access_from_another_device(void **state)
{
	cudaIpcMemHandle_t h;
	void *p = device_memory(LEN);
	int sock;
	pid_t pid = child("open_far", "SIMCUDA_NO_P2P=0-1", &sock);

	(void)state;
	need_devices(2);
	OK(cudaIpcGetMemHandle(&h, p));
	tell(sock, &h, sizeof(h));
	assert_int_equal(ended(pid), 0);
	close(sock);
	OK(cudaFree(p));
}

static void use_in_fork(void)
{
	int n, code;
	pid_t pid;

	OK(cudaFree(0));
	pid = fork();
	if (pid == 0)
		_exit(cudaGetDeviceCount(&n) == cudaErrorInitializationError
			      ? 0
			      : 1);
	code = ended(pid);
	assert_int_equal(code, 0);
}

static void a_forked_child_cant_use_it(void **state)
{
	(void)state;
	use_in_fork();
}
#endif

static void export_and_wait(int sock)
{
	cudaIpcMemHandle_t h;
	void *p = device_memory(LEN);

	OK(cudaIpcGetMemHandle(&h, p));
	tell(sock, &h, sizeof(h));
	await(sock);
}

static void a_dead_process_has_no_handles(void **state)
{
	cudaIpcMemHandle_t h;
	void *p;
	int sock;
	pid_t pid = child("export_and_wait", NULL, &sock);

	(void)state;
	hear(sock, &h, sizeof(h));
	kill(pid, SIGKILL);
	assert_int_equal(ended(pid), -SIGKILL);
	assert_int_not_equal(
		cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess),
		cudaSuccess);
	(void)cudaGetLastError();
	close(sock);
}

/* ---- devices ---- */

static void tell_uuid(int sock)
{
	CUuuid u;

	assert_int_equal(devices(), 1);
	CU(cuDeviceGetUuid, &u, 0);
	tell(sock, &u, sizeof(u));
}

static void a_device_keeps_its_uuid_when_others_are_hidden(void **state)
{
	CUuuid here, there;
	int sock;
	pid_t pid = child("tell_uuid", "CUDA_VISIBLE_DEVICES=1", &sock);

	(void)state;
	need_devices(2);
	CU(cuDeviceGetUuid, &here, 1);
	hear(sock, &there, sizeof(there));
	assert_int_equal(ended(pid), 0);
	assert_memory_equal(&here, &there, sizeof(here));
	close(sock);
}

static void a_device_can_be_named_by_its_uuid(void **state)
{
	char setting[80] = "CUDA_VISIBLE_DEVICES=GPU-";
	CUuuid here, there;
	size_t n = strlen(setting);
	int sock;
	pid_t pid;

	(void)state;
	CU(cuDeviceGetUuid, &here, devices() - 1);
	for (int i = 0; i < 16; i++)
		n += (size_t)sprintf(setting + n, "%s%02x",
				     i == 4 || i == 6 || i == 8 || i == 10 ? "-"
									   : "",
				     (unsigned char)here.bytes[i]);
	pid = child("tell_uuid", setting, &sock);
	hear(sock, &there, sizeof(there));
	assert_int_equal(ended(pid), 0);
	assert_memory_equal(&here, &there, sizeof(here));
	close(sock);
}

static struct conformance_child children[] = {
	{ "open_legacy", open_legacy },
#ifdef SIMCUDA
	{ "open_neighbours", open_neighbours },
	{ "use_freed", use_freed },
	{ "open_far", open_far },
#endif
	{ "export_and_wait", export_and_wait },
	{ "tell_uuid", tell_uuid },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_opens_the_same_memory_elsewhere),
#ifdef SIMCUDA
		cmocka_unit_test(only_an_allocation_itself_has_a_handle),
		cmocka_unit_test(small_allocations_share_a_block),
		cmocka_unit_test(use_after_free_is_reported),
		cmocka_unit_test(
			a_handle_needs_peer_access_from_another_device),
		cmocka_unit_test(a_forked_child_cant_use_it),
#endif
		cmocka_unit_test(a_dead_process_has_no_handles),
		cmocka_unit_test(
			a_device_keeps_its_uuid_when_others_are_hidden),
		cmocka_unit_test(a_device_can_be_named_by_its_uuid),
	};
	int start = conformance_start_or_play(argc, argv, children);

	return start < 0 ? cmocka_run_group_tests(tests, NULL, NULL) : start;
}
