# heatsink's build. `make help` lists the targets; CONTRIBUTING.md says how to add to it.
#
# Sources are found by folder, so a new file needs no line here. All objects except main.o go into one archive, which
# the server, the unit tests, the fuzz targets and the benchmarks link. Every combination of compiler and sanitizer
# has its own folder below build/, so switching between them rebuilds nothing.

CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
SAN ?=
B ?= build$(if $(SAN)$(filter-out gcc,$(CC)),/$(notdir $(CC))$(SAN:%=-%))
PREFIX ?= /usr/local
PYTHON := /usr/bin/python3
FUZZ_SECONDS ?= 30

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

# Linked libraries, by pkg-config name. xxHash is used as a header only.
LIBRARIES := libuv lmdb jansson libmicrohttpd ncursesw openssl
HEADERS := libxxhash

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
# With a sanitizer gcc gives false warnings, because it warns after instrumentation; its plain build has the valid ones.
# clang warns before it instruments.
CLANG := $(findstring clang,$(notdir $(CC)))
ERRORS := $(if $(and $(SAN),$(if $(CLANG),,gcc)),,$(if $(filter true 1,$(CI) $(WERROR)),-Werror))
SAN_address := -fsanitize=address,undefined -fno-sanitize-recover=undefined $(CLANG:clang=-D__SANITIZE_ADDRESS__)
SAN_undefined := -fsanitize=undefined -fno-sanitize-recover=all
SAN_thread := -fsanitize=thread
# Without the checks for null and alignment the fuzz targets compile in half of the time. The address sanitizer finds
# null pointers, and the tests find misaligned addresses.
SAN_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=null,alignment -fno-sanitize-recover=all
SANITIZE := $(if $(SAN),$(or $(SAN_$(SAN)),$(error SAN is address, undefined or thread)) -fno-omit-frame-pointer)

# Sanitizers find the same bugs at -O1, which compiles in half the time.
CFLAGS ?= $(if $(SAN),-O1,-O2) -g
FLAGS := -std=gnu11 $(CFLAGS) -D_GNU_SOURCE -Isrc -I. -I$(B)/made -pthread $(WARNINGS) $(SANITIZE) \
	$(shell pkg-config --cflags $(LIBRARIES) $(HEADERS) 2>/dev/null)
LINK := $(CFLAGS) $(LDFLAGS) $(SANITIZE) -pthread
# Test sources are large and run briefly, so optimizing them takes longer than it saves. gcc's -Og still gives data flow
# warnings; clang's -Og equals its -O1. gold links in half of the time, but does not work with clang's sanitizers.
TEST_CFLAGS := $(if $(CLANG),-O0,-Og)
TEST_LINK := $(LINK) $(if $(CLANG),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
LIBS := $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null) -lm

