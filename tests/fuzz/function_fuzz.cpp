// Captured functions: whatever the bytes, they are refused when read or when called, or run.
#include <cstdint>
#include <new>
#include <span>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/io/functions.h"
#include "weft/tensor/access.h"

namespace weft {
namespace {

// The interpreter is compiled with the sanitizers, which see what a kernel reads and writes, and it
// can be ended: a graph may ask for any amount of work.
constexpr int64_t kMemoryCap = 64 << 20, kMostElements = 1 << 12;
constexpr int kMostQuestions = 64, kCalls = 2;  // the first call captures, the second replays

struct TooLong {};
struct TooLarge {};

Options bounded() {
  Options options;
  options.dev = "CPU:INTERP";
  options.threads = 1;
  options.memory_cap = kMemoryCap;
  return options;
}

/// Ones in the form that the function was captured with.
Tensor argument(const CapturedFunction::Place& place) {
  const Dims dims = dims_of(place.form.get());
  int64_t elements = 1;
  for (const Dim& d : dims)
    if (d.max() > kMostElements || (elements *= std::max<int64_t>(d.max(), 1)) > kMostElements)
      throw TooLarge();
  const Tensor whole = Tensor::ones(dims, place.form.get()->dtype).contiguous().realize();
  return place.view ? TensorAccess::view(whole, place.view.get()) : whole;
}

void call(const CapturedFunction& f) {
  std::vector<Tensor> arguments, results(f.results.size());
  for (size_t i = 0; i < f.arguments; ++i) arguments.push_back(argument(f.places[i]));
  JitState state(f.name, CallSite::here());
  state.load(f);
  for (int i = 0; i < kCalls; ++i) {
    TensorVisitor& given = state.arguments();
    for (const auto& [name, text] : f.constants) given.constant(name, text);
    for (const auto& [name, size] : f.sizes) given.size(name, Dim(size.get()));
    for (size_t k = 0; k < arguments.size(); ++k) given.tensor(f.places[k].name, arguments[k]);
    detail::visit("result", results, state.results());
    state.call_loaded();
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft;
  Context context(bounded());
  const ContextScope scope(context);
  int asked = 0;
  context.get<InterruptCheck>().ask = [&asked] {
    if (++asked > kMostQuestions) throw TooLong();
  };
  try {
    call(parse_function(std::as_bytes(std::span(data, size)), "fuzz"));
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  } catch (const TooLong&) {
  } catch (const TooLarge&) {}
  return 0;
}
