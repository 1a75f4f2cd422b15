# Everything by name. `make` builds the shared and the static library, optimised.

CARGO ?= cargo
CC ?= cc
CXX ?= c++
PYTHON ?= python3
PREFIX ?= /usr/local
DESTDIR ?=

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
SHARED := $(TARGET)/dist/liblsmkv.so
STATIC := $(TARGET)/static/liblsmkv.a
PROGRAM := $(TARGET)/release/lsmkv
DEMO := $(TARGET)/demo
CFLAGS ?= -O2
CXXFLAGS ?= -O2
INCLUDES := -Iinclude -Ibindings/cpp

.PHONY: all shared static cli demo test bench bench-big bench-commands bench-types bench-commits bench-server \
	torture generate install uninstall clean setup

all: shared static

# Naming the one crate type keeps link-time optimisation, which cargo drops when it builds
# several at once. Programs look for the library under its SONAME.
shared:
	$(CARGO) rustc --profile dist --lib --crate-type cdylib
	ln -sf liblsmkv.so $(SHARED).0

static:
	$(CARGO) rustc --profile static --lib --crate-type staticlib

# The program `lsmkv`: shell, server, tools.
cli:
	$(CARGO) build --release -p lsmkv-cli

# The same small program in C, C++ and Python, each on a store of its own.
demo: shared
	rm -rf $(DEMO) && mkdir -p $(DEMO)
	$(CC) $(CFLAGS) $(INCLUDES) bindings/c/quickstart.c -o $(DEMO)/c -L$(dir $(SHARED)) -llsmkv
	$(CXX) -std=c++17 $(CXXFLAGS) $(INCLUDES) bindings/cpp/quickstart.cpp -o $(DEMO)/cpp \
		-L$(dir $(SHARED)) -llsmkv
	LD_LIBRARY_PATH=$(dir $(SHARED)) $(DEMO)/c $(DEMO)/store-c
	LD_LIBRARY_PATH=$(dir $(SHARED)) $(DEMO)/cpp $(DEMO)/store-cpp
	LSMKV_LIBRARY=$(SHARED) PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 \
		$(PYTHON) bindings/python/quickstart.py $(DEMO)/store-python

# Installs what the tests need, where that can be done; else says what is missing.
setup:
	scripts/setup.sh

# Every suite in every language, and their sum.
test: setup all
	TARGET=$(TARGET) SHARED=$(SHARED) STATIC=$(STATIC) MAKE="$(MAKE)" CARGO="$(CARGO)" CC="$(CC)" \
		CXX="$(CXX)" PYTHON="$(PYTHON)" scripts/test.sh

# lsmkv and its peers, in one run: a table with ratios, bench/results/*.json and a chart.
bench:
	scripts/setup-bench.sh
	$(CARGO) run --release -p lsmkv-bench

# 5 GB under a memory budget of 256 MiB: resident memory and block reads a get.
bench-big:
	$(CARGO) run --release -p lsmkv-bench -- big

# Redis commands beside RocksDB in process and a real redis-server: bench/results/commands.json.
bench-commands:
	scripts/setup-bench.sh
	$(CARGO) run --release -p lsmkv-bench -- commands

# A hash of a million fields: deleting it, copying it, drawing from it.
bench-types:
	$(CARGO) run --release -p lsmkv-bench -- types

# Durable commits: how they share flushes of the device.
bench-commits:
	$(CARGO) run --release -p lsmkv-bench -- commits

# `lsmkv serve` beside a real redis-server that keeps its data too, by redis-benchmark.
bench-server: cli
	bench/server.sh $(PROGRAM)

# The long forms of the reliability tests (docs/RELIABILITY.md): hours. Each can be run alone.
LONG := $(CARGO) test --release --test
torture: torture-model torture-power-cut torture-io-sweep torture-corruption torture-kill \
	torture-queue torture-server
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
	LSMKV_WIRE_COMMANDS=$(or $(N),1000000) LSMKV_SERVER_KILLS=200 LSMKV_RESTART_MB=1000 \
		$(CARGO) test --release -p lsmkv-cli --test server
torture-kill:
	LSMKV_KILLS=$(or $(N),100000) $(LONG) kill
torture-queue:
	LSMKV_QUEUE=$(or $(N),10000000) $(LONG) big queue

# What is generated and committed: the header, the dispatch and the functions of regular commands,
# docs/COMMANDS.md. A build only checks them.
generate:
	LSMKV_GENERATE=1 $(CARGO) check --lib

install: all cli
	SHARED=$(SHARED) STATIC=$(STATIC) PROGRAM=$(PROGRAM) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) scripts/install.sh

uninstall:
	PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) scripts/install.sh uninstall

clean:
	$(CARGO) clean