SOURCES := $(sort $(shell find src sim -name '*.c'))
# Fuzz targets parse bytes and need no server around the code.
NOT_FUZZED := $(if $(filter fuzz,$(SAN)),src/cli/% src/serve/% src/http/%)
HEADS := $(sort $(shell find src sim tests bench -name '*.h'))
UNIT := $(sort $(wildcard tests/unit/test_*.c))
UNIT_LIB := $(sort $(wildcard tests/lib/*.c))
FUZZ := $(sort $(wildcard fuzz/fuzz_*.c))
BENCH := $(sort $(wildcard bench/*.c))
CLIENTS := $(sort $(wildcard tests/clients/*.c))
DRIVERS := $(sort $(wildcard tests/drivers/*.c))
PRELOADS := $(sort $(wildcard tests/preload/*.c))
ALL_C := $(SOURCES) $(UNIT) $(UNIT_LIB) $(FUZZ) $(BENCH) $(CLIENTS) $(DRIVERS) $(PRELOADS) tools/make-cells.c

# clang's analyzer follows paths up to NODES steps per function: 5000 take a fraction of the time of 75000. DEEP=yes
# uses 75000, and adds the tests and cppcheck.
DEEP ?=
NODES := $(if $(DEEP),75000,5000)
TIDIED := $(B)/tidy$(DEEP:%=-deep)

HEATSINK := $(B)/heatsink
ARCHIVE := $(B)/libheatsink.a
UNIT_ARCHIVE := $(B)/libtests.a
MAIN := $(B)/obj/src/cli/main.o
OBJECTS := $(patsubst %.c,$(B)/obj/%.o,$(filter-out src/cli/main.c $(NOT_FUZZED),$(SOURCES)))
# The thread sanitizer finds nothing in programs without threads, so these are not built for it, except for `make
# test-rest`, whose modules call some of them.
UNIT_BIN := $(if $(filter thread,$(SAN)$(EVERY_UNIT)),$(addprefix $(B)/tests/,$(shell $(PYTHON) \
	tools/run-tests --sanitizer thread --build $(B) --units)),$(UNIT:tests/unit/%.c=$(B)/tests/%))
DRIVER_BIN := $(DRIVERS:tests/drivers/%.c=$(B)/drivers/%)
PRELOAD_BIN := $(PRELOADS:tests/preload/%.c=$(B)/preload/%.so)
FUZZ_BIN := $(FUZZ:fuzz/%.c=$(B)/fuzz/%)
BENCH_BIN := $(BENCH:bench/%.c=$(B)/bench/%)

Q := $(if $(V),,@)
comma := ,
say = @printf '  %-5s %s\n'

.PHONY: all run test test-rest check check-all tests fuzz fuzz-build fuzz-targets fuzz-run sim bench format lint tidy docs install clean help packages
.DELETE_ON_ERROR:
.SECONDARY:

all: $(HEATSINK) ## build the server: build/heatsink

# --- targets for developers -----------------------------------------------------------------------
# `run` and `test` call make again, because pkg-config works only after the packages are installed.

run: ## install what is missing, build, start the server in the foreground (ARGS=...)
	@tools/install-packages run
	@$(MAKE) --no-print-directory all
	@$(HEATSINK) serve --data ./data $(ARGS)

RUN_TESTS = $(PYTHON) tools/run-tests --build $(B) $(SAN:%=--sanitizer %)

test: ## install what tests need, build, run every test (4 minutes on 2 processors); with SAN=, those that concern it
	@echo 'Building, then running the tests: on two idle processors that takes about 4 minutes.'
	@tools/install-packages run test
	@$(MAKE) --no-print-directory all tests
	@$(RUN_TESTS)

test-rest: # with SAN=: the tests that `make SAN=… test` leaves out
	@tools/install-packages run test
	@$(MAKE) --no-print-directory all tests EVERY_UNIT=yes
	@$(RUN_TESTS) --rest

check-all: ## what .ci/run leaves out: every test under the sanitizers, lint in depth, longer fuzzing (by hand, 30 minutes)
	@.ci/run rest

check: ## one test: T=test_buf, T=test_source_rules, T=test_one_method
check: $(if $(T),$(if $(filter $(T),$(notdir $(UNIT_BIN))),$(B)/tests/$(T),all tests))
	@$(if $(T),,$(error say which: make check T=name))$(PYTHON) tools/run-tests --build $(B) $(T)

tests: $(UNIT_BIN) $(DRIVER_BIN) $(PRELOAD_BIN)

fuzz: ## run every fuzz target for FUZZ_SECONDS (30)
	@tools/install-packages run lint
	@$(MAKE) --no-print-directory CC=clang SAN=fuzz fuzz-run

fuzz-build: # the fuzz targets, without a run
	@$(MAKE) --no-print-directory CC=clang SAN=fuzz fuzz-targets

fuzz-targets: $(FUZZ_BIN)

fuzz-run: $(FUZZ_BIN)
	@tools/run-fuzz $(FUZZ_SECONDS) $(B) $(FUZZ_BIN)

sim: ## simulated schedules until told to stop (^C), on all processors; SEED=N to begin with (the time)
sim: $(HEATSINK)
	@exec $(HEATSINK) sim check --jobs 0 --schedules 0 --seed $(or $(SEED),$(shell date +%s)000) $(ARGS)

bench: ## the benchmark table: null server, redis-server, heatsink, heat, folding, the cache, heatsink as a proxy
	@tools/install-packages run bench
	@$(MAKE) --no-print-directory all $(BENCH_BIN)
	@$(MAKE) --no-print-directory all B=$(B)/heat-off CFLAGS='$(CFLAGS) -DHS_HEAT_OFF'
	@HEATSINK=$(HEATSINK) HEATSINK_HEAT_OFF=$(B)/heat-off/heatsink \
		PATH="$(CURDIR)/build/tools/bin:$$PATH" $(PYTHON) bench/run.py $(ARGS)

format: ## clang-format everything
	@tools/install-packages lint
	clang-format -i $(ALL_C) $(HEADS)

lint: ## clang-format and clang-tidy, warnings are errors; DEEP=yes: in depth, also the tests, and cppcheck
	@tools/install-packages run test lint
	@$(MAKE) --no-print-directory tidy

tidy: $(if $(DEEP),$(ALL_C:%=$(TIDIED)/%),$(SOURCES:%=$(TIDIED)/%))
	$(say) FORM 'every source with clang-format'
	$(Q)clang-format --dry-run -Werror $(ALL_C) $(HEADS)
	$(if $(DEEP),$(say) CHECK 'every source with cppcheck')
	$(if $(DEEP),$(Q)cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr -j $(shell nproc) \
		-Isrc -I. --enable=warning$(comma)portability $(SOURCES) $(BENCH))

docs: ## write the pages in docs/ that come from the tables in the source anew
docs: $(HEATSINK)
	@$(PYTHON) tools/make-docs commands > docs/COMMANDS.md
	@$(PYTHON) tools/make-docs options > docs/heatsink.conf
	@$(PYTHON) tools/make-docs heat > $(B)/HEAT.md && cp $(B)/HEAT.md docs/HEAT.md
	@$(PYTHON) tools/make-docs contracts > $(B)/CONTRACTS.md && cp $(B)/CONTRACTS.md docs/CONTRACTS.md
	@HEATSINK=$(HEATSINK) $(PYTHON) tools/make-docs metrics > docs/METRICS.md

install: $(HEATSINK) ## install below DESTDIR and PREFIX (/usr/local)
	install -D -m 755 $(HEATSINK) $(DESTDIR)$(PREFIX)/bin/heatsink
	install -D -m 644 README.md $(DESTDIR)$(PREFIX)/share/doc/heatsink/README.md
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/heatsink LICENSE CONTRIBUTING.md
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/heatsink/docs $(wildcard docs/*)

packages: ## install every Debian package that any target wants
	@tools/install-packages run test bench lint

clean: ## remove build/; data stays
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name what; do \
		printf '  make %-9s %s\n' "$$name" "$$what"; done
	@echo 'SAN=address (with undefined), undefined, thread and CC=clang build apart, each in a folder below build/.'
	@echo 'WERROR=1 makes warnings errors, V=1 shows the commands.'

# --- rules for files ------------------------------------------------------------------------------

$(HEATSINK): $(MAIN) $(ARCHIVE)
	$(say) LINK $@
	$(Q)$(CC) $(LINK) -o $@ $^ $(LIBS)

$(ARCHIVE): $(OBJECTS)
	@rm -f $@
	@ar rcs $@ $^

# From an archive a program gets only the objects that it uses; run-tests relies on that (has_threads).
$(UNIT_ARCHIVE): $(UNIT_LIB:%.c=$(B)/obj/%.o)
	@rm -f $@
	@ar rcs $@ $^

$(B)/tests/%: $(B)/obj/tests/unit/%.o $(UNIT_ARCHIVE) $(ARCHIVE)
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(TEST_LINK) -o $@ $^ -lcmocka $(LIBS)

# Drivers: a part of heatsink as a program that an integration test controls.
$(B)/drivers/%: $(B)/obj/tests/drivers/%.o $(ARCHIVE)
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(LINK) -o $@ $^ $(LIBS)

# Libraries preloaded into a server. Built without a sanitizer, because a sanitizer's library must be loaded first.
$(B)/preload/%.so: tests/preload/%.c $(HEADS) $(B)/flags
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(filter-out $(SANITIZE),$(FLAGS)) $(ERRORS) -fPIC -shared -o $@ $<

$(B)/bench/%: $(B)/obj/bench/%.o $(ARCHIVE)
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(LINK) -o $@ $^ $(LIBS)

$(B)/fuzz/%: $(B)/obj/fuzz/%.o $(ARCHIVE)
	@mkdir -p $(@D)
	$(say) LINK $@
	$(Q)$(CC) $(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(B)/obj/tests/%.o: OPTIMIZE := $(TEST_CFLAGS) $(if $(SAN),-fno-sanitize=undefined)
$(B)/obj/fuzz/%.o: OPTIMIZE := -fsanitize=fuzzer-no-link
# With a sanitizer these folders are not optimized, because tests spend little time in them.
$(addprefix $(B)/obj/src/,cli/%.o serve/%.o http/%.o telemetry/%.o command/%.o acl/%.o): OPTIMIZE := $(if $(SAN),-O0)

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(FLAGS) $(OPTIMIZE) $(ERRORS) -MMD -MP -c -o $@ $<

# The hash table of command names is computed from the rows of the command table.
CELLS := $(B)/made/command/cells.h
$(CELLS): tools/make-cells.c src/command/command.h src/command/name.h $(wildcard src/command/*.def) $(B)/flags
	@mkdir -p $(@D)
	$(say) MAKE $@
	$(Q)$(CC) $(filter-out $(SANITIZE),$(FLAGS)) $(ERRORS) -o $(B)/make-cells $<
	$(Q)$(B)/make-cells > $@

$(B)/obj/src/command/table.o $(TIDIED)/src/command/table.c: $(CELLS)

# The analyzer does not run over tests, because each assertion doubles its paths.
$(TIDIED)/%: TIDY := $(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang max-nodes=$(NODES))
$(TIDIED)/tests/%: TIDY := --checks=-clang-analyzer-*

$(TIDIED)/%: % .clang-tidy
	@mkdir -p $(@D)
	$(say) TIDY $<
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $(TIDY) $< -- $(FLAGS)
	@touch $@

# Stores the flags, so that a change of flags rebuilds; names missing libraries.
$(B)/flags: .FORCE
	@pkg-config --exists --print-errors $(LIBRARIES) $(HEADERS) || \
		{ echo "heatsink: libraries are missing; 'make packages' installs them"; exit 1; } >&2
	@mkdir -p $(@D)
	@echo '$(CC) $(FLAGS)' | cmp -s - $@ || echo '$(CC) $(FLAGS)' > $@

.PHONY: .FORCE
.FORCE:

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
