// Elementwise operations: the functions of ops.def and derived.def by themselves, operators by
// hand.
#include "weft/c/functions.h"
#include "weft/tensor/transforms.h"

namespace weft::c {

namespace {

#define WEFT_WORDS(...) #__VA_ARGS__
#define WEFT_DECLARED(...) "x, " WEFT_WORDS(__VA_ARGS__)
#define WEFT_ARGS(...) __VA_ARGS__

Tensor rsub(const Tensor& x, const Operand& other) { return other - x; }
Tensor rdiv(const Tensor& x, const Operand& other) { return other / x; }
Tensor lt(const Tensor& x, const Operand& other) { return x < other; }
Tensor le(const Tensor& x, const Operand& other) { return x <= other; }
Tensor gt(const Tensor& x, const Operand& other) { return x > other; }
Tensor ge(const Tensor& x, const Operand& other) { return x >= other; }

constexpr Function kFunctions[] = {
#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, value, doc, ...) \
  row<&Tensor::method>(#method, WEFT_DECLARED(WEFT_PARAMS_##group), doc),
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
#define WEFT_DERIVED(name, declared, params, doc, ...) \
  row<&Tensor::name>(#name, WEFT_DECLARED(WEFT_ARGS declared), doc),
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
    row<rsub>("rsub", "x, other", "other - x"),
    row<rdiv>("rdiv", "x, other", "other / x"),
    row<lt>("lt", "x, other", "x < other"),
    row<le>("le", "x, other", "x <= other"),
    row<gt>("gt", "x, other", "x > other"),
    row<ge>("ge", "x, other", "x >= other"),
    row<&Tensor::floor_div>("floor_div", "x, other"),
    row<&Tensor::pow>("pow", "x, exponent"),
    row<&Tensor::where>("where", "condition, a, b"),
    row<&Tensor::trunc>("trunc", "x"),
    row<&Tensor::cast>("cast", "x, dtype"),
    row<&Tensor::bitcast>("bitcast", "x, dtype"),
    row<&Tensor::clamp>("clamp", "x, low, high"),
    row<&Tensor::clamp_min>("clamp_min", "x, low"),
    row<&Tensor::clamp_max>("clamp_max", "x, high"),
    row<&Tensor::detach>("detach", "x"),
    row<&Tensor::contiguous>("contiguous", "x"),
    row<contiguous_backward>("contiguous_backward", "x"),
    row<&Tensor::to>("to", "x, device"),
};

}  // namespace

std::span<const Function> elementwise_functions() { return kFunctions; }

}  // namespace weft::c
