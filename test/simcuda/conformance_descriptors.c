/* SPDX-License-Identifier: MIT */
/*
 * conformance_descriptors.c - what libtsock relies on in CUDA between
 * processes: memory by descriptor, which processes may write it, and that it
 * outlives its process.
 */
#include "conformance.h"

#include <signal.h>

struct mapping {
	CUdeviceptr va;
	size_t len;
};

static CUmemLocation first_device(void)
{
	CUmemLocation l = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };

	return l;
}

static struct mapping map(CUmemGenericAllocationHandle h, size_t len,
			  CUmemAccess_flags flags)
{
	CUmemAccessDesc access = { first_device(), flags };
	struct mapping m = { 0, len };

	CU(cuMemAddressReserve, &m.va, len, 0, 0, 0);
	CU(cuMemMap, m.va, len, 0, h, 0);
	CU(cuMemSetAccess, m.va, len, &access, 1);
	CU(cuMemRelease, h);
	return m;
}

static void unmap(struct mapping m)
{
	CU(cuMemUnmap, m.va, m.len);
	CU(cuMemAddressFree, m.va, m.len);
}

static struct mapping create(int *fd)
{
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle h;
	size_t len;

	OK(cudaFree(0));
	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location = first_device();
	CU(cuMemGetAllocationGranularity, &len, &prop,
	   CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	CU(cuMemCreate, &h, len, &prop, 0);
	CU(cuMemExportToShareableHandle, fd, h,
	   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	return map(h, len, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static struct mapping import(int fd, CUmemAccess_flags flags)
{
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle h;
	size_t len;

	OK(cudaFree(0));
	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location = first_device();
	CU(cuMemGetAllocationGranularity, &len, &prop,
	   CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	CU(cuMemImportFromShareableHandle, &h, (void *)(intptr_t)fd,
	   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	return map(h, len, flags);
}

static void import_and_read(int sock)
{
	struct mapping m =
		import(receive_fd(sock), CU_MEM_ACCESS_FLAGS_PROT_READ);

	verify_device((void *)(uintptr_t)m.va, m.len, 1);
	nudge(sock);
	await(sock);
	verify_device((void *)(uintptr_t)m.va, m.len, 2);
	unmap(m);
}

static void a_descriptor_opens_the_same_memory_elsewhere(void **state)
{
	int fd, sock;
	struct mapping m = create(&fd);
	pid_t pid = child("import_and_read", NULL, &sock);

	(void)state;
	upload((void *)(uintptr_t)m.va, m.len, 1);
	send_fd(sock, fd);
	await(sock);
	upload((void *)(uintptr_t)m.va, m.len, 2);
	OK(cudaDeviceSynchronize());
	nudge(sock);
	assert_int_equal(ended(pid), 0);
	close(fd);
	close(sock);
	unmap(m);
}

/* Ends in an error that stays: so in a child. */
static void import_and_write(int sock)
{
	struct mapping m =
		import(receive_fd(sock), CU_MEM_ACCESS_FLAGS_PROT_READ);
	void *p = (void *)(uintptr_t)m.va;
	cudaError_t err = cudaMemset(p, 0, m.len);

	if (!err)
		err = cudaDeviceSynchronize();
	assert_int_not_equal(err, cudaSuccess);
#ifdef SIMCUDA
	assert_int_equal(err, cudaErrorIllegalAddress);
	assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
	FAILS(cudaMalloc(&p, 1), cudaErrorIllegalAddress);
#endif
}

static void what_is_mapped_for_reading_cant_be_written(void **state)
{
	int fd, sock;
	struct mapping m = create(&fd);
	pid_t pid = child("import_and_write", NULL, &sock);

	(void)state;
	upload((void *)(uintptr_t)m.va, m.len, 1);
	send_fd(sock, fd);
	assert_int_equal(ended(pid), 0);
	verify_device((void *)(uintptr_t)m.va, m.len, 1);
	close(fd);
	close(sock);
	unmap(m);
}

static void create_and_wait(int sock)
{
	int fd;
	struct mapping m = create(&fd);

	upload((void *)(uintptr_t)m.va, m.len, 4);
	OK(cudaDeviceSynchronize());
	send_fd(sock, fd);
	await(sock);
}

static void memory_outlives_the_process_that_made_it(void **state)
{
	int sock;
	pid_t pid = child("create_and_wait", NULL, &sock);
	struct mapping m =
		import(receive_fd(sock), CU_MEM_ACCESS_FLAGS_PROT_READ);

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(ended(pid), -SIGKILL);
	verify_device((void *)(uintptr_t)m.va, m.len, 4);
	close(sock);
	unmap(m);
}

static void any_other_descriptor_is_refused(void **state)
{
	CUmemGenericAllocationHandle h;
	int fd = dup(2);

	(void)state;
	OK(cudaFree(0));
	assert_int_not_equal(((__typeof__(&cuMemImportFromShareableHandle))
				      driver("cuMemImportFromShareableHandle"))(
				     &h, (void *)(intptr_t)fd,
				     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
			     CUDA_SUCCESS);
	close(fd);
}

static struct conformance_child children[] = {
	{ "import_and_read", import_and_read },
	{ "import_and_write", import_and_write },
	{ "create_and_wait", create_and_wait },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_descriptor_opens_the_same_memory_elsewhere),
		cmocka_unit_test(what_is_mapped_for_reading_cant_be_written),
		cmocka_unit_test(memory_outlives_the_process_that_made_it),
		cmocka_unit_test(any_other_descriptor_is_refused),
	};
	int start = conformance_start_or_play(argc, argv, children);

	return start < 0 ? cmocka_run_group_tests(tests, NULL, NULL) : start;
}
