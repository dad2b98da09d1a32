# Two words are enough: `make demo` and `make test`. Both install what is missing first.

CARGO ?= cargo
WIDTHWISE = target/release/widthwise

.DEFAULT_GOAL := help
# A machine that builds once keeps nothing for a second build. Fewer units of code repeat less of the generic code.
ifdef CI
export CARGO_INCREMENTAL = 0
export CARGO_PROFILE_DEV_CODEGEN_UNITS = 4
endif
SIM_SOURCES = $(wildcard sim/*/*.cpp sim/*/*.hpp sim/src/*/*.cpp sim/src/*/*.hpp sim/include/widthwise/sim/*.hpp \
	sim/include/widthwise/sim/*/*.hpp workloads/*/*.c workloads/*/*.cpp workloads/*/*.hpp workloads/*/*.h)
# Which tests were skipped, and why.
OUTCOMES = target/test-outcomes
# These crates are optimised for the tests of programs (Cargo.toml). Their unit tests run as fast without, and compile in a fourth
# of the time. The program's package is named for its features of other crates, which would be compiled anew without them.
OPTIMISED = widthwise-heap-log widthwise-proc
UNIT_TESTS = --workspace $(OPTIMISED:%=--exclude %) --lib
UNOPTIMISED_UNIT_TESTS = --package widthwise $(OPTIMISED:%=--package %) --lib $(OPTIMISED:%=--config profile.dev.package.%.opt-level=0)
# Cargo's tests in four groups: those of the program, of the x32 runtime, of the libraries, and those that need the CPUs for
# themselves. The first and the last take no other group beside them, which would take the CPU from tests that watch programs. The
# runtime waits for an emulated kernel most of the time. tests/architecture.rs compares this list with the workspace.
PROGRAM_TESTS = --workspace --test command_line
RUNTIME_TESTS = --workspace --test oracle
LIBRARY_TESTS = --workspace --bins --test abis --test archives --test files --test headers --test honesty --test place \
	--test quick --test reports --test requests --test verdicts
MACHINE_TESTS = --workspace --test known_truth --test pipelined --test whole_machine
# Those that are marked `ignore` take long. `make test` lists them, `make test-all` runs them.
LONG_TESTS = --workspace $(filter-out --workspace --bins,$(PROGRAM_TESTS) $(RUNTIME_TESTS) $(LIBRARY_TESTS) $(MACHINE_TESTS)) \
	-- --ignored
# MAKEFLAGS would hand on make's jobs to the `make` of a test.
RUN_TESTS = WIDTHWISE_OUTCOMES="$(CURDIR)/$(OUTCOMES)" MAKEFLAGS= $(CARGO) test --locked --no-fail-fast
# What starts x32 programs. `make test` has built it with the features of the whole workspace; alone it has fewer, and would be built anew.
BUILD_STARTER = $(CARGO) build --locked --package widthwise
# Many tests wait: for a program that sleeps, a machine that boots, a browser.
TEST_THREADS ?= $(shell expr 2 '*' $$(nproc))
SOAK_SECONDS ?= 3600
# tests/all.sh has the full presets.
SIM_PRESETS ?= quick-x86-64 quick-x32 quick-i386 quick-sanitize

