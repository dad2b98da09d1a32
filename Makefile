# Two words are enough: `make demo` and `make test`. Both install what is missing first.

CARGO ?= cargo
WIDTHWISE = target/release/widthwise

.DEFAULT_GOAL := help
SIM_SOURCES = $(wildcard sim/*/*.cpp sim/*/*.hpp sim/src/*/*.cpp sim/src/*/*.hpp sim/include/widthwise/sim/*.hpp \
	sim/include/widthwise/sim/*/*.hpp workloads/*/*.cpp workloads/*/*.hpp workloads/*/*.h)
# Which tests were skipped, and why.
OUTCOMES = target/test-outcomes
SOAK_SECONDS ?= 3600
# tests/all.sh has the full presets.
SIM_PRESETS ?= quick-x86-64 quick-x32 quick-i386 quick-sanitize

.PHONY: help build demo test test-all test-sim test-x32 lint soak bench doc fuzz format clean

help: ## This list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

build: ## The release binary
	@sh packaging/install.sh build
	$(CARGO) build --release --locked --package widthwise

demo: build ## Measure pugixml, a tree full of pointers, in every ABI: table on the terminal, report in HTML
	@sh packaging/install.sh demo
	$(WIDTHWISE) compare experiments/pugixml/widthwise.toml --flags=-O2 --heap=2 --max-time 1m
	$(WIDTHWISE) explain --heap x86-64/-O2 x32/-O2 --top 5

test: ## Every test, end to end, on real compilers, programs and a real browser
	@sh packaging/install.sh test
	@mkdir -p target && rm -f $(OUTCOMES)
	WIDTHWISE_OUTCOMES="$(CURDIR)/$(OUTCOMES)" $(CARGO) test --locked --workspace --no-fail-fast; \
		status=$$?; sh tests/outcomes.sh $(OUTCOMES); exit $$status
	@$(MAKE) --no-print-directory test-sim

test-all: ## `make test` and what takes longer, part by part, with a summary (PARTS="lint doc": those alone)
	@CARGO="$(CARGO)" sh tests/all.sh $(PARTS)

test-sim: ## The simulation library: the same runs in every ABI, and under the sanitizers
	@sh packaging/install.sh test-sim
	$(CARGO) build --locked --package widthwise
	cd sim && for preset in $(SIM_PRESETS); do \
		starter=; [ $$preset != quick-x32 ] || starter="$(CURDIR)/target/debug/widthwise;exec"; \
		cmake --preset $$preset "-DWIDTHWISE_EXEC=$$starter" >/dev/null && \
		cmake --build --preset $$preset --parallel 2 && ctest --preset $$preset --parallel 2 || exit 1; \
	done

test-x32: ## The x32 runtime and a kernel that has x32 (under emulation), program by program
	@sh packaging/install.sh test-x32
	WIDTHWISE_X32=all $(CARGO) test --locked --package widthwise --test oracle

soak: ## An hour of everything at once through the x32 runtime (SOAK_SECONDS=600: as long as that)
	@sh packaging/install.sh test
	WIDTHWISE_STRESS_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked --package widthwise --test oracle under_stress

lint: ## Formatting and lints of Rust, C and shell
	@sh packaging/install.sh lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	clang-format --dry-run --Werror runtime/*.h runtime/*/*.[ch] tests/programs/*.[ch] tests/x32/*.[ch] tests/x32/*.cc \
		tests/x32/*/*.[ch] tests/x32/*/*.cc bench/programs/*.c $(SIM_SOURCES)
	sh -n packaging/install.sh tests/all.sh tests/outcomes.sh sim/tests/compilers.sh

format: ## Formats everything
	@sh packaging/install.sh lint
	$(CARGO) fmt --all
	clang-format -i runtime/*.h runtime/*/*.[ch] tests/programs/*.[ch] tests/x32/*.[ch] tests/x32/*.cc \
		tests/x32/*/*.[ch] tests/x32/*/*.cc bench/programs/*.c $(SIM_SOURCES)

bench: build ## Every claim beside its peer, in one run; writes docs/benchmarks.md
	@sh packaging/install.sh bench
	$(CARGO) run --locked --release --package widthwise-bench

doc: ## The API documentation
	$(CARGO) doc --locked --workspace --no-deps

fuzz: ## One minute on each fuzz target (needs a nightly toolchain and cargo-fuzz)
	@for target in $$(cargo fuzz list); do RUSTUP_TOOLCHAIN=nightly cargo fuzz run $$target -- -max_total_time=60 || exit 1; done

clean: ## Removes what was built
	$(CARGO) clean
