// The text of every error a user can get from the tensor room.
#include <cmath>
#include <functional>
#include <span>

#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/device/device.h"
#include "weft/tensor/distributions.h"
#include "weft/tensor/einsum.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/hash.h"
#include "weft/tensor/image.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/losses.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/pooling.h"
#include "weft/tensor/products.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/selection.h"
#include "weft/tensor/statistics.h"

namespace weft {
namespace {

struct UserError {
  const char* expected;  // up to the call site
  std::function<void()> provoke;
};

Tensor f(const Dims& shape) { return Tensor::zeros(shape); }
Tensor i(const Dims& shape) { return Tensor::zeros(shape, DType::I32); }
Tensor b(const Dims& shape) { return Tensor::zeros(shape, DType::Bool); }

const UserError kErrors[] = {
    {"[tensor] this Tensor holds nothing: it was default-made or moved from; give it a value "
     "first, for example with Tensor::zeros or Tensor::of",
     [] { Tensor().sum(); }},
    {"[full] size -1 in shape (2, -1) is negative: sizes are at least 0", [] { f({2, -1}); }},
    {"[full] index is not a dtype of elements: choose bool, an integer or a float",
     [] { Tensor::full({2}, 1, DType::Index); }},
    {"[arange] from 0 to 5 by 0 never ends: give finite numbers and a step that is not 0",
     [] { Tensor::arange(0, 5, 0); }},
    {"[linspace] -1 steps: give at least 0", [] { Tensor::linspace(0, 1, -1); }},
    {"[one_hot] takes class numbers: got f32 of shape (2,); cast it to an integer dtype first",
     [] { f({2}).one_hot(3); }},
    {"[one_hot] 0 classes: give at least 1", [] { i({2}).one_hot(0); }},
    {"[tril] takes matrices: got shape (2,); give at least 2 axes", [] { f({2}).tril(); }},
    {"[from] 12 bytes of data for shape (2, 2) of f32, which takes 16",
     [] { Tensor::from(std::vector<float>{1, 2, 3}, {2, 2}); }},
    {"[reshape] (2, 3) has 6 elements but (4, 2) has 8: the products of the sizes must be equal",
     [] { f({2, 3}).reshape({4, 2}); }},
    {"[reshape] (2, 3) has 6 elements but (-1, 4) has no whole number for -1: the products of the "
     "sizes must be equal",
     [] { f({2, 3}).reshape({-1, 4}); }},
    {"[reshape] (-1, -1) has more than one -1: only one size can be computed",
     [] { f({2, 3}).reshape({-1, -1}); }},
    {"[reshape] size -2 in (-2, 3) is negative", [] { f({2, 3}).reshape({-2, 3}); }},
    {"[expand] axis 0 of (2, 3) has size 2 and cannot become 4: only sizes of 1 repeat",
     [] { f({2, 3}).expand({4, 3}); }},
    {"[expand] (3,) has fewer axes than (2, 3): expanding never removes axes",
     [] { f({2, 3}).expand({3}); }},
    {"[permute] 1 axes for shape (2, 3): list each of its 2 axes once",
     [] { f({2, 3}).permute({0}); }},
    {"[permute] axis 0 is listed twice for shape (2, 3): list each axis once",
     [] { f({2, 3}).permute({0, 0}); }},
    {"[transpose] axis 2 is out of range for shape (2, 3): it must be from -2 to 1",
     [] { f({2, 3}).transpose(0, 2); }},
    {"[shrink] 1 ranges for shape (2, 3): give (begin, end) for every axis",
     [] { f({2, 3}).shrink({{0, 2}}); }},
    {"[shrink] range (1, 4) of axis 1 is not inside shape (2, 3)",
     [] { f({2, 3}).shrink({{0, 2}, {1, 4}}); }},
    {"[flatten] first axis 1 is after last axis 0", [] { f({2, 3}).flatten(1, 0); }},
    {"[window] a window of 3 (dilation 1) does not fit axis 0 of shape (2,): it reaches over 3",
     [] { f({2}).window(0, 3); }},
    {"[window] size 1, stride 0 and dilation 1: a size must be at least 0, the others at least 1",
     [] { f({2}).window(0, 1, 0); }},
    {"[split] the sizes add up to 4 but axis 0 of shape (5,) has 5", [] { f({5}).split({2, 2}); }},
    {"[split] pieces of size 0: give at least 1", [] { f({5}).split(0); }},
    {"[chunk] 0 parts: give at least 1", [] { f({5}).chunk(0); }},
    {"[pad] 2 amounts for shape (5,): give (before, after) for every axis",
     [] { f({5}).pad({{1, 1}, {0, 0}}); }},
    {"[pad] cutting (-2, -1) from axis 0 of shape (2,) leaves less than nothing",
     [] { f({2}).pad({{-2, -1}}); }},
    {"[cat] there is nothing to join: give at least one tensor", [] { Tensor::cat({}); }},
    {"[cat] shapes (2, 3) and (2, 4) differ outside axis 0: all other sizes must be equal",
     [] { Tensor::cat({f({2, 3}), f({2, 4})}); }},
    {"[stack] shapes (2,) and (3,) differ: they must be equal",
     [] { Tensor::stack({f({2}), f({3})}); }},
    {"[repeat] 1 counts for shape (2, 3): give one per axis", [] { f({2, 3}).repeat({2}); }},
    {"[diagonal] axes 0 and -2 are the same one", [] { f({2, 3}).diagonal(0, 0, -2); }},
    {"[roll] 2 shifts for 1 axes: give one shift for each axis",
     [] { f({2, 3}).roll({1, 2}, {0}); }},
    {"[index] 2 is out of bounds for axis 0 of shape (2, 3): it must be from -2 to 1",
     [] { f({2, 3})[2]; }},
    {"[index] too many indices: 2 for shape (2,), which has 1 axes", [] { f({2})[{0, 0}]; }},
    {"[index] an index can have a single ellipsis, not 2", [] { f({2})[{kEllipsis, kEllipsis}]; }},
    {"[index] a slice step of 0 goes nowhere: use 1 or -1", [] { f({2})[{Slice(0, 2, 0)}]; }},
    {"[index] positions must be integers: got f32 of shape (2,); cast them",
     [] { f({2})[f({2})]; }},
    {"[gather] an index of shape (2,) does not fit (2, 3): the ranks must be equal, and only axis "
     "0 may be longer",
     [] { f({2, 3}).gather(0, i({2})); }},
    {"[gather] the index must be of an integer dtype: got f32 of shape (2,); cast it",
     [] { f({2}).gather(0, f({2})); }},
    {"[scatter] src of shape (3,) and index of shape (2,) must have equal shapes",
     [] { f({4}).scatter(0, i({2}), f({3})); }},
    {"[index_select] positions are 1-D: got shape (2, 2)",
     [] { f({4}).index_select(0, i({2, 2})); }},
    {"[assign] shapes (2, 3) and (4,) do not broadcast: axis -1 is 3 and 4; sizes must be equal or "
     "1, so reshape or expand one of them",
     [] { f({2, 3}).assign(f({4})); }},
    {"[assign] a value of shape (4, 2, 3) does not fit (2, 3): sizes must be equal, or 1 in the "
     "value; reshape it",
     [] { f({2, 3}).assign(f({4, 2, 3})); }},
    {"[assign] cannot write through an expanded view: several of its elements are one; write to "
     "the tensor it views, or to a copy made with contiguous()",
     [] { f({1}).expand({3}).assign(1); }},
    {"[assign] cannot write through sliding windows: several of its elements are one; write to the "
     "tensor it views, or to a copy made with contiguous()",
     [] { f({3}).window(0, 2).assign(1); }},
    {"[+] shapes (2, 3) and (4,) do not broadcast: axis -1 is 3 and 4; sizes must be equal or 1, "
     "so reshape or expand one of them",
     [] { f({2, 3}) + f({4}); }},
    {"[-] is not defined for two bools: use ^ or cast to an integer dtype",
     [] { b({2}) - b({2}); }},
    {"[-] is not defined for bool: use ~ or cast to an integer dtype", [] { -b({2}); }},
    {"[&] takes integers or bools: got f32; cast to an integer dtype first", [] { f({2}) & 1; }},
    {"[~] takes integers or bools: got f32; cast to an integer dtype first", [] { ~f({2}); }},
    {"[<<] is not defined for bool: cast to an integer dtype first", [] { b({2}) << b({2}); }},
    {"[cast] index is not a dtype of elements: choose bool, an integer or a float",
     [] { f({2}).cast(DType::Index); }},
    {"[bitcast] bits of f32 mean nothing as bool", [] { f({2}).bitcast(DType::Bool); }},
    {"[bitcast] f32 of shape (3,) cannot be seen as f64: the last axis changes its size with the "
     "width, and its bits must fill whole elements",
     [] { f({3}).bitcast(DType::F64); }},
    {"[rand] size -1 in shape (-1,) is negative: sizes are at least 0", [] { Tensor::rand({-1}); }},
    {"[eye] size -3 in shape (-3, -3) is negative: sizes are at least 0", [] { Tensor::eye(-3); }},
    {"[linspace] of bools makes no sense: choose a dtype of numbers",
     [] { Tensor::linspace(0, 1, 3, DType::Bool); }},
    {"[pow] i32 to the power -1 is no integer: cast to a float first", [] { i({2}).pow(-1); }},
    {"[sum] axis 2 is out of range for shape (2, 3): it must be from -2 to 1",
     [] { f({2, 3}).sum(2); }},
    {"[sum] axis 0 is listed twice for shape (2, 3): list each axis once",
     [] { f({2, 3}).sum({0, -2}); }},
    {"[sum] axis 0 is out of range: a tensor of shape () has no axes", [] { Tensor(1.0).sum(0); }},
    {"[max] axis 0 of shape (0,) has no elements, and there is no max of nothing",
     [] { f({0}).max(); }},
    {"[argmax] axis 1 of shape (2, 0) has no elements, and there is no argmax of nothing",
     [] { f({2, 0}).argmax(1); }},
    {"[topk] 4 of axis -1 of shape (3,): k must be from 0 to 3", [] { f({3}).topk(4); }},
    {"[matmul] inner dimensions differ: got (4, 3) and (5, 2); the last axis of the left (3) must "
     "equal the second-last axis of the right (5)",
     [] { f({4, 3}).matmul(f({5, 2})); }},
    {"[matmul] inner dimensions differ: got (4, 3) and (2,); the last axis of the left (3) must "
     "equal the only axis of the right (2)",
     [] { f({4, 3}).matmul(f({2})); }},
    {"[matmul] both operands need at least one axis: got (4, 3) and (); use * for scalars",
     [] { f({4, 3}).matmul(f({})); }},
    {"[matmul] batch axes differ: got (7, 4, 3) and (5, 3, 2); axis -3 is 7 and 5: they must be "
     "equal or 1",
     [] { f({7, 4, 3}).matmul(f({5, 3, 2})); }},
    {"[conv2d] input (1, 3, 4, 4) has 3 channels and weight (2, 2, 3, 3) takes 2 in each of 1 "
     "groups: the channels must be groups * weight.size(1), and weight.size(0) a multiple of "
     "groups",
     [] { f({1, 3, 4, 4}).conv2d(f({2, 2, 3, 3})); }},
    {"[conv2d] input (1, 3, 4, 4) and weight (2, 3, 3) must both have a batch or output axis, a "
     "channel axis and the same spatial axes",
     [] { f({1, 3, 4, 4}).conv2d(f({2, 3, 3})); }},
    {"[conv2d] stride has 3 numbers for 2 spatial axes: give one, or one per axis",
     [] { f({1, 3, 4, 4}).conv2d(f({2, 3, 3, 3}), {}, {.stride = {1, 2, 3}}); }},
    {"[conv2d] stride 0 must be at least 1 and at most 2147483648",
     [] { f({1, 3, 4, 4}).conv2d(f({2, 3, 3, 3}), {}, {.stride = 0}); }},
    {"[conv2d] padding 9223372036854775807 must lie in [-2147483648, 2147483648]",
     [] { f({1, 3, 4, 4}).conv2d(f({2, 3, 3, 3}), {}, {.padding = INT64_MAX}); }},
    {"[conv_transpose2d] output_padding -1 must be at least 0 and fit in 32 bits",
     [] { f({1, 3, 4, 4}).conv_transpose2d(f({3, 2, 3, 3}), {}, {.output_padding = -1}); }},
    {"[max_pool2d] stride 0 must be at least 1 and at most 2147483648",
     [] { f({1, 3, 4, 4}).max_pool2d({2}, {.stride = 0, .ceil_mode = true}); }},
    {"[avg_pool2d] kernel size 4294967296 must be at least 1 and fit in 32 bits",
     [] { f({1, 3, 4, 4}).avg_pool2d({int64_t{1} << 32}, {.ceil_mode = true}); }},
    {"[unfold] kernel size 0 must be at least 1 and at most 2147483648",
     [] { unfold(f({1, 3, 4, 4}), {0, 1}, {}); }},
    {"[rfft] a transform of 9223372036854775807 elements: at most 2147483647 are done",
     [] { fft::rfft(f({4}), INT64_MAX); }},
    {"[fft] needs a table of 100000007 elements: at most 67108864 are made",
     [] { fft::rfft(f({4}), 100'000'007); }},
    {"[interpolate] needs a table of 4294967296 elements: at most 67108864 are made",
     [] { interpolate(f({1, 1, 4}), {int64_t{1} << 32}, Resize::Linear); }},
    {"[conv2d] a kernel of 5 (dilation 1) reaches over 5 places, but axis 2 of the padded input "
     "(1, 3, 4, 4) has 4: pad more or use a smaller kernel",
     [] { f({1, 3, 4, 4}).conv2d(f({2, 3, 5, 5})); }},
    {"[conv_transpose2d] input (1, 3, 4, 4) has 3 channels but weight (2, 3, 3, 3) takes 2: they "
     "must be equal, and a multiple of the 1 groups",
     [] { f({1, 3, 4, 4}).conv_transpose2d(f({2, 3, 3, 3})); }},
    {"[max_pool2d] a kernel of 2 axes does not fit shape (4, 4): leave at least one axis before "
     "them",
     [] { f({4, 4}).max_pool2d(); }},
    {"[max_pool2d] kernel size 0 must be at least 1 and fit in 32 bits",
     [] { f({1, 1, 4, 4}).max_pool2d({0, 2}); }},
    {"[batchnorm] a vector of shape (2,) for 3 channels of shape (2, 3): the sizes must be equal",
     [] { f({2, 3}).batchnorm({}, {}, f({2}), f({3})); }},
    {"[dropout] the probability is 1.5: it must be from 0 to 1", [] { f({2}).dropout(1.5); }},
    {"[scaled_dot_product_attention] causal and mask together: put the causal part in the mask",
     [] {
       const Tensor m = f({2, 2});
       f({2, 2}).scaled_dot_product_attention(m, m, {.mask = &m, .causal = true});
     }},
    {"[mse_loss] predictions (2,) and targets (3,) have different shapes: they must be equal",
     [] { f({2}).mse_loss(f({3})); }},
    {"[cross_entropy] scores (2, 3) and class numbers (3,) do not fit: scores are (n, classes, "
     "...) and class numbers (n, ...)",
     [] { f({2, 3}).cross_entropy(i({3})); }},
    {"[cross_entropy] predictions (2, 3) and targets (2,) have different shapes: they must be "
     "equal",
     [] { f({2, 3}).cross_entropy(f({2})); }},
    {"[nll_loss] class numbers must be integers: got f32 of shape (2,); cast them",
     [] { f({2, 3}).nll_loss(f({2})); }},
    {"[rand] makes floating-point numbers, not i32: use randint() or cast()",
     [] { Tensor::rand({2}, DType::I32); }},
    {"[randint] the range [3, 3) is empty", [] { Tensor::randint(3, 3, {2}); }},
    {"[randint] u8 does not hold all numbers of the range [-5, 2): choose another dtype",
     [] { Tensor::randint(-5, 2, {2}, DType::U8); }},
    {"[randint] i8 does not hold all numbers of the range [0, 129): choose another dtype",
     [] { Tensor::randint(0, 129, {2}, DType::I8); }},
    {"[uniform] the range [1, 0) is empty", [] { Tensor::uniform({2}, 1, 0); }},
    {"[kaiming_uniform] shape (2,) has no inputs and outputs: give at least 2 axes",
     [] { Tensor::kaiming_uniform({2}); }},
    {"[threefry2x32] keys and counters are u32: got f32 of shape (1,)",
     [] { Tensor::threefry2x32(f({1}), f({1}), f({1}), f({1})); }},
    {"[item] shape (2,) has 2 elements: item() takes the one of a tensor that has one",
     [] { f({2}).item<float>(); }},
    {"[requires_grad_] gradients need floating-point numbers: got i32 of shape (2,); cast it first",
     [] { i({2}).requires_grad_(); }},
    {"[requires_grad_] this Tensor is a view of shape (3,): gradients belong to whole tensors; "
     "call it on the tensor that is viewed, or on contiguous()",
     [] { f({2, 3})[0].requires_grad_(); }},
    {"[backward] needs one number to start from, but the shape is (2,): reduce it with sum() or "
     "mean(), or give the upstream gradient",
     [] { f({2}).backward(); }},
    {"[backward] this value depends on no tensor with requires_grad_(); if it was realized before, "
     "its history is gone: call backward() first",
     [] { f({}).backward(); }},
    {"[backward] the upstream gradient has shape (3,) but the tensor has (2,): they must be equal",
     [] { f({2}).backward(f({3})); }},
    {"[gradient] target 0 of shape (2,) is a constant, and equal constants are one value: call "
     "requires_grad_() on it before using it",
     [] { f({}).gradient({f({2})}); }},
    {"[gradient] target 0 is a view of shape (3, 2) that this may have been computed through, or "
     "not: ask for the gradient of what is viewed, or use contiguous() of the view in its place",
     [] {
       const Tensor view = f({6}).realize().reshape({3, 2});
       view.reshape({2, 3}).sum().gradient({view});
     }},
    {"[gradient] gradients need floating-point numbers: got i32 of shape (); cast it first",
     [] { i({}).gradient({f({2})}); }},
    {"[set_grad] a gradient of shape (3,) for a tensor of shape (2,): the shapes must be equal",
     [] { f({2}).set_grad(f({3})); }},
    {"[variable] the range of n is [5, 4]: it must not be empty", [] { Variable("n", 5, 4); }},
    {"[variable] n cannot be 3: it was made for multiples of 2 in [1, 8]",
     [] { Variable("n", 1, 8, 2).bind(3); }},
    {"[shape] the size n=3 is symbolic: its number is not part of the graph; use dims(), or bind "
     "and shrink to a number first",
     [] { f({4}).shrink({{0, Variable("n", 1, 4).bind(3)}}).shape(); }},
    {"[argsort] the size of axis 0 of shape (n=3,) may change, and this needs a number: "
     "shrink_to() "
     "one, or pad_to() the largest, 4, with a value that you can tell",
     [] { f({4}).shrink({{0, Variable("n", 1, 4).bind(3)}}).argsort(); }},
    {"[vector_norm] p is nan: give a number, or an infinite one", [] { vector_norm(f({2}), NAN); }},
    {"[arange] no integer dtype holds all of these numbers: give floats",
     [] { Tensor::arange(-1, uint64_t{3} << 62, int64_t{1} << 62); }},
    {"[repeat_interleave] -1 repeats: give at least 0", [] { f({2}).repeat_interleave(-1, 0); }},
    {"[split] a piece of size -1: give at least 0", [] { f({3}).split({4, -1}); }},
    {"[shrink_to] axis 0 of shape (3,) cannot be cut to 4: pad_to() lengthens",
     [] { shrink_to(f({3}), {4}); }},
    {"[index_select] positions must be integers: got f32; cast them",
     [] { f({3}).index_select(0, f({2})); }},
    {"[masked_select] the mask must be bool: got i32 of shape (2,); compare it with 0",
     [] { masked_select(f({2}), i({2})); }},
    {"[masked_select] size -1 is negative", [] { masked_select(f({2}), b({2}), -1); }},
    {"[searchsorted] the sorted tensor needs an axis: got shape ()",
     [] { searchsorted(f({}), f({2})); }},
    {"[searchsorted] sorted (2, 3) and values (3, 1) do not fit: the sorted tensor must be 1-D or "
     "have the same axes before the last",
     [] { searchsorted(f({2, 3}), f({3, 1})); }},
    {"[take_along_axis] positions (2,) and (2, 3) must have the same number of axes",
     [] { take_along_axis(f({2, 3}), i({2}), 0); }},
    {"[index] a mask of shape (3,) does not fit (2, 3): it must have the sizes of the 1 axes that "
     "it selects from, (2,)",
     [] { f({2, 3})[b({3})]; }},
    {"[pad] 2 of axis 0 of shape (2,): it has only 1 to repeat",
     [] { pad(f({2}), {{2, 0}}, PadMode::Reflect); }},
    {"[pad] 3 amounts for shape (2,): give (before, after) for the last axes, the last first",
     [] { pads_from_last(f({2}), {1, 2, 3}); }},
    {"[pad_to] axis 0 of shape (3,) is longer than 2: shrink_to() cuts",
     [] { pad_to(f({3}), {2}); }},
    {"[shrink_to] 2 sizes for shape (3,): give one for every axis",
     [] { shrink_to(f({3}), {2, 2}); }},
    {"[meshgrid] there are no axes: give at least one tensor", [] { meshgrid({}); }},
    {"[meshgrid] axes are 1-D: got shape (2, 3)", [] { meshgrid({f({2, 3})}); }},
    {"[diag] takes a vector or a matrix: got shape (2, 2, 2)", [] { diag(f({2, 2, 2})); }},
    {"[einsum] \"ij,jk->ik\" has 2 terms for 1 operands", [] { einsum("ij,jk->ik", {f({2, 3})}); }},
    {"[einsum] \"ij->i\" names 2 axes of an operand of shape (3,)",
     [] { einsum("ij->i", {f({3})}); }},
    {"[einsum] axis j of \"ij,jk->ik\" has sizes 3 and 2 in different operands: they must be equal "
     "or 1",
     [] { einsum("ij,jk->ik", {f({2, 3}), f({2, 3})}); }},
    {"[einsum] axis i of \"ii->i\" has sizes 2 and 3 in one operand: they must be equal",
     [] { einsum("ii->i", {f({2, 3})}); }},
    {"[einsum] axis k of the result of \"ij->ik\" must be in an operand, and once in the result",
     [] { einsum("ij->ik", {f({2, 3})}); }},
    {"[einsum] '#' in \"i#\" is no axis: use letters, ',', '->' and '...'",
     [] { einsum("i#", {f({2, 3})}); }},
    {"[einsum] \"......\" has more than one ellipsis in a term",
     [] { einsum("......", {f({2})}); }},
    {"[rearrange] \"a b\" has no '->' between what is and what shall be",
     [] { rearrange(f({2, 3}), "a b"); }},
    {"[rearrange] parentheses of \"(a b -> a\" do not match",
     [] { rearrange(f({2, 3}), "(a b -> a"); }},
    {"[rearrange] \"a -> a\" does not have the 2 axes of shape (2, 3) on its left",
     [] { rearrange(f({2, 3}), "a -> a"); }},
    {"[rearrange] axis c on the right of \"a b -> a c\" is not on its left, or twice on the right",
     [] { rearrange(f({2, 3}), "a b -> a c"); }},
    {"[rearrange] axis b of \"a b -> a\" is not on its right",
     [] { rearrange(f({2, 3}), "a b -> a"); }},
    {"[rearrange] an axis of size 3 cannot be split as \"a (b c) -> a b c\" says: the sizes given "
     "make 2",
     [] { rearrange(f({2, 3}), "a (b c) -> a b c", {{"b", 2}}); }},
    {"[rearrange] sizes of b and c in \"a (b c) -> a b c\" are not known: give one of them",
     [] { rearrange(f({2, 3}), "a (b c) -> a b c"); }},
    {"[max_unpool2d] values (1, 1, 2, 2) and positions (1, 1, 2) must have equal shapes",
     [] { max_unpool2d(f({1, 1, 2, 2}), i({1, 1, 2})); }},
    {"[max_unpool2d] 1 output sizes for 2 spatial axes",
     [] { max_unpool2d(f({1, 1, 2, 2}), i({1, 1, 2, 2}), {2, 2}, {}, {4}); }},
    {"[adaptive_avg_pool] 2 sizes for shape (2, 3): leave at least one axis before them",
     [] { adaptive_avg_pool(f({2, 3}), {1, 1}); }},
    {"[adaptive_max_pool] shape (2, 0) cannot be pooled to size 1: both must have elements",
     [] { adaptive_max_pool(f({2, 0}), {1}); }},
    {"[interpolate] 3 sizes for shape (2, 3)", [] { interpolate(f({2, 3}), {1, 1, 1}); }},
    {"[interpolate] axis 1 of shape (2, 0) cannot be resized to 3: both must have elements",
     [] { interpolate(f({2, 0}), {3}); }},
    {"[grid_sample] an image (1, 2, 3) and a grid (1, 2, 2, 2) do not fit: they are (n, c, h, w) "
     "and "
     "(n, oh, ow, 2)",
     [] { grid_sample(f({1, 2, 3}), f({1, 2, 2, 2})); }},
    {"[unfold] a kernel of 2 axes does not fit shape (2, 3): it is (n, c, spatial...)",
     [] { unfold(f({2, 3}), {2, 2}); }},
    {"[fold] columns (1, 3, 4) and a kernel of 4 elements do not fit: they are (n, c * kernel, "
     "places), and there is a size for every axis of the kernel",
     [] { fold(f({1, 3, 4}), {3, 3}, {2, 2}); }},
    {"[fold] columns (1, 4, 5) do not come from an image of shape (1, 1, 3, 3), which has (1, 4, "
     "4)",
     [] { fold(f({1, 4, 5}), {3, 3}, {2, 2}); }},
    {"[center_crop] (4, 1) cannot be cut from shape (3, 3)", [] { center_crop(f({3, 3}), 4, 1); }},
    {"[random_crop] images are (n, c, h, w): got shape (3, 3)",
     [] { random_crop(f({3, 3}), 1, 1); }},
    {"[cutmix] (4, 4) cannot be cut from images of shape (1, 1, 3, 3)",
     [] { cutmix(f({1, 1, 3, 3}), f({1, 2}), 4); }},
    {"[huber_loss] delta is 0: it must be above 0", [] { huber_loss(f({2}), f({2}), 0); }},
    {"[smooth_l1_loss] beta is -1: it must not be negative",
     [] { smooth_l1_loss(f({2}), f({2}), -1); }},
    {"[kl_div] shape () has no axis of samples",
     [] { kl_div(f({}), f({}), Reduction::Mean, false, true); }},
    {"[cross_entropy] weights of shape (2,) for 3 classes: give one for each class",
     [] { cross_entropy(f({2, 3}), i({2}), {.weight = f({2})}); }},
    {"[binary_crossentropy] pos_weight is for logits: multiply the target's part by weight",
     [] { binary_crossentropy(f({2}), f({2}), {.pos_weight = f({})}); }},
    {"[det] takes square matrices: got shape (2, 3)", [] { linalg::det(f({2, 3})); }},
    {"[qr] takes matrices: got shape (2,); give at least 2 axes", [] { linalg::qr(f({2})); }},
    {"[svd] needs floating-point numbers: got i32 of shape (2, 2); cast it first",
     [] { linalg::svd(i({2, 2})); }},
    {"[solve] matrices (2, 2) and right sides (3,) do not fit: both must have the same number of "
     "rows",
     [] { linalg::solve(f({2, 2}), f({3})); }},
    {"[trace] takes matrices: got shape (2,)", [] { linalg::trace(f({2})); }},
    {"[newton_schulz] -1 steps: give at least 0 and at most 1000",
     [] { linalg::newton_schulz(f({2, 2}), -1); }},
    {"[scaled_dot_product_attention] a window of -1 positions",
     [] { f({2, 2}).scaled_dot_product_attention(f({2, 2}), f({2, 2}), {.window = -1}); }},
    {"[keccak] takes bytes along the last axis: got f32 of shape (2,); cast or view them as u8",
     [] { keccak(f({2})); }},
    {"[keccak] \"md5\" is none of sha3_224, sha3_256, sha3_384, sha3_512, shake_128 and shake_256",
     [] { keccak(f({2}).cast(DType::U8), "md5"); }},
    {"[keccak] sha3_256 gives 32 bytes, not 5",
     [] { keccak(f({2}).cast(DType::U8), "sha3_256", 5); }},
    {"[keccak] a rate of 7, a suffix of 6 and 1 bytes: the rate is a multiple of 8 below 200, the "
     "suffix from 1 to 127",
     [] { keccak(f({2}).cast(DType::U8), 7, 6, 1); }},
    {"[sha256] takes bytes along the last axis: got i32 of shape (); cast or view them as u8",
     [] { sha256(i({})); }},
    {"[fft] takes complex numbers, whose last axis has size 2: got shape (3,)",
     [] { fft::fft(f({3})); }},
    {"[rfft] a transform of 0 elements: give at least 1", [] { fft::rfft(f({0})); }},
    {"[stft] a window of shape (3,) for frames of 4",
     [] { fft::stft(f({9}), 4, {.window = f({3})}); }},
    {"[stft] frames of 0 samples, 0 apart", [] { fft::stft(f({9}), 0); }},
    {"[stft] takes samples along the last axis: got shape ()", [] { fft::stft(f({}), 4); }},
    {"[istft] spectra of shape (4, 5, 2) are not of frames of 8: they are (..., 5, frames, 2)",
     [] { fft::istft(f({4, 5, 2}), 8); }},
    {"[fold] columns (1, 4, 3) and a kernel of 0 elements do not fit: they are (n, c * kernel, "
     "places), and there is a size for every axis of the kernel",
     [] { fold(f({1, 4, 3}), {2}, {0}); }},
    {"[hann_window] a window of -1 samples", [] { fft::hann_window(-1); }},
    {"[hann_window] needs a table of 2147483648 elements: at most 67108864 are made",
     [] { fft::hann_window(int64_t{1} << 31); }},
    {"[adaptive_pool] needs a table of 67108865 elements: at most 67108864 are made",
     [] { adaptive_avg_pool(f({2, 3}), {(1 << 26) + 1}); }},
    {"[multinomial] weights are (classes) or (rows, classes): got shape ()",
     [] { multinomial(f({})); }},
    {"[multinomial] 4 samples of 3 classes: give at least 0, and with replacement if more than "
     "there "
     "are",
     [] { multinomial(f({3}), 4); }},
    {"[exponential] the rate is 0: it must be above 0", [] { exponential({2}, 0); }},
    {"[gumbel] makes floating-point numbers, not i32", [] { gumbel({2}, 0, 1, DType::I32); }},
    {"[gamma] the rate is -1: it must be above 0", [] { gamma(f({2}), -1); }},
    {"[gumbel_softmax] the temperature is 0: it must be above 0",
     [] { gumbel_softmax(f({2}), 0); }},
    {"[rearrange] a size 4 is given for axis c, which is not on the left of \"a b -> b a\"",
     [] { rearrange(f({2, 3}), "a b -> b a", {{"c", 4}}); }},
    {"[median] axis 0 of shape (0,) has no elements: there is none to choose",
     [] { median(f({0})); }},
    {"[kthvalue] k is 4 for axis -1 of shape (3,): it must be from 1 to 3",
     [] { kthvalue(f({3}), 4); }},
    {"[quantile] q has shape (1, 1): give a number, or a list of them",
     [] { quantile(f({3}), f({1, 1})); }},
    {"[bincount] counts 1-D integers: got f32 of shape (2,)", [] { bincount(f({2})); }},
    {"[bincount] weights (3,) for elements (2,): give one for each",
     [] { bincount(i({2}), f({3})); }},
    {"[bincount] -1 bins: give at least 0", [] { bincount(i({2}), {}, -1); }},
    {"[bincount] an element is -2: they must not be negative",
     [] { bincount(Tensor::of({1, -2})); }},
    {"[histc] takes floats: got i32", [] { histc(i({2})); }},
    {"[histc] 0 bins: give at least 1", [] { histc(f({2}), 0); }},
    {"[histc] a range from 1 to 0: give the lower end first", [] { histc(f({2}), 1, 1, 0); }},
    {"[cov] takes variables (n, observations): got shape (1, 1, 1)", [] { cov(f({1, 1, 1})); }},
    {"[diff] -1 times: give at least 0", [] { diff(f({2}), -1); }},
    {"[tensor_split] 0 parts: give at least 1", [] { tensor_split(f({2}), 0); }},
    {"[tensor_split] 4294967296 parts: a list of more than 16777216 tensors does not fit into "
     "memory",
     [] { tensor_split(f({0}), int64_t{1} << 32); }},
    {"[rot90] axes 0 and -2 are the same one", [] { rot90(f({2, 2}), 1, 0, -2); }},
    {"[diag_embed] axes 0 and -3 are the same one", [] { diag_embed(f({2, 2}), 0, 0, -3); }},
    {"[block_diag] there is nothing to join: give at least one tensor", [] { block_diag({}); }},
    {"[block_diag] takes matrices: got shape (1, 1, 1)", [] { block_diag({f({1, 1, 1})}); }},
    {"[vander] takes a 1-D tensor: got shape (1, 1)", [] { vander(f({1, 1}), 2); }},
    {"[vander] -1 columns: give at least 0", [] { vander(f({1}), -1); }},
    {"[tensordot] 1 axes and 2: give as many of both tensors",
     [] { tensordot(f({2, 2}), f({2, 2}), Ints(0), Ints{0, 1}); }},
    {"[tensordot] axis -2 is listed twice",
     [] { tensordot(f({2, 2}), f({2, 2}), Ints{0, -2}, Ints{0, 1}); }},
    {"[tensordot] axis 0 of shape (2, 3) and axis 1 of shape (2, 3) differ: they must be equal",
     [] { tensordot(f({2, 3}), f({2, 3}), Ints(0), Ints(1)); }},
    {"[tensordot] 3 axes of shapes (2, 2) and (2, 2): give 0 to 2",
     [] { tensordot(f({2, 2}), f({2, 2}), 3); }},
    {"[cross] axis -1 of shapes (2,) and (2,) must be of size 3", [] { cross(f({2}), f({2})); }},
    {"[cdist] rows of (2, 3) and (2, 4): both need two axes at least, and rows of one length",
     [] { cdist(f({2, 3}), f({2, 4})); }},
    {"[index_add] positions are 1-D integers: got f32 of shape (2,)",
     [] { index_add(f({2}), 0, f({2}), f({2})); }},
    {"[index_copy] src (3,) for 2 positions along axis 0 of shape (4,): it must be (2,)",
     [] { index_copy(f({4}), 0, i({2}), f({3})); }},
    {"[index_fill] the value has shape (1,): give a number",
     [] { index_fill(f({2}), 0, i({1}), f({1})); }},
    {"[masked_scatter] the mask must be bool: got f32 of shape (2,); compare it with 0",
     [] { masked_scatter(f({2}), f({2}), f({2})); }},
    {"[masked_scatter] 1 elements for 2 places where the mask is true",
     [] { masked_scatter(f({2}), f({2}) == 0, f({1})); }},
    {"[pixel_shuffle] shape (3, 1, 1) by 2: give (..., channels, h, w) with channels in 4s",
     [] { pixel_shuffle(f({3, 1, 1}), 2); }},
    {"[pixel_unshuffle] shape (1, 3, 2) by 2: give (..., channels, h, w) in multiples of 2",
     [] { pixel_unshuffle(f({1, 3, 2}), 2); }},
    {"[channel_shuffle] channels of shape (1, 3) are not 2 groups",
     [] { channel_shuffle(f({1, 3}), 2); }},
    {"[affine_grid] theta (1, 3, 3) must be (n, 2, 3)", [] { affine_grid(f({1, 3, 3}), 2, 2); }},
    {"[affine_grid] an image of 0 x 2", [] { affine_grid(f({1, 2, 3}), 0, 2); }},
};

/// Of values that lie where the host can look at them before anything runs.
const UserError kErrorsOfValues[] = {
    {"[multinomial] no class of a row has a weight above 0: give at least one",
     [] { multinomial(Tensor::of({{1.0f, 2.0f}, {0.0f, -1.0f}}), 1, true); }},
    {"[multinomial] 2 samples without replacement where 1 classes have a weight above 0: give at "
     "most "
     "as many",
     [] { multinomial(Tensor::of({{1.0f, 2.0f}, {0.0f, 3.0f}}), 2); }},
    {"[cross_entropy] class number 3 is out of bounds for 3 classes: it must be from 0 to 2, or "
     "-100, "
     "which is ignored",
     [] { f({2, 3}).cross_entropy(Tensor::of({-100, 3})); }},
    {"[nll_loss] class number -1 is out of bounds for 3 classes: it must be from 0 to 2",
     [] { nll_loss(f({2, 3}), Tensor::of({0, -1}), {.ignore_index = {}}); }},
    {"[index] position 3 is out of bounds for axis 1 of shape (2, 3): it must be from -3 to 2",
     [] { f({2, 3})[{0, Tensor::of({0, 3})}]; }},
    {"[scatter] position -4 is out of bounds for axis 1 of shape (2, 3): it must be from -3 to 2",
     [] { index_add(f({2, 3}), 1, Tensor::of({2, -4}), f({2, 2})); }},
    {"[scatter] position 5 is out of bounds for axis 0 of shape (2, 3): it must be from -2 to 1",
     [] { index_copy(f({2, 3}), 0, Tensor::of({1, 5}), f({2, 3})); }},
    {"[one_hot] class number -1 is out of bounds for 3 classes: it must be from 0 to 2",
     [] { Tensor::of({-1}).one_hot(3); }},
};

class TensorErrors : public ::testing::Test {
 protected:
  Context context_;
  ContextScope scope_{context_};
};

void expect_error(const std::string& expected, const std::function<void()>& provoke) {
  const std::string message = message_of(provoke);
  const size_t site = message.rfind(" (errors/tensor_errors_test.cpp:");
  EXPECT_NE(site, std::string::npos) << "no call site in: " << message;
  EXPECT_EQ(message.substr(0, site), expected);
}

void expect_errors(std::span<const UserError> all) {
  for (const UserError& e : all) expect_error(e.expected, e.provoke);
}

TEST_F(TensorErrors, SayWhatIsWrongAndWhatToDo) { expect_errors(kErrors); }

TEST_F(TensorErrors, NameTheDevicesThatExist) {
  std::string names;
  for (const std::string_view name : context_.get<DeviceTable>().names())
    names += (names.empty() ? "" : ", ") + std::string(name);
  expect_error("[device] there is no device \"tpu\"; did you mean CPU?; devices are " + names,
               [] { f({4}).to("tpu"); });
}

TEST_F(TensorErrors, SayWhatIsWrongWithValues) {
  if (testing::simulated()) GTEST_SKIP() << "values in a device's memory are not looked at";
  expect_errors(kErrorsOfValues);
}

}  // namespace
}  // namespace weft