# In x86-64 one store is used by programs of every ABI at once; tests/all.sh has all tests in each of them.
WINDOW_PRESETS ?= x86-64 x32 i386 sanitize thread
WINDOW_SOURCES = $(wildcard window/*/*.[ch] window/*/*.cpp window/include/widthwise/*)

.PHONY: help build demo test test-all test-long run-runtime run-crates build-tests build-sim build-window test-sim test-window test-x32 lint soak bench doc fuzz format clean

help: ## This list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

build: ## The release binary
	@sh packaging/install.sh build
	$(CARGO) build --release --locked --package widthwise

demo: build ## Measure pugixml, a tree full of pointers, in every ABI: table on the terminal, report in HTML
	@sh packaging/install.sh demo
	$(WIDTHWISE) compare experiments/pugixml/widthwise.toml --flags=-O2 --heap=2 --max-time 1m
	$(WIDTHWISE) explain --heap x86-64/-O2 x32/-O2 --top 5

test: ## The tests, end to end, on real compilers, programs and a real browser
	@sh packaging/install.sh test
	@sh packaging/install.sh test-sim
	@sh packaging/install.sh test-window
	@$(MAKE) --no-print-directory --jobs=3 build-tests build-sim build-window
	@mkdir -p target && rm -f $(OUTCOMES) && echo 0 >target/test-status
	RUST_TEST_THREADS=$(TEST_THREADS) $(RUN_TESTS) $(PROGRAM_TESTS) || echo 1 >target/test-status
	@$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target run-runtime run-crates test-sim test-window \
		BUILD_STARTER= || echo 1 >target/test-status
	RUST_TEST_THREADS=$(TEST_THREADS) $(RUN_TESTS) $(MACHINE_TESTS) || echo 1 >target/test-status
	@MAKEFLAGS= $(CARGO) test --locked --quiet $(LONG_TESTS) --list | sh tests/outcomes.sh $(OUTCOMES)
	@exit $$(cat target/test-status)

# The part `more` of tests/all.sh.
test-long:
	MAKEFLAGS= $(CARGO) test --locked --no-fail-fast $(LONG_TESTS)

run-runtime:
	RUST_TEST_THREADS=$(TEST_THREADS) $(RUN_TESTS) $(RUNTIME_TESTS)

run-crates:
	@status=0; for tests in "$(UNIT_TESTS)" "$(UNOPTIMISED_UNIT_TESTS)" "$(LIBRARY_TESTS)" "--workspace --doc"; do \
		RUST_TEST_THREADS=$(TEST_THREADS) $(RUN_TESTS) $$tests || status=1; \
	done; exit $$status

# The tests' programs, beside each other: while cargo waits for one crate, a CPU is free. MAKEFLAGS would hand on make's jobs.
build-tests:
	@for tests in "--workspace --bins --test *" "$(UNIT_TESTS)" "$(UNOPTIMISED_UNIT_TESTS)"; do \
		set -f; MAKEFLAGS= $(CARGO) test --locked --no-run $$tests || exit 1; \
	done

build-sim:
	@sh packaging/install.sh test-sim
	cd sim && for preset in $(SIM_PRESETS); do \
		starter=; [ $$preset != quick-x32 ] || starter="$(CURDIR)/target/debug/widthwise;exec"; \
		cmake --preset $$preset "-DWIDTHWISE_EXEC=$$starter" >/dev/null && \
		nice cmake --build --preset $$preset --parallel 2 || exit 1; \
	done

build-window:
	@sh packaging/install.sh test-window
	cd window && for preset in $(WINDOW_PRESETS); do \
		starter=; [ $$preset != x32 ] || starter="$(CURDIR)/target/debug/widthwise;exec"; \
		cmake --preset $$preset "-DWIDTHWISE_EXEC=$$starter" "-DWIDTHWISE_X32_EXEC=$(CURDIR)/target/debug/widthwise;exec" \
			$(WINDOW_OPTIONS) >/dev/null && \
		nice cmake --build --preset $$preset --parallel 2 || exit 1; \
	done

test-all: ## `make test` and what takes longer, part by part, with a summary (PARTS="lint doc": those alone)
	@CARGO="$(CARGO)" sh tests/all.sh $(PARTS)

test-sim: build-sim ## The simulation library: the same runs in every ABI, and under the sanitizers
	$(BUILD_STARTER)
	cd sim && for preset in $(SIM_PRESETS); do ctest --preset $$preset --parallel 2 || exit 1; done

test-window: build-window ## The library of windows beyond 4 GiB: in every ABI, and under the sanitizers
	$(BUILD_STARTER)
	cd window && for preset in $(WINDOW_PRESETS); do ctest --preset $$preset --parallel 2 || exit 1; done

test-x32: ## The x32 runtime and a kernel that has x32 (under emulation), program by program
	@sh packaging/install.sh test-x32
	WIDTHWISE_X32=all $(CARGO) test --locked --package widthwise --test oracle

soak: ## An hour of everything at once through the x32 runtime (SOAK_SECONDS=600: as long as that)
	@sh packaging/install.sh test
	WIDTHWISE_STRESS_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked --package widthwise --test oracle under_stress

lint: ## Formatting and lints of Rust, C, C++ and shell
	@sh packaging/install.sh lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	clang-format --dry-run --Werror runtime/*.h runtime/*/*.[ch] tests/programs/*.[ch] tests/x32/*.[ch] tests/x32/*.cc \
		tests/x32/*/*.[ch] tests/x32/*/*.cc bench/programs/*.c $(SIM_SOURCES) $(WINDOW_SOURCES)
	sh -n packaging/install.sh packaging/fetch.sh tests/all.sh tests/outcomes.sh sim/tests/compilers.sh window/tests/abis.sh window/tests/package.sh

format: ## Formats everything
	@sh packaging/install.sh lint
	$(CARGO) fmt --all
	clang-format -i runtime/*.h runtime/*/*.[ch] tests/programs/*.[ch] tests/x32/*.[ch] tests/x32/*.cc \
		tests/x32/*/*.[ch] tests/x32/*/*.cc bench/programs/*.c $(SIM_SOURCES) $(WINDOW_SOURCES)

bench: build ## Every claim, compared with another tool, in one run; writes docs/benchmarks.md
	@sh packaging/install.sh bench
	$(CARGO) run --locked --release --package widthwise-bench

doc: ## The API documentation
	$(CARGO) doc --locked --workspace --no-deps

fuzz: ## One minute on each fuzz target (needs a nightly toolchain and cargo-fuzz)
	@for target in $$(cargo fuzz list); do RUSTUP_TOOLCHAIN=nightly cargo fuzz run $$target -- -max_total_time=60 || exit 1; done

clean: ## Removes what was built
	$(CARGO) clean
