/* SPDX-License-Identifier: MIT */
/*
 * probe_ipc.c - probe.c's questions about memory of another process.
 */
#include "test/gpu/probe.h"
#include "test/lib/send_fds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void send_fd(int sock, int fd)
{
	char byte = 'x';

	if (send_fds(sock, &byte, 1, &fd, fd >= 0) != 1)
		exit(3);
}

static int receive_fd(int sock)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char byte;
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = u.room,
			    .msg_controllen = sizeof(u.room) };
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

static void map(CUmemGenericAllocationHandle h, unsigned access,
		CUdeviceptr *at)
{
	CUmemAccessDesc a = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
					    .id = 0 },
			      .flags = (CUmemAccess_flags)access };

	must(CU(cuMemAddressReserve)(at, BYTES, 0, 0, 0));
	must(CU(cuMemMap)(*at, BYTES, 0, h, 0));
	must(CU(cuMemSetAccess)(*at, BYTES, &a, 1));
}

static int make_vmm(void)
{
	CUmemAllocationProp p = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes =
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 }
	};
	CUmemGenericAllocationHandle h;
	CUdeviceptr at;
	int fd = -1;

	must(CU(cuMemCreate)(&h, BYTES, &p, 0));
	map(h, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, &at);
	must(cudaMemset((void *)(uintptr_t)at, 0x5a, BYTES));
	must(cudaDeviceSynchronize());
	must(CU(cuMemExportToShareableHandle)(
		&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	return fd;
}

static cudaError_t import_vmm(int fd, unsigned access, CUdeviceptr *at)
{
	CUmemGenericAllocationHandle h;
	CUresult r = CU(cuMemImportFromShareableHandle)(
		&h, (void *)(uintptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	if (r == CUDA_SUCCESS)
		map(h, access, at);
	return (cudaError_t)r;
}

/* The other process: it makes memory, hands it over, and stays. */
void probe_serve_vmm(int sock)
{
	must(cudaFree(NULL));
	send_fd(sock, make_vmm());
	for (;;)
		pause();
}

void probe_serve_legacy(int sock)
{
	cudaIpcMemHandle_t h;
	void *p;

	must(cudaMalloc(&p, BYTES));
	must(cudaMemset(p, 0x5a, BYTES));
	must(cudaDeviceSynchronize());
	must(cudaIpcGetMemHandle(&h, p));
	if (write(sock, &h, sizeof(h)) != sizeof(h))
		exit(3);
	for (;;)
		pause();
}

static pid_t start_server(const char *what, int *sock)
{
	char fd[16];
	int pair[2];
	pid_t pid;

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(3);
	snprintf(fd, sizeof(fd), "%d", pair[1]);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		execl("/proc/self/exe", "probe", what, fd, (char *)NULL);
		_exit(3);
	}
	close(pair[1]);
	*sock = pair[0];
	return pid;
}

static void end_server(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void say_bytes(const void *at)
{
	unsigned char *got = malloc(BYTES);
	cudaError_t e = cudaMemcpy(got, at, BYTES, cudaMemcpyDeviceToHost);
	size_t good = 0;

	while (e == cudaSuccess && good < BYTES && got[good] == 0x5a)
		good++;
	printf("%s, %s", name_of(e),
	       good == BYTES ? "its bytes are there" : "other bytes");
	free(got);
}

void probe_write_to_read_only(void)
{
	CUdeviceptr at;
	int sock, fd;
	pid_t pid = start_server("--vmm", &sock);
	cudaError_t e;

	fd = receive_fd(sock);
	must(cudaFree(NULL));
	e = import_vmm(fd, CU_MEM_ACCESS_FLAGS_PROT_READ, &at);
	if (e == cudaSuccess)
		e = cudaMemset((void *)(uintptr_t)at, 1, BYTES);
	printf("the call says %s, ", name_of(e));
	printf("the device %s", name_of(cudaDeviceSynchronize()));
	end_server(pid);
}

void probe_vmm_after_a_kill(void)
{
	CUdeviceptr at;
	int sock, fd;
	pid_t pid = start_server("--vmm", &sock);

	fd = receive_fd(sock);
	must(cudaFree(NULL));
	must(import_vmm(fd, CU_MEM_ACCESS_FLAGS_PROT_READ, &at));
	close(fd);
	end_server(pid);
	usleep(500000);
	say_bytes((void *)(uintptr_t)at);
}

void probe_legacy_after_a_kill(void)
{
	cudaIpcMemHandle_t h;
	void *at;
	int sock;
	pid_t pid = start_server("--legacy", &sock);

	if (read(sock, &h, sizeof(h)) != sizeof(h))
		exit(3);
	must(cudaIpcOpenMemHandle(&at, h, cudaIpcMemLazyEnablePeerAccess));
	end_server(pid);
	usleep(500000);
	say_bytes(at);
}

void probe_own_memory_opened(void)
{
	cudaIpcMemHandle_t h;
	CUdeviceptr at;
	void *p, *again;

	must(cudaFree(NULL));
	printf("a descriptor: %s, ",
	       name_of(import_vmm(make_vmm(), CU_MEM_ACCESS_FLAGS_PROT_READ,
				  &at)));
	must(cudaMalloc(&p, BYTES));
	must(cudaIpcGetMemHandle(&h, p));
	printf("a handle: %s",
	       name_of(cudaIpcOpenMemHandle(&again, h,
					    cudaIpcMemLazyEnablePeerAccess)));
}
