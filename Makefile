# `make` builds the shared and the static library, as they are shipped.

CARGO ?= cargo
CC ?= cc
CXX ?= c++
PYTHON ?= python3
STRIP ?= strip
PREFIX ?= /usr/local
DESTDIR ?=

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# `make DEBUG=1` and `make install DEBUG=1`: with line tables, not stripped, in a place of their own.
ifdef DEBUG
TARGET := $(TARGET)/with-debug
export CARGO_TARGET_DIR := $(TARGET)
export CARGO_PROFILE_DIST_DEBUG := line-tables-only
endif
DIST := $(TARGET)/dist
SHARED := $(TARGET)/shipped/liblsmkv.so
STATIC := $(DIST)/liblsmkv.a
PROGRAM := $(DIST)/lsmkv
DEMO := $(TARGET)/demo
CFLAGS ?= -O2
CXXFLAGS ?= -O2
INCLUDES := -Iinclude -Ibindings/cpp

.PHONY: all shared static cli demo test bench bench-big bench-commands bench-types bench-commits bench-server bench-remote bench-messages \
	torture loom shuttle miri sanitizers coverage fuzz deny generate install uninstall clean setup \
	figures compat large-strings latency memory-serve pauses ranks siege places cluster \
	instructions instructions-accept differential-long

# cargo uses all cores by itself, and its builds write to the same files.
.NOTPARALLEL:

all: shared static

# Both libraries and the program use one build of their dependencies, which therefore holds machine
# code and, for the link-time optimisation of the shared library, bitcode. cargo leaves the bitcode
# out unless it is told. Flags in the environment make it ignore those of its configuration.
BITCODE := -Cembed-bitcode=yes
ifdef RUSTFLAGS
export RUSTFLAGS := $(RUSTFLAGS) $(BITCODE)
else
WITH_BITCODE := --config='target."cfg(all())".rustflags=["$(BITCODE)"]'
endif

SOURCES := $(shell find src include build.rs Cargo.toml Cargo.lock -type f)

# rustc optimises at link time only what has one crate type. cargo keeps one build of a package's
# library per profile, whatever its crate types; so make decides whether this one is up to date, and
# keeps a copy. Programs look for the library under its SONAME.
shared: $(SHARED)
$(SHARED): $(SOURCES)
	$(CARGO) rustc --profile dist --lib --crate-type cdylib $(WITH_BITCODE) -- -C lto=fat
	mkdir -p $(dir $@) && cp $(DIST)/liblsmkv.so $@
	ln -sf liblsmkv.so $@.0

# The library of the demo: the shipped one if it was built, else one that is compiled on all cores in
# half the time, without link-time optimisation. Calls need a few percent more instructions.
QUICK := $(TARGET)/quick/liblsmkv.so
$(QUICK): $(SOURCES)
	$(CARGO) rustc --profile dist --lib --crate-type cdylib $(WITH_BITCODE) -- -C codegen-units=16
	mkdir -p $(dir $@) && cp $(DIST)/liblsmkv.so $@
	ln -sf liblsmkv.so $@.0
DEMO_LIBRARY := $(if $(wildcard $(SHARED)),$(SHARED),$(QUICK))

# All crate types of the library at once, so that `cli` compiles none of it again.
static: $(STATIC)
# The shared library exports only its own functions; the static one has Lua's under other names.
$(STATIC): $(SOURCES)
	$(CARGO) build --profile dist --lib $(WITH_BITCODE)
	scripts/hide-lua.sh $@

# The program `lsmkv`: shell, server, tools.
cli:
	$(CARGO) build --profile dist -p lsmkv-cli $(WITH_BITCODE)

