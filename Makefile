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
	include/tsock/tsock.h)
has     = $(shell pkg-config --exists $(1) 2>/dev/null && echo 1 || echo 0)
MAJOR   := $(call ver,MAJOR)
VERSION := $(MAJOR).$(call ver,MINOR).$(call ver,PATCH)

# Plain make builds the optional parts that the machine has; URING=0 leaves
# one out, URING=1 insists on it.
PACKAGES := libzmq libjpeg libpng libxxhash
HAVE_URING := $(call has,liburing)
URING   ?= $(HAVE_URING)
CUDA    ?= 0

SAN     ?=
WERROR  ?=
# Objects built with different flags never meet.
B       ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

prefix      ?= /usr/local
bindir      ?= $(prefix)/bin
libdir      ?= $(prefix)/lib
includedir  ?= $(prefix)/include
mandir      ?= $(prefix)/share/man
PYTHONDIR   ?= $(prefix)/lib/python3/dist-packages
INSTALL     ?= install

CLANG_FORMAT ?= $(or $(shell command -v clang-format-14),clang-format)

# --------------------------------------------------------------------------
# What is asked for must be there

NOTHING_BUILT := check check-setup clean config demo format fuzz help soak
ifneq ($(filter-out $(NOTHING_BUILT),$(or $(MAKECMDGOALS),all)),)
MISSING := $(foreach p,$(PACKAGES),$(if $(filter 0,$(call has,$(p))),$(p)))
MISSING += $(shell echo '$(hash)include <Random123/philox.h>' | \
	$(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 || echo Random123)
ifneq ($(strip $(MISSING)),)
$(error not found: $(strip $(MISSING)); run test/setup.sh build)
endif
ifeq ($(URING)$(HAVE_URING),10)
$(error URING=1 but liburing was not found; run test/setup.sh build)
endif
endif
ifneq ($(filter-out 0 1,$(URING)),)
$(error URING is 0 or 1)
endif
ifneq ($(filter-out 0,$(CUDA)),)
$(error CUDA=$(CUDA): this version has no CUDA part yet; leave CUDA out)
endif

# --------------------------------------------------------------------------
# Flags

# -ffp-contract=off: a fused multiply-add rounds once where the written
# arithmetic rounds twice; pixels have to be the same on every CPU.
OURS    := -std=c11 -D_GNU_SOURCE -O2 -g -fPIC -pthread -fvisibility=hidden \
	-ffp-contract=off -Wall -Wextra -Wshadow
OURSXX  := -std=c++17 -O2 -g -fPIC -pthread -Wall -Wextra
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer \
	$(if $(findstring undefined,$(SAN)),-fno-sanitize-recover=undefined))
ERRFLAGS := $(if $(filter 1,$(WERROR)),-Werror)
INCLUDES := -Iinclude -Ilib -Iproducer -I.
PKGFLAGS := $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)

ALL      = $(OURS) $(SANFLAGS) $(ERRFLAGS) $(CPPFLAGS) $(CFLAGS)
ALLXX    = $(OURSXX) $(SANFLAGS) $(ERRFLAGS) $(CPPFLAGS) $(CXXFLAGS)
LINK     = $(CC) $(OURS) $(SANFLAGS) $(CFLAGS) -Wl,--as-needed
pkglibs  = $(or $(shell pkg-config --libs $(1) 2>/dev/null),$(2))
LIBS     = $(call pkglibs,libzmq,-lzmq) -lpthread -ldl
PRODLIBS = $(call pkglibs,libjpeg,-ljpeg) $(call pkglibs,libpng,-lpng) \
	$(call pkglibs,libxxhash,-lxxhash) \
	$(if $(filter 1,$(URING)),$(call pkglibs,liburing,-luring)) \
	$(LIBS) -lm

Q = $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(2))

# --------------------------------------------------------------------------
# Sources: every file of a layer, less the alternatives not chosen

LIB      := $(wildcard lib/*/*.c)
PRODUCER := $(filter-out $(if $(filter 1,$(URING)),%/reader_none.c, \
	%/reader_uring.c),$(wildcard producer/*.c producer/*/*.c))

