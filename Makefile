# The front door: `make demo` from nothing, `make test` after a change.
.PHONY: help setup build test slow demo bench format check size ci clean

help:
	@echo "make setup   install the Debian packages that are missing"
	@echo "make build   build/release/weft"
	@echo "make test    build and run the fast tests"
	@echo "make slow    the long tests"
	@echo "make demo    set up, build the command, train a network on Fashion-MNIST, show its curves"
	@echo "make bench   the benchmarks"
	@echo "make format  put every file in style;  make check  layers, style, sizes"
	@echo "make ci      everything a change must pass"

setup:
	tools/setup

build/%/build.ninja:
	cmake --preset $*

build: build/release/build.ninja
	cmake --build --preset release

test: build
	ctest --test-dir build/release -L fast -j $$(nproc) --output-on-failure
	@tools/skipped build/release

slow: build
	ctest --test-dir build/release -L slow --output-on-failure

# The command alone, built the quick way.
demo:
	tools/setup --demo
	cmake --preset demo
	cmake --build --preset demo
	build/demo/weft train fashion-mnist --epochs 2 --plot build/demo/curves.svg
	@echo "curves: build/demo/curves.svg; build/demo/weft --help shows what else it can do"

bench: build
	for what in schedule compile dispatch elementwise reduce gemm; do build/release/weft bench $$what; done

format:
	tools/format

check:
	tools/check_layers
	tools/format --check
	tools/size --check

size:
	tools/size

ci:
	.ci/run

clean:
	rm -rf build