# Runs a small program in C, C++ and Python, each on its own store.
demo: $(DEMO_LIBRARY)
	rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(CC) $(CFLAGS) $(INCLUDES) bindings/c/quickstart.c -o $(DEMO)/c -L$(dir $(DEMO_LIBRARY)) -llsmkv
	$(CXX) -std=c++17 $(CXXFLAGS) $(INCLUDES) bindings/cpp/quickstart.cpp -o $(DEMO)/cpp \
		-L$(dir $(DEMO_LIBRARY)) -llsmkv
	LD_LIBRARY_PATH=$(dir $(DEMO_LIBRARY)) $(DEMO)/c $(DEMO)/store-c
	LD_LIBRARY_PATH=$(dir $(DEMO_LIBRARY)) $(DEMO)/cpp $(DEMO)/store-cpp
	LSMKV_LIBRARY=$(DEMO_LIBRARY) PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 \
		$(PYTHON) bindings/python/quickstart.py $(DEMO)/store-python

# Installs the tools that the tests need, where that is possible; otherwise names them.
setup:
	scripts/setup.sh

# Runs every suite in every language and prints the sum.
test: setup all
	TARGET=$(TARGET) SHARED=$(SHARED) STATIC=$(STATIC) MAKE="$(MAKE)" CARGO="$(CARGO)" CC="$(CC)" \
		CXX="$(CXX)" PYTHON="$(PYTHON)" scripts/test.sh

# Counts instructions per call through the C ABI and compares them with tests/instructions/counts.txt.
instructions: shared
	TARGET=$(TARGET) SHARED=$(SHARED) CC="$(CC)" tests/instructions/run.sh

# Writes the counts of this tree to that file; give the reason in the commit message.
instructions-accept: shared
	TARGET=$(TARGET) SHARED=$(SHARED) CC="$(CC)" tests/instructions/run.sh accept

# Writes the table of commands in README.md from bench/results/commands.json.
figures:
	$(PYTHON) scripts/figures.py

# Uses real programs, installed from the package registries, on the server and in process, and writes
# what works to docs/COMPATIBILITY.md: some five minutes.
compat: setup shared cli
	PYTHONDONTWRITEBYTECODE=1 $(PYTHON) tests/compat/run.py --cache $(TARGET)/compat --lsmkv $(PROGRAM) \
		--library $(SHARED) --write

# Runs the programs of every binding on a directory, on shared stores, on a server of ours, on a
# redis-server and on a cluster, and writes what these do not offer to docs/SCALING.md.
places:
	$(CARGO) build -p lsmkv-cli
	LSMKV_PLACES=write $(CARGO) test -p lsmkv -p lsmkv-cli --test remote places

# Compares lsmkv with other stores: a table with ratios, bench/results/*.json and a chart.
bench:
	scripts/setup-bench.sh
	$(CARGO) run --release -p lsmkv-bench

# Loads 5 GB under a memory budget of 256 MiB: resident memory, block reads per get.
bench-big:
	$(CARGO) run --release -p lsmkv-bench -- big

# Redis commands on lsmkv, on RocksDB in process and on a real redis-server; `make figures` puts the
# result, bench/results/commands.json, into the README.
bench-commands:
	scripts/setup-bench.sh
	$(CARGO) run --release -p lsmkv-bench -- commands

# Deletes, copies and samples a hash of a million fields.
bench-types:
	$(CARGO) run --release -p lsmkv-bench -- types

# Durable commits: how they share device flushes.
bench-commits:
	$(CARGO) run --release -p lsmkv-bench -- commits

# `lsmkv serve` and a persistent redis-server, measured by redis-benchmark.
bench-server: cli
	bench/server.sh $(PROGRAM)

# Scripts, messages and waits beside redis-server: a table for docs/SCRIPTING.md and docs/MESSAGES.md.
MESSAGES := $(TARGET)/messages
bench-messages: shared cli
	mkdir -p $(MESSAGES)
	$(CC) $(CFLAGS) -std=c99 $(INCLUDES) bench/messages/messages.c -o $(MESSAGES)/messages \
		-L$(dir $(SHARED)) -llsmkv -lpthread
	LD_LIBRARY_PATH=$(dir $(SHARED)) bench/messages.sh $(PROGRAM) $(MESSAGES)/messages

# What a remote store costs beside the bare redis crate, serving from within a program beside `lsmkv serve`,
# and a client of a shared store beside one of redis-server: ratios, which fail above 1.3, below 0.9 and
# below 0.9.
bench-remote: cli
	CARGO_TARGET_DIR=$(TARGET)/bench-remote $(CARGO) run --release --locked \
		--manifest-path bench/remote/Cargo.toml -- $(PROGRAM)

