/* SPDX-License-Identifier: MIT */
/*
 * device.c - devices: how many, which, what they can, and who may reach whose
 * memory.
 *
 * Nothing here makes a context.
 */
#include "sim.h"

#include <stdio.h>
#include <string.h>

cudaError_t cudaGetDeviceCount(int *count)
{
	cudaError_t err = sim_enter("cudaGetDeviceCount", SIM_ANYTIME);

	if (count)
		*count = err ? 0 : (int)sim.nvisible;
	if (!err && !count)
		err = cudaErrorInvalidValue;
	return sim_leave(err);
}

/* Known even where there is no driver: then it is 0. */
cudaError_t cudaDriverGetVersion(int *driverVersion)
{
	cudaError_t err = sim_enter("cudaDriverGetVersion", SIM_ANYTIME);

	if (err == cudaErrorInsufficientDriver || err == cudaErrorNoDevice)
		err = cudaSuccess;
	if (!err && !driverVersion)
		err = cudaErrorInvalidValue;
	if (!err)
		*driverVersion = sim.driver_version;
	return sim_leave(err);
}

CUresult cuDriverGetVersion(int *driverVersion)
{
	cudaError_t err = sim_enter("cuDriverGetVersion", SIM_ANYTIME);

	if (!err && !driverVersion)
		err = cudaErrorInvalidValue;
	if (!err)
		*driverVersion = sim.driver_version;
	return sim_leave_driver(err);
}

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
	if (!runtimeVersion)
		return cudaErrorInvalidValue;
	*runtimeVersion = CUDART_VERSION;
	return cudaSuccess;
}

static int attribute(unsigned device, int attr)
{
	switch (attr) {
	case cudaDevAttrMaxThreadsPerBlock:
		return 1024;
	case cudaDevAttrMultiProcessorCount:
		return 8;
	case cudaDevAttrCanMapHostMemory:
	case cudaDevAttrConcurrentKernels:
	case cudaDevAttrUnifiedAddressing:
	case cudaDevAttrCanUseHostPointerForRegisteredMem:
	case cudaDevAttrMemoryPoolsSupported:
	case cudaDevAttrIpcEventSupport:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
		return 1;
	case cudaDevAttrAsyncEngineCount:
		return 2;
	case cudaDevAttrPciBusId:
		return (int)device + 1;
	case cudaDevAttrComputeCapabilityMajor:
		return 9;
	case cudaDevAttrHostRegisterSupported:
		return !sim.no_register;
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
		return !sim.no_vmm;
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
		return !sim.no_vmm && !sim.no_fd;
	case cudaDevAttrHostRegisterReadOnlySupported:
		return sim.ro_register;
	default:
		return 0;
	}
}

static cudaError_t get_attribute(int *value, int attr, int ordinal)
{
	unsigned device;
	cudaError_t err = sim_ordinal(ordinal, &device);

	if (!err && !value)
		err = cudaErrorInvalidValue;
	if (!err)
		*value = attribute(device, attr);
	return err;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr,
				   int device)
{
	cudaError_t err =
		sim_enter_on("cudaDeviceGetAttribute", SIM_ANYTIME, device);

	return sim_leave(err ? err : get_attribute(value, (int)attr, device));
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	cudaError_t err =
		sim_enter_on("cuDeviceGetAttribute", SIM_ANYTIME, dev);

	return sim_leave_driver(err ? err
				    : get_attribute(pi, (int)attrib, dev));
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
	cudaError_t err =
		sim_enter_on("cudaDeviceGetPCIBusId", SIM_ANYTIME, device);
	unsigned d = 0;

	if (!err && (!pciBusId || len < 13))
		err = cudaErrorInvalidValue;
	if (!err)
		err = sim_ordinal(device, &d);
	if (!err)
		snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", d + 1);
	return sim_leave(err);
}

/* ---- the driver's ---- */

CUresult cuInit(unsigned int Flags)
{
	cudaError_t err = sim_enter("cuInit", SIM_ANYTIME);

	if (!err && Flags)
		err = cudaErrorInvalidValue;
	return sim_leave_driver(err);
}