# A program is a file with a main(); the others in its folder are linked to
# every program there.
with_main = $(if $(1),$(shell grep -l '^int main$(lparen)' $(1)))
BENCH    := $(wildcard bench/*.c)
BENCHES  := $(call with_main,$(BENCH))
UNIT     := $(wildcard test/unit/*.c)
UNITS    := $(call with_main,$(UNIT))
SYSTEM   := $(wildcard test/system/*.c)
SYSTEMS  := $(call with_main,$(SYSTEM))
HELPER   := $(wildcard test/helpers/*.c test/parity/*.c)
HELPERS  := $(call with_main,$(HELPER))
FUZZERS  := $(wildcard test/fuzz/*.c)
CXX_THERE := $(if $(shell command -v $(firstword $(CXX))),1)
EXAMPLES := $(wildcard examples/*.c) \
	$(if $(CXX_THERE),$(wildcard examples/*.cpp))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
lone = $(call obj,$(filter-out $(call with_main,$(1)),$(1)))

SO    := $(B)/lib/libtsock.so
AR_LIB := $(B)/lib/libtsock.a
AR_PRODUCER := $(B)/obj/producer.a
BENCH_BIN  := $(BENCHES:bench/%.c=$(B)/bench/%)
UNIT_BIN   := $(UNITS:%.c=$(B)/%)
SYSTEM_BIN := $(SYSTEMS:%.c=$(B)/%)
HELPER_BIN := $(patsubst %.c,$(B)/test/%,$(notdir $(HELPERS)))
EXAMPLE_BIN := $(patsubst %,$(B)/%,$(basename $(EXAMPLES)))
FUZZ_BIN   := $(FUZZERS:%.c=$(B)/%)

# --------------------------------------------------------------------------
# Targets

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all lib producer examples benches tests unit-tests fuzzers demo check \
	bench soak fuzz install clean help config format FORCE

all: lib producer examples benches	## the library, the producer, examples
lib: $(SO) $(AR_LIB)
producer: $(if $(wildcard producer/main.c),$(B)/bin/tsock-producer)
examples: $(EXAMPLE_BIN)
benches: $(BENCH_BIN)
unit-tests: $(UNIT_BIN)
tests: $(UNIT_BIN) $(SYSTEM_BIN) $(HELPER_BIN)	## test programs (not run)
fuzzers: $(FUZZ_BIN)

# Packages are probed for when make starts, so what runs after an installation
# is a new make.
demo:			## install what is missing, build, show two consumers
	@test/setup.sh build
	@$(MAKE) --no-print-directory all
	@B=$(B) examples/demo.sh

check:			## install what is missing, build, run every test
	@test/setup.sh check
	@+test/run.sh

bench: bench-all	## every benchmark; JSON=FILE for machines

bench-%: all		## one benchmark of bench/run.sh
	@B=$(B) JSON=$(JSON) bench/run.sh $*

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

$(B)/obj/flags: FORCE
	@$(call note,$(CC) $(OURS) $(SANFLAGS) $(CPPFLAGS) $(CFLAGS))

$(B)/obj/files: FORCE
	@$(call note,$(LIB) $(PRODUCER) $(LDFLAGS))

$(B)/obj/%.o: %.c $(B)/obj/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(INCLUDES) $(PKGFLAGS) $(ALL) -MMD -MP -c -o $@ $<

$(SO).$(MAJOR): $(call obj,$(LIB)) lib/tsock.map $(B)/obj/files
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -shared -Wl,-soname,libtsock.so.$(MAJOR) -Wl,-Bsymbolic \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-Wl,--version-script=lib/tsock.map \
		-o $@ $(filter %.o,$^) $(LDFLAGS) $(LIBS)

$(SO): $(SO).$(MAJOR)
	$(Q)ln -sf $(<F) $@

$(AR_LIB): $(call obj,$(LIB)) $(B)/obj/files
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

# What tests and benchmarks take from the producer.
$(AR_PRODUCER): $(call obj,$(filter-out producer/main.c,$(PRODUCER))) \
		$(B)/obj/files
	@mkdir -p $(@D)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $(filter %.o,$^)

# The library is inside, so that the producer runs from anywhere.
$(B)/bin/tsock-producer: $(call obj,producer/main.c) $(AR_PRODUCER) $(AR_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -o $@ $^ $(LDFLAGS) $(PRODLIBS)

define inside
@mkdir -p $(@D)
$(call say,LD,$@)
$(Q)$(LINK) -o $@ $^ $(LDFLAGS) $(PRODLIBS)
endef

$(B)/bench/%: $(B)/obj/bench/%.o $(call lone,$(BENCH)) $(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(UNIT_BIN) $(SYSTEM_BIN): private PRODLIBS += -lcmocka
$(UNIT_BIN): $(B)/%: $(B)/obj/%.o $(call lone,$(UNIT)) $(AR_PRODUCER) $(AR_LIB)
	$(inside)

$(SYSTEM_BIN): $(B)/%: $(B)/obj/%.o $(call lone,$(SYSTEM)) $(AR_PRODUCER) \
		$(AR_LIB)
	$(inside)

$(B)/test/%: $(B)/obj/test/helpers/%.o $(call lone,$(HELPER)) $(AR_PRODUCER) \
		$(AR_LIB)
	$(inside)

$(B)/test/%: $(B)/obj/test/parity/%.o $(call lone,$(HELPER)) $(AR_PRODUCER) \
		$(AR_LIB)
	$(inside)

$(B)/test/fuzz/%: $(B)/obj/test/fuzz/%.o $(AR_PRODUCER) $(AR_LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LDFLAGS) $(PRODLIBS)

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

-include $(patsubst %,$(B)/obj/%.d,$(basename $(LIB) $(PRODUCER) $(BENCH) \
	$(UNIT) $(SYSTEM) $(HELPER) $(FUZZERS))) $(EXAMPLE_BIN:%=%.d)

# --------------------------------------------------------------------------
# install, and the small ones

D = $(DESTDIR)
MAN1 := $(wildcard producer/*.1)
MAN37 := $(wildcard lib/*.[37] lib/*/*.[37] include/tsock/*.[37])
PYTHON := $(wildcard bindings/python/tsock/*.py)

install: lib producer	## DESTDIR, prefix, bindir, libdir, PYTHONDIR
	$(INSTALL) -d $(D)$(includedir)/tsock $(D)$(libdir)/pkgconfig \
		$(D)$(bindir)
	$(INSTALL) -m 644 include/tsock/tsock.h $(D)$(includedir)/tsock/
	$(INSTALL) -m 755 $(SO).$(MAJOR) $(D)$(libdir)/
	ln -sf libtsock.so.$(MAJOR) $(D)$(libdir)/libtsock.so
	$(INSTALL) -m 644 $(AR_LIB) $(D)$(libdir)/
	sed -e 's|@prefix@|$(prefix)|; s|@libdir@|$(libdir)|' \
		-e 's|@includedir@|$(includedir)|; s|@version@|$(VERSION)|' \
		-e 's|@private@|$(LIBS)|' lib/tsock.pc.in \
		>$(D)$(libdir)/pkgconfig/libtsock.pc
	$(INSTALL) -m 755 $(B)/bin/tsock-producer $(D)$(bindir)/
ifneq ($(PYTHON),)
	$(INSTALL) -d $(D)$(PYTHONDIR)/tsock
	$(INSTALL) -m 644 $(PYTHON) $(D)$(PYTHONDIR)/tsock/
endif
	$(foreach m,$(MAN1) $(MAN37),$(INSTALL) -D -m 644 $(m) \
		$(D)$(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir \
		$(m))$(newline)	)

clean:			## remove everything built
	rm -rf build build-*

format:			## lay out every C file by .clang-format
	$(CLANG_FORMAT) -i $$(find bench examples include lib producer test \
		-name '*.[ch]' -o -name '*.cpp')

config:			## what was found and chosen
	@echo 'version     $(VERSION)'
	@echo 'build in    $(B)'
	@echo 'compiler    $(CC): $(shell $(CC) --version 2>/dev/null | head -1)'
	@echo 'flags       $(ALL)'
	@$(foreach p,$(PACKAGES) liburing,echo '$(p): '$$(pkg-config \
		--modversion $(p) 2>/dev/null || echo not found);)
	@echo 'io_uring    $(if $(filter 1,$(URING)),yes,no: reads by pread)'
	@echo 'CUDA        no: this version has no CUDA part yet'
	@echo 'install to  $(DESTDIR)$(prefix), $(DESTDIR)$(PYTHONDIR)'

help:			## this list
	@sed -n 's/^\([a-z%-]*\):.*$(hash)$(hash) \(.*\)/  make \1|\2/p' \
		Makefile | awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'
	@echo
	@echo 'Variables: B=build V=1 URING=0|1 SAN=address,undefined|thread'
	@echo '  WERROR=1 CC CFLAGS LDFLAGS DESTDIR prefix libdir PYTHONDIR'