# Waits of single GETs and SETs under a mixed load, beside RocksDB, through the C functions of both; N is
# the number of seconds of each.
LATENCY := $(TARGET)/latency
latency: shared
	scripts/setup-bench.sh
	rm -rf $(LATENCY) && mkdir -p $(LATENCY)
	$(CC) $(CFLAGS) -std=c99 $(INCLUDES) bench/latency/latency.c -o $(LATENCY)/latency \
		-L$(dir $(SHARED)) -llsmkv -lrocksdb
	LD_LIBRARY_PATH=$(dir $(SHARED)) $(LATENCY)/latency $(LATENCY) $(or $(N),60)

# The long forms of the reliability tests (docs/RELIABILITY.md), which take hours.
LONG := $(CARGO) test --release --test
torture: torture-model torture-power-cut torture-io-sweep torture-corruption torture-kill \
	torture-queue torture-server torture-full-disk shared-kill
torture-model:
	LSMKV_MODEL_CASES=$(or $(N),200000) $(LONG) model
torture-power-cut:
	LSMKV_POWER_CUTS=$(or $(N),1000000) $(LONG) power_cut
torture-io-sweep:
	LSMKV_SWEEP=all $(LONG) io_sweep
	LSMKV_SWEEP=all $(LONG) checkpoint
torture-corruption:
	LSMKV_CORRUPTION=all $(LONG) corruption
torture-server:
	LSMKV_WIRE_COMMANDS=$(or $(N),1000000) LSMKV_SERVER_KILLS=200 LSMKV_RESTART_MB=1000 LSMKV_SIEGE=long \
		LSMKV_PUBLISHES=600 LSMKV_THOUSAND_CHANNELS=1000 \
		$(CARGO) test --release -p lsmkv-cli --test server
# Scripts, functions, messages, key events and clients that track, each compared with a real redis-server
# in N random steps, scripts and functions by a server too; FIRST is the first seed.
COMPARED := $(or $(N),25000)
FIRST ?= 1000
differential-long:
	LSMKV_DIFFERENTIAL_SCRIPTS=$(COMPARED) LSMKV_DIFFERENTIAL_STORIES=$(COMPARED) \
		LSMKV_DIFFERENTIAL_SEED=$(FIRST) LSMKV_MESSAGE_COMMANDS=$(COMPARED) \
		LSMKV_EVENT_COMMANDS=$(COMPARED) LSMKV_TRACKING_COMMANDS=$(COMPARED) LSMKV_MESSAGE_SEED=$(FIRST) \
		LSMKV_EVENT_SEED=$(FIRST) LSMKV_TRACKING_SEED=$(FIRST) $(CARGO) test --release --no-fail-fast \
		-p lsmkv -p lsmkv-cli --test differential --test server -- --nocapture \
		random_scripts random_stories random_subscriptions every_event random_sequences
# A client beside attackers, on `lsmkv serve` and on redis-server in turn, on processors of their own.
siege:
	LSMKV_SIEGE=long $(CARGO) test --release -p lsmkv-cli --test server no_more_than_on_redis -- \
		--nocapture
# What ranks cost in a sorted set of a million members, also beside 20,000 updates a second.
ranks:
	LSMKV_RANK_MEMBERS=$(or $(N),1000000) $(CARGO) test --release -p lsmkv --test ranks -- --nocapture
# What changes of a string of 64 MiB cost beside one of 1 KiB, questions about it after a reopen, a bit at
# 2^32-1 and many APPENDs.
large-strings:
	LSMKV_LARGE_STRINGS=long $(LONG) string_times -- --nocapture
# The longest SET beside a rate-limited compaction of N MB, and a GET 200,000 versions back.
pauses:
	LSMKV_COMPACT_MB=$(or $(N),250) $(LONG) pauses -- --nocapture