CUresult cuDeviceGetCount(int *count)
{
	cudaError_t err = sim_enter("cuDeviceGetCount", SIM_ANYTIME);

	if (!err && !count)
		err = cudaErrorInvalidValue;
	if (!err)
		*count = (int)sim.nvisible;
	return sim_leave_driver(err);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	cudaError_t err = sim_enter_on("cuDeviceGet", SIM_ANYTIME, ordinal);
	unsigned d;

	if (!err)
		err = device ? sim_ordinal(ordinal, &d) : cudaErrorInvalidValue;
	if (!err)
		*device = ordinal;
	return sim_leave_driver(err);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	cudaError_t err = sim_enter_on("cuDeviceGetName", SIM_ANYTIME, dev);
	unsigned d;

	if (!err && (!name || len < 1))
		err = cudaErrorInvalidValue;
	if (!err)
		err = sim_ordinal(dev, &d);
	if (!err)
		snprintf(name, (size_t)len, "%s", sim.dev[d].name);
	return sim_leave_driver(err);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	cudaError_t err = sim_enter_on("cuDeviceGetUuid", SIM_ANYTIME, dev);
	unsigned d;

	if (!err)
		err = uuid ? sim_ordinal(dev, &d) : cudaErrorInvalidValue;
	if (!err)
		memcpy(uuid->bytes, sim.dev[d].uuid, 16);
	return sim_leave_driver(err);
}

/* ---- peers ---- */

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device,
				    int peerDevice)
{
	cudaError_t err =
		sim_enter_on("cudaDeviceCanAccessPeer", SIM_ANYTIME, device);
	unsigned a, b;

	if (!err && !canAccessPeer)
		err = cudaErrorInvalidValue;
	if (!err)
		err = sim_ordinal(device, &a);
	if (!err)
		err = sim_ordinal(peerDevice, &b);
	if (!err)
		*canAccessPeer = sim.p2p[a][b];
	return sim_leave(err);
}

static cudaError_t set_peer(int ordinal, bool on)
{
	struct sim_device *d = &sim.dev[sim_current()];
	unsigned peer;
	cudaError_t err = sim_ordinal(ordinal, &peer);

	if (err)
		return err;
	if (!sim.p2p[sim_current()][peer])
		return peer == sim_current() ? cudaErrorInvalidDevice
					     : cudaErrorPeerAccessUnsupported;
	if (on && !(d->reaches >> peer & 1) &&
	    (unsigned)__builtin_popcount(d->reaches) >= sim.peers_max)
		return cudaErrorTooManyPeers;
	if ((d->reaches >> peer & 1) == on)
		return on ? cudaErrorPeerAccessAlreadyEnabled
			  : cudaErrorPeerAccessNotEnabled;
	d->reaches ^= 1u << peer;
	return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
	cudaError_t err = sim_enter("cudaDeviceEnablePeerAccess",
				    SIM_CONTEXT | SIM_UNSAFE);

	if (!err && flags)
		err = cudaErrorInvalidValue;
	return sim_leave(err ? err : set_peer(peerDevice, true));
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
	cudaError_t err = sim_enter("cudaDeviceDisablePeerAccess",
				    SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave(err ? err : set_peer(peerDevice, false));
}

/* ---- counts ---- */

static void count_regions(struct simcuda_live *l)
{
	for (unsigned i = 0; i < sim.nregion; i++) {
		const struct sim_region *r = sim.region[i];

		if (r->kind == SIM_MALLOC) {
			l->allocations += r->npart;
		} else if (r->kind == SIM_VMM) {
			l->reservations++;
			l->mappings += r->nmap;
		}
		for (unsigned k = 0; r->kind == SIM_IPC && k < r->npart; k++)
			l->imports += r->part[k].count;
	}
}

void simcuda_live(struct simcuda_live *out)
{
	struct simcuda_live l = { 0 };

	if (!sim_enter("simcuda_live", SIM_ANYTIME)) {
		count_regions(&l);
		for (unsigned i = 0; i < sim.ndev; i++)
			l.bytes += sim.dev[i].used;
		for (unsigned i = 0; i < sim.nvisible; i++)
			if (sim.dev[sim.visible[i]].context) {
				l.contexts |= 1u << i;
				l.bytes -= sim.context_bytes;
			}
		l.through_host = sim.through_host;
		l.handles = sim.nhandle;
		l.pinned = sim.nhost;
		for (struct sim_stream *s = sim.stream; s; s = s->next)
			l.streams += !s->legacy && !s->thread && !s->destroyed;
		for (struct sim_event *e = sim.event; e; e = e->next)
			l.events++;
	}
	sim_leave(cudaSuccess);
	*out = l;
}
