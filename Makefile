# SPDX-License-Identifier: MIT
# The one Makefile: no recursion but where packages are installed in between,
# no configure.  `make help` lists what it makes, `make config` what it found.
# Everything lands in $(B).  CFLAGS, CPPFLAGS and LDFLAGS are yours; what the
# sources need comes before them.

hash   := \#
comma  := ,
lparen := (
define newline


endef
ver     = $(shell sed -n \
	's/^$(hash)define TSOCK_VERSION_$(1) \([0-9]*\).*/\1/p' \
	include/tsock/common.h)
API     := $(wildcard include/tsock/*.h)
has     = $(shell pkg-config --exists $(1) 2>/dev/null && echo 1 || echo 0)
MAJOR   := $(call ver,MAJOR)
MINOR   := $(call ver,MINOR)
VERSION := $(MAJOR).$(MINOR).$(call ver,PATCH)
# ABI policy: before 1.0 each minor version may break the ABI, and has a soname
# of its own; from 1.0 on the major version alone names it.
SOVERSION := $(if $(filter 0,$(MAJOR)),0.$(MINOR),$(MAJOR))

# Plain make builds the optional parts that the machine has; URING=0 leaves
# one out, URING=1 insists on it, and WEBP, TIFF and AVIF likewise.  CUDA=sim builds the
# GPU part on a simulated CUDA runtime, for tests: it needs neither a toolkit nor
# a GPU.
PACKAGES := libzmq libjpeg libpng zlib libxxhash
# By trying: 0.7 doesn't compile as C11, and 2.1 says of itself that it is 2.0.
HAVE_URING := $(shell pkg-config --exists liburing 2>/dev/null && \
	printf '%s\n' '$(hash)include <liburing.h>' \
		'void *f = (void *)io_uring_free_probe;' | \
	$(CC) -std=c11 -D_GNU_SOURCE $$(pkg-config --cflags liburing) \
		$(CPPFLAGS) $(CFLAGS) -fsyntax-only -x c - 2>/dev/null && \
	echo 1 || echo 0)
URING   ?= $(HAVE_URING)
HAVE_WEBP := $(call has,libwebp libwebpdemux)
WEBP    ?= $(HAVE_WEBP)
HAVE_TIFF := $(call has,libtiff-4)
TIFF    ?= $(HAVE_TIFF)
# An older one has other names for what is used.
HAVE_AVIF := $(shell pkg-config --exists 'libavif >= 0.11' 2>/dev/null && \
	echo 1 || echo 0)
AVIF    ?= $(HAVE_AVIF)
# What pkg-config calls the image libraries that are used.
IMAGE_LIBS = $(if $(filter 1,$(WEBP)),libwebp libwebpdemux) \
	$(if $(filter 1,$(TIFF)),libtiff-4) $(if $(filter 1,$(AVIF)),libavif)
# Audio files but WAV, and other sample rates; likewise 0 or 1.  MP3 came with
# libsndfile 1.1.
HAVE_SNDFILE := $(shell pkg-config --exists 'sndfile >= 1.1' 2>/dev/null && \
	echo 1 || echo 0)
SNDFILE ?= $(HAVE_SNDFILE)
HAVE_SOXR := $(call has,soxr)
SOXR    ?= $(HAVE_SOXR)
AUDIO_LIBS = $(if $(filter 1,$(SNDFILE)),sndfile) $(if $(filter 1,$(SOXR)),soxr)
# Vector code: a folder's name for each kind of processor, and what a compiler
# for it defines.  x86 has AVX2 and AVX-512 where the processor turns out to have
# them; arm has NEON, which all have.
SIMD_KINDS := x86=__x86_64__ arm=__AARCH64EL__
SIMD_FOLDERS := $(foreach k,$(SIMD_KINDS),$(firstword $(subst =, ,$(k))))
SIMD_OF := $(filter $(SIMD_FOLDERS),$(shell printf '%s\n' $(foreach k, \
	$(SIMD_KINDS),'$(hash)ifdef $(lastword $(subst =, ,$(k)))' \
	$(firstword $(subst =, ,$(k))) '$(hash)endif') | \
	$(CC) $(CPPFLAGS) $(CFLAGS) -E -P -x c - 2>/dev/null))
HAVE_SIMD := $(if $(SIMD_OF),1,0)
SIMD    ?= $(HAVE_SIMD)

# As NVIDIA installs it, else as Debian and Ubuntu package it.
CUDA_HOME ?= $(patsubst %/include/cuda.h,%,$(firstword $(wildcard \
	/usr/local/cuda/include/cuda.h /usr/include/cuda.h) \
	/usr/local/cuda/include/cuda.h))
NVCC    ?= $(CUDA_HOME)/bin/nvcc
CUDA_LIB := $(patsubst %/libcudart_static.a,%,$(firstword $(wildcard \
	$(CUDA_HOME)/lib64/libcudart_static.a \
	$(CUDA_HOME)/lib/libcudart_static.a \
	$(CUDA_HOME)/lib/x86_64-linux-gnu/libcudart_static.a \
	$(CUDA_HOME)/targets/*/lib/libcudart_static.a)))
ifeq ($(filter 0 sim,$(CUDA)),)
CUDA_API := $(or $(shell sed -n \
	's/^$(hash)define CUDA_VERSION \([0-9]*\).*/\1/p' \
	$(CUDA_HOME)/include/cuda.h 2>/dev/null),0)