# Memory of `lsmkv serve` under 40 million commands of ten kinds, and while it is idle for ten minutes.
memory-serve:
	LSMKV_SERVE_BUDGET=128 LSMKV_SERVE_COMMANDS=$(or $(N),40000000) LSMKV_SERVE_IDLE=600 \
		$(CARGO) test --release -p lsmkv-cli --test server memory_is_bounded -- --nocapture
torture-full-disk:
	LSMKV_FULL_DISK_MB=300 LSMKV_FULL_DISK_KILLS=$(or $(N),100) $(LONG) full_disk
	LSMKV_FULL_FROM=all $(LONG) disk_full_from
# Clusters of Redis and of Valkey whose slots move and whose primaries die under load, N times each: half
# a minute a time.
cluster: setup
	LSMKV_CLUSTER_ROUNDS=$(or $(N),50) $(CARGO) test --release -p lsmkv --test remote that_changes -- \
		--nocapture
torture-kill:
	LSMKV_KILLS=$(or $(N),100000) $(LONG) kill
# Eight processes share a store, and the holder is killed every second; one of the others must take over
# within half a second and the time of its recovery.
shared-kill:
	LSMKV_SHARED_PROCESSES=8 LSMKV_SHARED_COMMANDS=$(or $(N),1000000) LSMKV_SHARED_KILL_MS=1000 \
		$(LONG) shared kills -- --nocapture
torture-queue:
	LSMKV_QUEUE=$(or $(N),10000000) $(LONG) big queue

# The lock-free parts in every order of their threads, and a whole store in random orders
# (tests/schedules). Each compiles the library anew, with the locks and atomics of the checker; N is the
# number of seeds.
SCHEDULES := CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
	$(CARGO) test --test schedules
loom:
	CARGO_TARGET_DIR=$(TARGET)/loom RUSTFLAGS="--cfg loom" $(SCHEDULES)
shuttle:
	CARGO_TARGET_DIR=$(TARGET)/shuttle RUSTFLAGS="--cfg shuttle" LSMKV_SCHEDULES=$(or $(N),$(LSMKV_SCHEDULES),5000) \
		$(SCHEDULES)

# Undefined behaviour, by an interpreter: unit tests of the layers with unsafe code and of the codecs.
# Needs a nightly toolchain with Miri.
miri:
	scripts/miri.sh

# The same unit tests under the address and the thread sanitizer.
sanitizers:
	TARGET=$(TARGET) CARGO="$(CARGO)" scripts/sanitizers.sh

# Lines of src/ that the tests of the library and of the server run, by directory.
coverage:
	TARGET=$(TARGET) CARGO="$(CARGO)" scripts/coverage.sh

# Fuzzes every target, or those in TARGETS, for N executions each or for ten minutes, whichever ends
# first; SECONDS_EACH=0 sets no time (docs/RELIABILITY.md).
fuzz:
	TARGET=$(TARGET) CARGO="$(CARGO)" N=$(or $(N),10000000) SECONDS_EACH=$(or $(SECONDS_EACH),600) \
		scripts/fuzz.sh $(TARGETS)

# Licences, sources, bans (duplicate versions, requirements of any version, banned crates) and advisories
# of dependencies, by cargo-deny and deny.toml. Advisories need a network. CI runs scripts/licences.py
# instead, which checks all but advisories by the same file, since compiling cargo-deny takes minutes.
deny:
	command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	$(CARGO) deny --workspace check licenses bans sources
	if $(CARGO) deny fetch; then $(CARGO) deny --workspace check advisories; \
		else echo "advisories: not checked, without a network"; fi

# Writes what is generated and committed: the dispatch, the C functions of commands and the header,
# the C++ and Python methods, docs/COMMANDS.md. A test fails when one of them is stale.
generate:
	$(CARGO) run -q -p lsmkv-codegen

install: all cli
	SHARED=$(SHARED) STATIC=$(STATIC) PROGRAM=$(PROGRAM) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) \
		STRIP=$(if $(DEBUG),,$(STRIP)) scripts/install.sh

uninstall:
	PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) scripts/install.sh uninstall

clean:
	$(CARGO) clean
