// Any bytes for one reader, `--reader=NAME` of kFileReaders: an Error, or a result that lies inside
// the input.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/file_readers.h"
#include "weft/base/error.h"

namespace {

const weft::FileReader* reader = nullptr;

/// Readers of io/ alone, which need no others' counters looked through.
constexpr std::string_view kOfIo[] = {
    "bmp", "cifar",  "csv", "gguf", "gzip",        "idx", "jpeg", "jpeg2000", "json", "npy", "npz",
    "png", "pickle", "pnm", "pt",   "safetensors", "tar", "tiff", "webp",     "zip",  "zstd"};

}  // namespace

// Of counters.ld, and what shows such to libFuzzer.
extern "C" {
extern uint8_t __start_beyond_io_counters[], __stop_beyond_io_counters[];
extern uintptr_t __start_beyond_io_places[], __stop_beyond_io_places[];
void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end);
}

/// libFuzzer passes over what begins with two dashes.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--reader=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument((*argv)[i]);
    if (!argument.starts_with(kFlag)) continue;
    for (const weft::FileReader& row : weft::kFileReaders)
      if (argument.substr(kFlag.size()) == row.name) reader = &row;
  }
  if (reader == nullptr) {
    std::fprintf(stderr, "--reader=NAME: of tests/fuzz/file_readers.h\n");
    std::exit(1);
  }
  if (std::ranges::find(kOfIo, reader->name) == std::end(kOfIo)) {
    __sanitizer_cov_8bit_counters_init(__start_beyond_io_counters, __stop_beyond_io_counters);
    __sanitizer_cov_pcs_init(__start_beyond_io_places, __stop_beyond_io_places);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

/// Half of the mutations of a format with checksums have right ones.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  const size_t now = LLVMFuzzerMutate(data, size, most);
  if (reader->mend != nullptr && seed % 2 == 0)
    reader->mend(std::as_writable_bytes(std::span(data, now)));
  return now;
}

/// What is thrown makes the search for uses of stacks after a return take most of the time; with
/// ASAN_OPTIONS=detect_stack_use_after_return=1 it is on. What was freed is kept as long as an
/// input is read, and memory is not given back between inputs.
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:quarantine_size_mb=4:thread_local_quarantine_size_kb=256:"
         "allocator_release_to_os_interval_ms=-1";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    reader->read(std::as_bytes(std::span(data, size)));
  } catch (const weft::InternalError&) {
    throw;
  } catch (const weft::Error&) {
    return 0;
  }
  return 0;
}