# nvcc compiles by way of a g++, not of any version: let it say so itself.
CUDA_LACKS := $(or \
	$(if $(filter 0,$(CUDA_API)),include/cuda.h), \
	$(shell test $(CUDA_API) -ge 11080 || \
		echo 'include/cuda.h of CUDA 11.8 or newer'), \
	$(if $(CUDA_LIB),,lib64/libcudart_static.a), \
	$(shell said=$$($(NVCC) $(NVCCFLAGS) -E -x cu -Iinclude -Ilib \
		lib/convert/kernels.cu 2>&1 >/dev/null) || \
		echo "a working nvcc ($$(echo "$$said" | tr -d "'" | \
		grep -E -i -m 1 'error|fatal|not found|denied'))"))
endif
CUDA    ?= $(if $(CUDA_LACKS),0,1)

SAN     ?=
WERROR  ?=
# Objects built with different flags never meet.
B       ?= build$(if $(filter sim,$(CUDA)),-sim)$(if \
	$(SAN),-$(subst $(comma),-,$(SAN)))
# Where objects lie on which CUDA, SIMD, URING and the like have no influence.  Builds may
# name one folder, which takes one make at a time: each such file is compiled
# once.
O       ?= $(B)/obj

prefix      ?= /usr/local
bindir      ?= $(prefix)/bin
libdir      ?= $(prefix)/lib
includedir  ?= $(prefix)/include
mandir      ?= $(prefix)/share/man
docdir      ?= $(prefix)/share/doc/libtsock
# For services that users start for themselves (systemd).
unitdir     ?= $(prefix)/lib/systemd/user
INSTALL     ?= install
# Where the system's Python looks for packages under this prefix.
PYTHON3     ?= $(firstword $(wildcard /usr/bin/python3) python3)
PYTHONDIR   ?= $(shell $(PYTHON3) -c 'import site, sys; \
	root = sys.argv[1].rstrip("/") + "/"; \
	found = [p for p in site.getsitepackages() if p.startswith(root) and \
		not (root == "/usr/" and p.startswith("/usr/local/"))]; \
	print(found[0] if found else "%slib/python%d.%d/site-packages" \
		% ((root,) + sys.version_info[:2]))' '$(prefix)' 2>/dev/null)

CLANG_FORMAT ?= $(or $(shell command -v clang-format-14),clang-format)

# --------------------------------------------------------------------------
# What is asked for must be there

NOTHING_BUILT := check check-arm check-frameworks check-nodes check-ray check-setup \
	check-slurm check-wheel \
	clean config coverage demo format fuzz generate help lint model soak uninstall
ifneq ($(filter-out $(NOTHING_BUILT),$(or $(MAKECMDGOALS),all)),)
MISSING := $(foreach p,$(PACKAGES),$(if $(filter 0,$(call has,$(p))),$(p)))
MISSING += $(shell echo '$(hash)include <Random123/philox.h>' | \
	$(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 || echo Random123)
ifneq ($(strip $(MISSING)),)
$(error not found: $(strip $(MISSING)); run test/setup.sh build)
endif
OLD_URING := $(and $(filter 0,$(HAVE_URING)),$(shell \
	pkg-config --modversion liburing 2>/dev/null))
ifeq ($(URING)$(HAVE_URING),10)
$(error URING=1 but $(if $(OLD_URING),liburing $(OLD_URING) is too \
	old,liburing was not found; run test/setup.sh build))
endif
ifeq ($(WEBP)$(HAVE_WEBP),10)
$(error WEBP=1 but libwebp was not found; run test/setup.sh build)
endif
ifeq ($(TIFF)$(HAVE_TIFF),10)
$(error TIFF=1 but libtiff was not found; run test/setup.sh build)
endif
ifeq ($(AVIF)$(HAVE_AVIF),10)
$(error AVIF=1 but libavif 0.11 or newer was not found; run \
	test/setup.sh build)
endif
ifeq ($(SNDFILE)$(HAVE_SNDFILE),10)
$(error SNDFILE=1 but libsndfile 1.1 or newer was not found; run \
	test/setup.sh build)
endif
ifeq ($(SOXR)$(HAVE_SOXR),10)
$(error SOXR=1 but libsoxr was not found; run test/setup.sh build)
endif
ifneq ($(and $(filter file,$(origin URING)),$(OLD_URING)),)
$(info no io_uring: liburing $(OLD_URING) is too old; files are read by pread)
endif
ifneq ($(and $(filter 1,$(CUDA)),$(CUDA_LACKS)),)
$(error CUDA=1 but $(CUDA_HOME) lacks $(CUDA_LACKS); set CUDA_HOME to \
	where the CUDA toolkit is and NVCCFLAGS to what its nvcc needs \
	(-ccbin g++-11$(comma) say)$(comma) or leave the GPU out with CUDA=0)
endif
endif
ifneq ($(filter-out 0 1,$(URING)),)
$(error URING is 0 or 1)
endif
ifneq ($(filter-out 0 1,$(WEBP) $(TIFF) $(AVIF)),)
$(error WEBP, TIFF and AVIF are 0 or 1)
endif
ifneq ($(filter-out 0 1,$(SNDFILE) $(SOXR)),)
$(error SNDFILE and SOXR are 0 or 1)
endif
ifeq ($(filter 00 01 11,$(SIMD)$(HAVE_SIMD)),)
$(error SIMD is 0 or, on x86-64 and aarch64, 1)
endif
ifneq ($(filter-out 0 1 sim,$(CUDA)),)
$(error CUDA is 0, 1 or sim)
endif

# --------------------------------------------------------------------------
# Flags

# -ffp-contract=off: a fused multiply-add rounds once where the written
# arithmetic rounds twice; pixels have to be the same on every CPU.
# -ffile-prefix-map: the same bytes from whatever folder.  HARDEN= leaves the
# hardening out; sanitizers and unoptimised builds have no use for it.
HARDEN  ?= $(if $(SAN)$(filter -O0,$(CFLAGS)),,-fstack-protector-strong \
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
# Less is optimised where sanitizers look: it compiles in half of the time, and
# what they report is nearer to what was written.
OPT     := $(if $(SAN),-O1 -g1,-O2 -g)
OURS    := -std=c11 -D_GNU_SOURCE $(OPT) -fPIC -pthread -fvisibility=hidden \
	-ffp-contract=off -Wall -Wextra -Wshadow -Wdate-time \
	-ffile-prefix-map=$(CURDIR)=. $(HARDEN)
OURSXX  := -std=c++17 $(OPT) -fPIC -pthread -Wall -Wextra $(HARDEN)
# -Wno-tsan: gcc warns that ThreadSanitizer, its own and clang's alike, knows no
# fences.  None of ours hands over data: it stands between two atomics, or
# behind non-temporal stores, and an acquire and a release do that.
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
	$(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined) \
	$(if $(findstring thread,$(SAN)),$(shell $(CC) -Werror -Wno-tsan \
		-fsyntax-only -x c /dev/null 2>/dev/null && echo -Wno-tsan)))
ERRFLAGS := $(if $(filter 1,$(WERROR)),-Werror)
INCLUDES := -Iinclude -Ilib -Iproducer -I.
CUDA_INCLUDES := $(if $(filter 1,$(CUDA)),$(patsubst %,-isystem %/include, \
	$(filter-out /usr,$(CUDA_HOME)))) \
	$(if $(filter sim,$(CUDA)),-Itest/simcuda/include -Itest/simcuda)
PKGFLAGS := $(shell pkg-config --cflags $(PACKAGES) \
	$(IMAGE_LIBS) $(AUDIO_LIBS) 2>/dev/null)

ALL      = $(OURS) $(SANFLAGS) $(ERRFLAGS) $(CPPFLAGS) $(CFLAGS)
ALLXX    = $(OURSXX) $(SANFLAGS) $(ERRFLAGS) $(CPPFLAGS) $(CXXFLAGS)
LINK     = $(CC) $(OURS) $(SANFLAGS) $(CFLAGS) -Wl,--as-needed \
	$(if $(HARDEN),-Wl$(comma)-z$(comma)relro$(comma)-z$(comma)now)
pkglibs  = $(or $(shell pkg-config --libs $(1) 2>/dev/null),$(2))
LIBS     = $(call pkglibs,libzmq,-lzmq) $(if $(filter 1,$(CUDA)), \
	-L$(CUDA_LIB) -lcudart_static -lrt) $(if $(filter sim,$(CUDA)), \
	-L$(B)/lib -lcudart_sim) $(RPATH) -lpthread -ldl
# To the simulated runtime, which is dlopen()ed as the driver, too.  A sanitizer
# calls dlopen() in the program's place, and RUNPATH is its caller's alone.
OLDTAGS  = -Wl,--disable-new-dtags
RPATH    = $(if $(filter sim,$(CUDA)),$(OLDTAGS) \
	-Wl$(comma)-rpath$(comma)$(abspath $(B)/lib))
PRODLIBS = $(call pkglibs,libjpeg,-ljpeg) $(call pkglibs,libpng,-lpng) \
	$(call pkglibs,zlib,-lz) \
	$(call pkglibs,libxxhash,-lxxhash) \
	$(foreach l,$(IMAGE_LIBS) $(AUDIO_LIBS),$(call pkglibs,$(l))) \
	$(if $(filter 1,$(URING)),$(call pkglibs,liburing,-luring)) \
	$(LIBS) -lm

# -fno-threadsafe-statics: nothing of ours needs libstdc++ because of them.
# Code for a GPU runs on all later ones of its major version: the first of each,
# what many have, and PTX for what comes after them.  --fmad=false: as
# -ffp-contract=off above.
GPUS_KNOWN = $(shell $(NVCC) --list-gpu-code 2>/dev/null | \
	sed -n 's/^sm_\([0-9]*\)$$/\1/p' | sort -n)
GPU_CODE = $(shell printf '%s\n' $(GPUS_KNOWN) | awk '{ m = int($$1 / 10) } \
	!seen[m]++ || $$1 == 75 || $$1 == 86 || $$1 == 89')
GPU_LAST = $(lastword $(GPUS_KNOWN))
ifeq ($(CUDA),1)
GPUS_KNOWN := $(GPUS_KNOWN)
GPU_CODE := $(GPU_CODE)
GPU_LAST := $(GPU_LAST)
endif
NVCCFLAGS ?=
OURSNV   = -std=c++17 -O3 --fmad=false -prec-div=true -prec-sqrt=true \
	-ftz=false -Wno-deprecated-gpu-targets \
	$(foreach a,$(GPU_CODE),-gencode arch=compute_$(a)$(comma)code=sm_$(a)) \
	-gencode arch=compute_$(GPU_LAST)$(comma)code=compute_$(GPU_LAST) \
	-Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-ffp-contract=off \
	-Xcompiler -fno-threadsafe-statics,-ffile-prefix-map=$(CURDIR)=.

Q = $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(2))

# --------------------------------------------------------------------------
# Sources: every file of a layer, less the alternatives not chosen

# What needs a GPU, in the library, its tests and benchmarks.  In a build without
# CUDA the *_none.c files stand for it.
NEEDS_CUDA := lib/mem/cuda/%.c $(addprefix lib/stage/,gpu.c broadcast.c \
	download.c measure.c verify.c nccl.c caller.c) \
	lib/serve/view_broadcast.c \
	lib/serve/view_neighbour.c lib/convert/gpu.c \
	$(addprefix lib/consumer/gpu/,backend.c batch.c completion.c \
	import.c staging.c stream_events.c) \
	test/unit/test_gpu%.c bench/gpu%.c $(addprefix test/lib/,gpu_reader.c \
	gpu_child.c gpu_refusal.c for_each_transport.c)
# The folder with this processor's vector code, below each room that has some;
# those of other processors are left out.
SIMD_CHOSEN := $(if $(filter 1,$(SIMD)),$(SIMD_OF))
SIMD_OUT := $(foreach f,$(filter-out $(SIMD_CHOSEN),$(SIMD_FOLDERS)), \
	$(wildcard lib/*/$(f)/*.c producer/*/$(f)/*.c))
LIB      := $(wildcard lib/*/*.c lib/*/*/*.c)
LIB      := $(filter-out $(SIMD_OUT) $(if $(filter 0,$(CUDA)),$(NEEDS_CUDA), \
	$(filter %_none.c,$(LIB))),$(LIB))
LIB      += $(if $(filter sim,$(CUDA)),test/simcuda/kernels_sim.c)
KERNELS  := $(if $(filter 1,$(CUDA)),lib/convert/kernels.cu)
# What a build without libwebp leaves out, or without libtiff or libavif.
NEEDS_WEBP := producer/webp/webp.c test/unit/test_webp.c test/lib/webp_gen.c
NEEDS_TIFF := producer/tiff/tiff.c producer/tiff/memory.c \
	test/unit/test_tiff.c
NEEDS_AVIF := producer/avif/avif.c test/unit/test_avif.c test/lib/avif_gen.c
NEEDS_IMAGE_LIBS := $(if $(filter 0,$(WEBP)),$(NEEDS_WEBP)) \
	$(if $(filter 0,$(TIFF)),$(NEEDS_TIFF)) \
	$(if $(filter 0,$(AVIF)),$(NEEDS_AVIF))
PRODUCER := $(filter-out $(SIMD_OUT) $(if $(filter 1,$(URING)),%/reader_none.c, \
	%/reader_uring.c) $(NEEDS_IMAGE_LIBS) $(if $(filter 1,$(WEBP)),%/webp_none.c) \
	$(if $(filter 1,$(TIFF)),%/tiff_none.c) \
	$(if $(filter 1,$(AVIF)),%/avif_none.c) \
	$(if $(filter 1,$(SNDFILE)),%/sndfile_none.c,%/sndfile.c) \
	$(if $(filter 1,$(SOXR)),%/soxr_none.c,%/soxr.c), \
	$(wildcard producer/*.c producer/*/*.c producer/*/*/*.c))

# What is installed, and the file of each that has main().
PROGRAMS := tsock-producer tsock-pack
MAINS    := producer/main.c producer/pack.c

# A program is a file with a main(); the others in its folder are linked to
# every program there.
with_main = $(if $(1),$(shell grep -l '^int main$(lparen)' $(1)))
BENCH    := $(filter-out $(if $(filter 0,$(CUDA)),$(NEEDS_CUDA)), \
	$(wildcard bench/*.c))
BENCHES  := $(call with_main,$(BENCH))
# What test programs share.
TESTLIB  := $(filter-out $(if $(filter 0,$(CUDA)),$(NEEDS_CUDA)) \
	$(NEEDS_IMAGE_LIBS), \
	$(wildcard test/lib/*.c))
UNIT     := $(filter-out $(if $(filter 0,$(CUDA)),$(NEEDS_CUDA)) \
	$(NEEDS_IMAGE_LIBS), \
	$(wildcard test/unit/*.c))
UNITS    := $(call with_main,$(UNIT))
LEFT_OUT := $(filter-out $(UNIT),$(wildcard test/unit/test_*.c))
SYSTEM   := $(wildcard test/system/*.c)
SYSTEMS  := $(call with_main,$(SYSTEM))
# Where calls fail on demand; their names are those of the functions __wrap_X.
FAULT    := $(filter-out $(if $(filter 1,$(URING)),%_none.c,%_uring.c), \
	$(wildcard test/faults/*.c))
FAULTS   := $(call with_main,$(FAULT))
WRAPPED  := $(shell sed -n 's/^[a-z].*__wrap_\([a-z0-9_]*\)$(lparen).*/\1/p; \
	s/^WRAP$(lparen)[^,]*, \([a-z0-9_]*\),.*/\1/p; \
	s/^	X$(lparen)\(tsi_[a-z_]*\).*/\1/p' $(filter test/faults/inject% \
	test/faults/points.c,$(FAULT)) | sort -u)
# Tests of the GPU part, and what it stands on in a simulated build.
GPU      := $(if $(filter-out 0,$(CUDA)),$(wildcard test/gpu/*.c))
GPUS     := $(call with_main,$(GPU))
SIMCUDA  := $(wildcard test/simcuda/*.c)
CONFORM  := $(call with_main,$(SIMCUDA))
SIM      := $(if $(filter sim,$(CUDA)),$(filter-out \
	$(CONFORM) %/libnccl_sim.c %/kernels_sim.c %/check_headers.c, \
	$(SIMCUDA)))
SIM_SO   := $(if $(filter sim,$(CUDA)),$(B)/lib/libcudart_sim.so)
NCCL_SIM := $(if $(filter sim,$(CUDA)),$(wildcard test/simcuda/libnccl_sim.c))
HELPER   := $(wildcard test/helpers/*.c test/parity/*.c)
HELPERS  := $(call with_main,$(HELPER))
PRELOAD  := $(wildcard test/preload/*.c)
FUZZERS  := $(wildcard test/fuzz/*.c)
REPLAY   := test/fuzz/replay/replay.c
CXX_THERE := $(if $(shell command -v $(firstword $(CXX))),1)
EXAMPLES := $(wildcard examples/*.c) \
	$(if $(CXX_THERE),$(wildcard examples/*.cpp)) \
	$(if $(filter 1,$(CUDA)),$(wildcard examples/*.cu))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
# The files that may see CUDA's headers.
sees_cuda = $(NEEDS_CUDA) test/gpu/% test/simcuda/%
# Those that fill their kernels from the processor's folder (base/simd.h).
SEES_SIMD := $(shell grep -lF 'TSI_SIMD_INIT$(lparen)' $(LIB) $(PRODUCER))
SIMD_FLAG := $(if $(SIMD_CHOSEN),-DTSI_SIMD=$(SIMD_CHOSEN))
# -falign-loops: else what is linked before a file decides whether a loop of vector
# code begins on a cache line: 8 % of the time that packed blocks take.
includes = $(INCLUDES) $(if $(filter $(sees_cuda),$(1)),$(CUDA_INCLUDES)) \
	$(if $(filter $(SEES_SIMD),$(1)),$(SIMD_FLAG)) \
	$(if $(findstring /x86/,$(1)),-falign-loops=64)
lone = $(call obj,$(filter-out $(call with_main,$(1)),$(1)))

C_FILES := $(LIB) $(SIM) $(PRODUCER) $(BENCH) $(TESTLIB) $(UNIT) $(SYSTEM) \
	$(FAULT) $(GPU) $(CONFORM) $(HELPER) $(FUZZERS) $(REPLAY)
# What has the same object with every CUDA, SIMD and URING.
SHARED := $(filter-out $(sees_cuda) $(SEES_SIMD),$(C_FILES))

SO    := $(B)/lib/libtsock.so
AR_LIB := $(B)/lib/libtsock.a
AR_PRODUCER := $(B)/obj/producer.a
AR_TEST := $(B)/obj/test.a
BENCH_BIN  := $(BENCHES:bench/%.c=$(B)/bench/%)
UNIT_BIN   := $(UNITS:%.c=$(B)/%)
SYSTEM_BIN := $(SYSTEMS:%.c=$(B)/%)
FAULT_BIN  := $(FAULTS:%.c=$(B)/%)
# conformance_*sim.c look inside of the simulation; the others try real ones.
CONFORM_BIN := $(patsubst %.c,$(B)/%,$(if $(filter-out 0,$(CUDA)), \
	$(filter-out $(if $(filter 1,$(CUDA)),%_sim.c),$(CONFORM))))
KERNEL_BIN := $(if $(filter sim,$(CUDA)),$(if $(CXX_THERE), \
	$(B)/test/gpu/test_kernels))
GPU_BIN    := $(GPUS:%.c=$(B)/%) $(CONFORM_BIN) $(KERNEL_BIN) \
	$(NCCL_SIM:%.c=$(B)/%.so)
# Compiled, no more: CUDA's headers are as the tests take them to be.
CUDA_HEADERS := $(if $(filter-out 0,$(CUDA)),$(call \
	obj,test/simcuda/check_headers.c))
LIB_OBJ    := $(call obj,$(LIB)) $(KERNELS:%.cu=$(B)/obj/%.o)
HELPER_BIN := $(patsubst %.c,$(B)/test/%,$(notdir $(HELPERS))) \
	$(PRELOAD:%.c=$(B)/%.so)
EXAMPLE_BIN := $(patsubst %,$(B)/%,$(basename $(EXAMPLES)))
# Another engine than libFuzzer, and what links it: test/fuzz/oss-fuzz.sh.
FUZZ_ENGINE ?= -fsanitize=fuzzer
FUZZ_LINK   ?= $(LINK)
FUZZ_BIN   := $(FUZZERS:%.c=$(B)/%)
REPLAY_BIN := $(patsubst test/fuzz/fuzz_%.c,$(B)/test/fuzz/replay_%,$(FUZZERS))
# What clang's static analyser says of each source.
ANALYZED   := $(if $(shell command -v clang),$(patsubst \
	%.c,$(B)/analyzed/%.log,$(filter lib/% producer/%,$(LIB) $(PRODUCER))))

# --------------------------------------------------------------------------
# Targets

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all lib producer examples benches tests unit-tests gpu-tests \
	system-tests fault-tests replays test-objects fuzzers \
	left-out model coverage demo docs check check-arm check-frameworks check-nodes \
	check-ray check-slurm check-wheel lint analyze bench bench-compare bench-jobs \
	bench-data bench-recipes soak fuzz mutants install \
	uninstall clean help config format FORCE

all: lib producer examples benches	## the library, the producer, examples
lib: $(SO) $(AR_LIB) $(B)/obj/private
producer: $(PROGRAMS:%=$(B)/bin/%)
examples: $(EXAMPLE_BIN)
benches: $(BENCH_BIN)
unit-tests: $(UNIT_BIN)
gpu-tests: $(GPU_BIN) $(CUDA_HEADERS)
system-tests: $(SYSTEM_BIN) $(HELPER_BIN)
fault-tests: $(FAULT_BIN)
replays: $(REPLAY_BIN)
tests: unit-tests gpu-tests system-tests fault-tests replays	## test programs (not run)
# For a compiler that is asked for its warnings alone.
test-objects: $(call obj,$(TESTLIB) $(UNIT) $(SYSTEM) $(FAULT) $(GPU) $(CONFORM) \
	$(SIM) $(HELPER) $(FUZZERS) $(REPLAY)) $(CUDA_HEADERS) $(KERNEL_BIN) \
	$(NCCL_SIM:%.c=$(B)/%.so) $(PRELOAD:%.c=$(B)/%.so)
fuzzers: $(FUZZ_BIN)
left-out:
	@printf '%s\n' $(LEFT_OUT)
analyze: $(ANALYZED)

# Packages are probed for when make starts, so what runs after an installation
# is a new make.
demo:			## install what is missing, build, show two jobs that share
	@+MAKE='$(MAKE)' B=$(B) examples/demo.sh

check:			## install what is missing, build, run every test
	@test/setup.sh check
	@+test/run.sh

check-frameworks:	## Python tests inside Lightning, Hugging Face, timm, JAX
	@test/setup.sh check
	@+test/run.sh frameworks

check-slurm:		## the scripts of examples/slurm, by a cluster on this machine
	@test/setup.sh check
	@test/setup.sh slurm
	@+test/run.sh slurm

check-nodes:		## ranks on several nodes: torchrun's agents on this machine
	@test/setup.sh check
	@+test/run.sh nodes

check-ray:		## tsock.ray, on two nodes of Ray on this machine
	@test/setup.sh check
	@+test/run.sh ray

check-arm:		## cross-compiled, the tests that an emulator can run
	@test/setup.sh check
	@+test/run.sh aarch64

check-wheel:		## the wheel by pip, and in a root that has only Python
	@test/setup.sh check
	@+test/run.sh wheel-whole

docs: lib		## docs/ as a site, in build/docs; every link checked
	@B=$(B) test/site.sh

lint:			## shellcheck, codespell and clang's static analyser
	@test/setup.sh check
	@+ANALYZER_NODES=$(ANALYZER_NODES) test/run.sh lint

bench: bench-all	## every benchmark; JSON=FILE for machines

bench-%: all		## one benchmark of bench/run.sh
	@B=$(B) JSON=$(JSON) bench/run.sh $*

# The other loaders come into a venv of their own, from PyPI and Debian.
define beside_others
@bench/compare/setup.sh
@B=$(B) JSON=$(JSON) bench/run.sh $(@:bench-%=%) $(PEERS)
endef

bench-compare: all	## beside other loaders, installed first; PEERS=REGEX
	$(beside_others)

bench-jobs: all		## k jobs that share, or have a loader each
	$(beside_others)

bench-data: all		## arrays, tokens, records, Arrow, audio: per core, beside others
	@B=$(B) JSON=$(JSON) bench/run.sh data

bench-recipes: all	## what samples by recipes cost, beside other packages
	@B=$(B) JSON=$(JSON) bench/run.sh recipes

model:			## every state of test/model's models, and negative controls
	@test/setup.sh model
	@test/model/run.sh

coverage:		## lines and branches of lib/ that the tests run
	@test/setup.sh check
	@test/coverage.sh $(FILES)

mutants:		## plant faults; the tests must find every one
	@test/setup.sh check
	@+test/mutants.sh

soak:			## system tests again and again, SECONDS=600
	@test/setup.sh check
	@+SOAK_SECONDS=$(or $(SECONDS),600) test/run.sh soak

fuzz:			## fuzz parsers with libFuzzer, SECONDS=60 each
	@test/setup.sh fuzz
	@+FUZZ_SECONDS=$(or $(SECONDS),60) test/run.sh fuzz

# --------------------------------------------------------------------------
# Rules

# Written anew only when the text changes, so that what depends on it is made
# anew only then.
note = mkdir -p $(@D) && echo '$(subst ','\'',$(strip $(1)))' | \
	cmp -s - $@ || echo '$(subst ','\'',$(strip $(1)))' >$@

$(sort $(B)/obj/flags $(O)/flags): FORCE
	@$(call note,$(CC) $(OURS) $(SANFLAGS) $(CPPFLAGS) $(CFLAGS))

$(B)/obj/simd: FORCE
	@$(call note,$(SIMD_FLAG))

$(call obj,$(SEES_SIMD)): $(B)/obj/simd

# By the sources' names: a folder may be named in more than one way.
$(B)/obj/files: FORCE
	@$(call note,$(LIB) $(KERNELS) $(PRODUCER) $(TESTLIB) $(LDFLAGS))

# What a program with the static library is linked to besides; for install.
$(B)/obj/private: FORCE
	@$(call note,$(if $(filter 1,$(CUDA)),-lcudart_static -lrt))

$(B)/obj/nvflags: FORCE
	@$(call note,$(NVCC) $(OURSNV) $(NVCCFLAGS))

define compile
@mkdir -p $(@D)
$(call say,CC,$<)
$(Q)$(CC) $(call includes,$<) $(PKGFLAGS) $(ALL) -MMD -MP -c -o $@ $<
endef

$(B)/obj/%.o: %.c $(B)/obj/flags
	$(compile)

ifneq ($(O),$(B)/obj)
$(call obj,$(SHARED)): $(B)/obj/%.o: $(O)/%.o
	@mkdir -p $(@D) && ln -f $< $@

$(O)/%.o: %.c $(O)/flags
	$(compile)
endif

# The states that the analyser looks at in a function before it gives up.
ANALYZER_NODES ?= 225000

$(B)/analyzed/flags: FORCE
	@$(call note,$(ANALYZER_NODES))

# Anew when the object is new: that knows which headers it was made of.
$(B)/analyzed/%.log: %.c $(B)/obj/%.o test/analyzer.h $(B)/analyzed/flags
	@mkdir -p $(@D)
	$(call say,ANALYZE,$<)
	$(Q)clang --analyze -Xanalyzer -analyzer-output=text \
		-Xanalyzer -analyzer-config \
		-Xanalyzer max-nodes=$(ANALYZER_NODES) \
		$(call includes,$<) \
		$(PKGFLAGS) $(OURS) $(CPPFLAGS) $(CFLAGS) \
		$(if $(filter %/err.c,$<),,-include test/analyzer.h) \
		-o /dev/null $< >$@ 2>&1

# One simulated runtime in a process, as there is one driver.
$(call obj,$(SIM)): private OURS += -fvisibility=default

$(SIM_SO): $(call obj,$(SIM)) $(B)/obj/files
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(OURS) $(SANFLAGS) $(CFLAGS) -shared -Wl,-soname,$(@F) \
		-o $@ $(filter %.o,$^) $(LDFLAGS) -lpthread -ldl
	$(Q)ln -sf $(@F) $(@D)/libcuda.so.1

$(B)/obj/%.o: %.cu lib/convert/kernels.h $(API) $(B)/obj/nvflags
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(OURSNV) -Iinclude -Ilib $(NVCCFLAGS) -c -o $@ $<

$(SO).$(VERSION): $(LIB_OBJ) lib/tsock.map $(B)/obj/files | $(SIM_SO)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(notdir $(SO).$(SOVERSION)) \
		-Wl,-Bsymbolic \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-Wl,--version-script=lib/tsock.map \
		-o $@ $(filter %.o,$^) $(LDFLAGS) $(LIBS)

$(SO).$(SOVERSION): $(SO).$(VERSION)
	$(Q)ln -sf $(<F) $@

$(SO): $(SO).$(SOVERSION)
	$(Q)ln -sf $(<F) $@

$(AR_LIB): $(LIB_OBJ) $(B)/obj/files | $(SIM_SO)
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

# What tests and benchmarks take from the producer.
$(AR_PRODUCER): $(call obj,$(filter-out $(MAINS),$(PRODUCER))) \
		$(B)/obj/files
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

$(AR_TEST): $(call obj,$(TESTLIB)) $(B)/obj/files
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

# The library is inside, so that the producer runs from anywhere.
$(B)/bin/tsock-producer: $(call obj,producer/main.c)
$(B)/bin/tsock-pack: $(call obj,producer/pack.c)
$(PROGRAMS:%=$(B)/bin/%): $(AR_PRODUCER) $(AR_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -pie -o $@ $(filter %.o,$^) $(AR_PRODUCER) $(AR_LIB) \
		$(LDFLAGS) $(PRODLIBS)

define inside
@mkdir -p $(@D)
$(call say,LD,$@)
$(Q)$(LINK) -o $@ $^ $(LDFLAGS) $(PRODLIBS)
endef

$(B)/bench/%: $(B)/obj/bench/%.o $(call lone,$(BENCH)) $(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(UNIT_BIN) $(SYSTEM_BIN) $(FAULT_BIN) $(GPU_BIN): private PRODLIBS += -lcmocka
# What each program leaves behind is looked for at its end (test/lib/audit.h).
# CUDA leaves threads and descriptors: test/gpu has it in child processes alone.
$(filter-out $(NEEDS_CUDA:%.c=$(B)/%),$(UNIT_BIN)) $(SYSTEM_BIN) $(FAULT_BIN) \
	$(GPUS:%.c=$(B)/%): private PRODLIBS += -Wl,-u,audit_this_program
# In every build: of the same objects the same program is made.
$(UNIT_BIN): private RPATH = $(OLDTAGS) -Wl,-rpath,'$$ORIGIN/../../lib'
$(UNIT_BIN): $(B)/%: $(B)/obj/%.o $(call lone,$(UNIT)) $(AR_TEST) \
		$(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(SYSTEM_BIN): $(B)/%: $(B)/obj/%.o $(call lone,$(SYSTEM)) $(AR_TEST) \
		$(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(FAULT_BIN): private PRODLIBS += $(WRAPPED:%=-Wl,--wrap=%)
$(FAULT_BIN): $(B)/%: $(B)/obj/%.o $(call lone,$(FAULT)) $(AR_TEST) \
		$(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(GPUS:%.c=$(B)/%): $(B)/%: $(B)/obj/%.o $(call lone,$(GPU)) $(AR_TEST) \
		$(AR_PRODUCER) $(AR_LIB)
	$(inside)

# kernels.cu as plain functions: these headers stand for CUDA's.
$(KERNEL_BIN): test/gpu/test_kernels.cpp $(AR_LIB) $(B)/obj/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -Itest/gpu/onhost $(call includes,$<) $(ALLXX) -ffp-contract=off \
		-Wno-unknown-pragmas -MMD -MP -MF $@.d -o $@ $< $(AR_LIB) $(LDFLAGS) $(LIBS)

$(CONFORM_BIN): $(B)/%: $(B)/obj/%.o $(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(NCCL_SIM:%.c=$(B)/%.so): $(B)/%.so: %.c $(SIM_SO) $(B)/obj/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(call includes,$<) $(ALL) -fvisibility=default -shared -o $@ $< \
		$(LDFLAGS) -L$(B)/lib -Wl,-rpath,$(abspath $(B)/lib) \
		-lcudart_sim -lpthread

# Without sanitizers: theirs would have to be loaded first.
$(PRELOAD:%.c=$(B)/%.so): $(B)/%.so: %.c $(B)/obj/flags
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(OURS) $(CFLAGS) -fvisibility=default -shared -o $@ $< \
		$(LDFLAGS)

# What helpers and fuzzers take of test/lib: files that know no cmocka.
MADE_OBJ := $(call obj,$(patsubst %,test/lib/%.c, \
	image_gen made_image old_file recipes rows_gen table_gen tar_gen))

$(B)/test/%: $(B)/obj/test/helpers/%.o $(call lone,$(HELPER)) $(MADE_OBJ) \
		$(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(B)/test/%: $(B)/obj/test/parity/%.o $(call lone,$(HELPER)) $(MADE_OBJ) \
		$(AR_PRODUCER) $(AR_LIB)
	$(inside)

# What libjpeg makes of a file, to compare with.
$(B)/test/fuzz/fuzz_jpeg $(B)/test/fuzz/replay_jpeg: \
	$(call obj,test/lib/jpeg_plain.c)

# The fuzz targets, run by a main() of ours.
$(REPLAY_BIN): $(B)/test/fuzz/replay_%: $(B)/obj/test/fuzz/fuzz_%.o \
		$(call obj,$(REPLAY)) $(MADE_OBJ) $(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(B)/test/fuzz/%: $(B)/obj/test/fuzz/%.o $(MADE_OBJ) $(AR_PRODUCER) $(AR_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(FUZZ_LINK) $(FUZZ_ENGINE) -o $@ $^ $(LDFLAGS) $(PRODLIBS)

# Examples see what users see: the public header and the shared library.
RUNPATH = -L$(B)/lib -Wl,-rpath,'$$ORIGIN/../lib' -ltsock

$(B)/examples/%: examples/%.c $(SO) $(B)/obj/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -Iinclude $(ALL) -MMD -MP -MF $@.d -o $@ $< \
		$(LDFLAGS) $(RUNPATH) -lm

$(B)/examples/%: examples/%.cpp $(SO) $(B)/obj/flags
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) -Iinclude $(ALLXX) -MMD -MP -MF $@.d -o $@ $< \
		$(LDFLAGS) $(RUNPATH) -lm

$(B)/examples/%: examples/%.cu $(SO) $(B)/obj/nvflags
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) -std=c++17 -O2 -Wno-deprecated-gpu-targets -Iinclude \
		$(NVCCFLAGS) -o $@ $< \
		-L$(B)/lib -Xlinker -rpath,'$$ORIGIN/../lib' -ltsock

-include $(foreach o,$(sort $(B)/obj $(O)),$(C_FILES:%.c=$o/%.d)) \
	$(EXAMPLE_BIN:%=%.d) $(KERNEL_BIN:%=%.d) $(CUDA_HEADERS:.o=.d)

# --------------------------------------------------------------------------
# install, and the small ones

D = $(DESTDIR)
MAN1 := $(wildcard producer/*.1)
MAN37 := $(wildcard lib/*.[37] lib/*/*.[37] include/tsock/*.[37])
PACKAGE := bindings/python/tsock
PACKAGED := $(patsubst $(PACKAGE)/%,%,$(wildcard $(PACKAGE)/py.typed \
	$(PACKAGE)/*.py $(PACKAGE)/*/*.py))

EXAMPLE_FILES := $(wildcard examples/*.c examples/*.cpp examples/*.cu \
	examples/*.py)
DOCS := README.md CHANGELOG.md LICENSE SECURITY.md THIRD_PARTY \
	$(wildcard docs/*.md docs/*.svg docs/*/*.md docs/*/*/*.md) \
	$(EXAMPLE_FILES)
man_page = $(mandir)/man$(subst .,,$(suffix $(1)))/$(notdir $(1))

# What install leaves, and uninstall takes away again.
INSTALLED = $(API:include/%=$(includedir)/%) \
	$(libdir)/pkgconfig/libtsock.pc \
	$(addprefix $(libdir)/,libtsock.a libtsock.so libtsock.so.$(SOVERSION) \
		libtsock.so.$(VERSION)) \
	$(unitdir)/tsock-producer@.service \
	$(PROGRAMS:%=$(bindir)/%) $(foreach m,$(MAN1) $(MAN37),$(call man_page,$m)) \
	$(DOCS:%=$(docdir)/%)

# The .pc file finds its prefix from where it lies, so that what was installed
# can be moved as a whole.  A folder outside of the prefix is named as it is.
under = $(if $(filter $(prefix)/%,$(1)),$${prefix}/$(patsubst \
	$(prefix)/%,%,$(1)),$(1))
PC_PREFIX = $(if $(filter $(prefix)/%,$(libdir)),$${pcfiledir}/$(shell \
	realpath -ms --relative-to='$(libdir)/pkgconfig' '$(prefix)'),$(prefix))

install: lib producer	## DESTDIR, prefix, bindir, libdir, PYTHONDIR
	$(INSTALL) -d $(D)$(includedir)/tsock $(D)$(libdir)/pkgconfig \
		$(D)$(bindir) $(D)$(unitdir)
	$(INSTALL) -m 644 $(API) $(D)$(includedir)/tsock/
	$(INSTALL) -m 755 $(SO).$(VERSION) $(D)$(libdir)/
	ln -sf libtsock.so.$(VERSION) $(D)$(libdir)/libtsock.so.$(SOVERSION)
	ln -sf libtsock.so.$(SOVERSION) $(D)$(libdir)/libtsock.so
	$(INSTALL) -m 644 $(AR_LIB) $(D)$(libdir)/
	sed -e 's|@prefix@|$(PC_PREFIX)|; s|@libdir@|$(call under,$(libdir))|' \
		-e 's|@includedir@|$(call under,$(includedir))|' \
		-e 's|@version@|$(VERSION)|' \
		-e "s|@cuda@|$$(sed 's/^./ &/' $(B)/obj/private)|" \
		lib/tsock.pc.in >$(D)$(libdir)/pkgconfig/libtsock.pc
	$(INSTALL) -m 755 $(PROGRAMS:%=$(B)/bin/%) $(D)$(bindir)/
	sed 's|@bindir@|$(bindir)|' producer/tsock-producer@.service.in \
		>$(D)$(unitdir)/tsock-producer@.service
	$(foreach f,$(DOCS),$(INSTALL) -D -m 644 $(f) $(D)$(docdir)/$(f)$(newline)	)
	$(foreach m,$(MAN1) $(MAN37),$(INSTALL) -D -m 644 $(m) \
		$(D)$(call man_page,$m)$(newline)	)
ifneq ($(PACKAGED),)
	@$(if $(PYTHONDIR),,echo 'no $(PYTHON3): the Python package is left out')
	$(if $(PYTHONDIR),$(foreach f,$(PACKAGED),$(INSTALL) -D -m 644 \
		$(PACKAGE)/$(f) $(D)$(PYTHONDIR)/tsock/$(f)$(newline)	))
endif
	$(if $(D),,@$(ready_to_use))

# Make the library known to the loader, or say what is left to do.
define ready_to_use
ldconfig 2>/dev/null || /sbin/ldconfig 2>/dev/null || true; \
{ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | \
	grep -qF ' $(libdir)/libtsock.so.$(SOVERSION)' || \
	echo 'programs do not find $(libdir)/libtsock.so.$(SOVERSION) yet:' \
		'name $(libdir) in a file of /etc/ld.so.conf.d and run' \
		'ldconfig, or in LD_LIBRARY_PATH'; \
$(if $(PYTHONDIR),$(PYTHON3) -c 'import sys; \
	sys.exit("$(PYTHONDIR)" not in sys.path)' || \
	echo '$(PYTHON3) does not look in $(PYTHONDIR) yet: name it in PYTHONPATH')
endef

uninstall:		## take away what install has put there
	rm -f $(INSTALLED:%=$(D)%)
	rm -rf $(if $(PYTHONDIR),$(D)$(PYTHONDIR)/tsock)
	rmdir $(D)$(includedir)/tsock 2>/dev/null || true
	find $(D)$(docdir) -depth -type d -empty -delete 2>/dev/null || true
	$(if $(D),,-ldconfig 2>/dev/null)

clean:			## remove everything built
	rm -rf build build-*

format:			## lay out every C file by .clang-format
	$(CLANG_FORMAT) -i $$(find bench examples include lib producer test \
		-name '*.[ch]' -o -name '*.cpp' -o -name '*.cu')

generate:		## what is written from producer/cli/options.def
	$(Q)CC='$(CC)' producer/cli/generate.py

# The files of this build: with CUDA=sim all but lib/*/*_none.c.
C_COMMANDS = $(C_FILES) $(NCCL_SIM) $(filter %.c,$(EXAMPLES))
CXX_FILES  = $(filter %.cpp,$(EXAMPLES)) $(if $(KERNEL_BIN), \
	test/gpu/test_kernels.cpp)
json       = $(subst ','\'',$(subst ",\",$(subst \,\\,$(strip $(1)))))
# $(call commands,FILES,COMPILER AND FLAGS)
commands   = for f in $(sort $(1)); do printf '{ "directory": "%s", \
	"file": "%s", "command": "%s -c %s -o %s" },\n' \
		'$(call json,$(CURDIR))' $$f '$(call json,$(2))' $$f \
		$(B)/obj/$${f%.*}.o; done

compile_commands.json: FORCE	## how each file is compiled, for clangd and others
	@{ echo '['; $(call commands,$(C_COMMANDS),$(CC) $(INCLUDES) \
		$(CUDA_INCLUDES) $(SIMD_FLAG) $(PKGFLAGS) $(ALL)); $(if $(strip $(CXX_FILES)),$(call commands,$(CXX_FILES), \
		$(CXX) $(if $(KERNEL_BIN),-Itest/gpu/onhost \
		-Wno-unknown-pragmas) $(INCLUDES) $(CUDA_INCLUDES) $(ALLXX));) \
		} | sed '$$s/,$$//' >$@
	@echo ']' >>$@

config:			## what was found and chosen
	@echo 'version     $(VERSION)'
	@echo 'build in    $(B)'
	@echo 'compiler    $(CC): $(shell $(CC) --version 2>/dev/null | head -1)'
	@echo 'flags       $(ALL)'
	@$(foreach p,$(PACKAGES) liburing libwebp libtiff-4 libavif sndfile \
		soxr,echo '$(p): '$$(pkg-config \
		--modversion $(p) 2>/dev/null || echo not found);)
	@echo 'io_uring    $(if $(filter 1,$(URING)),yes,no: reads by pread)'
	@echo 'WebP        $(if $(filter 1,$(WEBP)),yes,no: such files are bad)'
	@echo 'TIFF        $(if $(filter 1,$(TIFF)),yes,no: such files are bad)'
	@echo 'AVIF        $(if $(filter 1,$(AVIF)),yes,no: such files are bad)'
	@echo 'libsndfile  $(if $(filter 1,$(SNDFILE)),yes,no: audio is WAV alone)'
	@echo 'libsoxr     $(if $(filter 1,$(SOXR)),yes,no: audio is not resampled)'
	@echo 'vectors     $(or $(SIMD_CHOSEN:%=those of the folders %/$(comma) \
		as the processor has them),no)'
	@echo 'CUDA        $(if $(filter sim,$(CUDA)),simulated by \
		test/simcuda,$(if $(filter 1,$(CUDA)),$(shell $(NVCC) \
		--version 2>/dev/null | sed -n \
		's/.*release \([0-9.]*\).*/\1/p') in $(CUDA_HOME)$(comma) for \
		$(addprefix sm_,$(GPU_CODE)),no$(if $(CUDA_LACKS),: \
		$(CUDA_HOME) lacks $(CUDA_LACKS))))'
	@echo 'install to  $(DESTDIR)$(prefix), $(DESTDIR)$(PYTHONDIR)'

help:			## this list
	@sed -n 's/^\([a-z_.%-]*\):.*$(hash)$(hash) \(.*\)/  make \1|\2/p' \
		Makefile | awk -F'|' '{ printf "%-30s%s\n", $$1, $$2 }'
	@echo
	@echo 'Variables: B=build V=1 URING=0|1 WEBP=0|1 TIFF=0|1 AVIF=0|1 SNDFILE=0|1 SOXR=0|1'
	@echo '  SIMD=0|1 CUDA=0|1|sim SAN=address,undefined|thread'
	@echo '  WERROR=1 CUDA_HOME NVCC NVCCFLAGS CC CFLAGS LDFLAGS DESTDIR'
	@echo '  prefix bindir libdir includedir mandir docdir PYTHON3 PYTHONDIR HARDEN'
