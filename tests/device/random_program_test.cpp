// Random linear programs over all dtypes and numbers of lanes: machine code at every level of
// instruction sets gives the interpreter's bits, and holds no instruction beyond its level.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/device/programs.h"
#include "tests/support/compiler/isa_levels.h"
#include "tests/support/device_here.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/codegen/codegen.h"
#include "weft/graph/print.h"
#include "weft/graph/schema.h"
#include "weft/graph/verify.h"
#include "weft/isa/x86.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

using testing::ProgramBuilder;

constexpr DType kData[] = {DType::Bool, DType::I8,  DType::I16, DType::I32, DType::I64,
                           DType::U8,   DType::U16, DType::U32, DType::U64, DType::F16,
                           DType::BF16, DType::F32, DType::F64};
constexpr int64_t kItems = 5;

/// Straight code with a few loops, of values with the program's number of lanes or one.
class RandomProgram {
 public:
  RandomProgram(uint64_t seed, const Target& target)
      : random_(seed), target_(target), b_(strformat("random_{}", seed)) {
    lanes_ = std::min<int64_t>(int64_t{1} << random_.below(7), target.max_lanes);
    for (int k = 0; k < 3; ++k) outputs_.push_back(random_dtype());
    for (DType d : outputs_) params_.push_back(b_.param(d, true));
    for (int k = 0; k < 4; ++k) inputs_.push_back(random_dtype());
    for (DType d : inputs_) params_.push_back(b_.param(d));
    item_ = b_.open(i32(kItems), Binding::Core);
    at_ = alu(Op::Mul, {item_, i32(lanes_)});
    for (size_t k = 0; k < inputs_.size(); ++k) values_.push_back(load(k));
    for (int64_t steps = random_.between(3, 14); steps > 0; --steps) step(true);
    for (size_t k = 0; k < outputs_.size(); ++k) store(k);
    b_.close(item_);
  }

  LinearProgram program() { return b_.build(); }
  int64_t lanes() const { return lanes_; }
  const std::vector<DType>& outputs() const { return outputs_; }
  const std::vector<DType>& inputs() const { return inputs_; }

 private:
  // A node is listed once: what is equal to one that there is, is that one.
  NodeRef once(NodeRef n) {
    if (std::find(listed_.begin(), listed_.end(), n) != listed_.end()) return n;
    listed_.push_back(n);
    return b_.push(n);
  }
  NodeRef emit(Op op, DType d, std::vector<NodeRef> src, std::vector<int64_t> ints = {},
               int lanes = 1) {
    return once(b_.node(op, d, std::move(src), std::move(ints), lanes));
  }
  NodeRef alu(Op op, const std::vector<NodeRef>& src) {
    const NodeRef like = src[op == Op::Where ? 1 : 0];
    return emit(op, has_trait(op, kBoolResult) ? DType::Bool : like->dtype, src, {}, like->lanes);
  }
  NodeRef constant(Value v) { return once(b_.graph().constant(v)); }
  NodeRef i32(int64_t v) { return constant(Value::of(DType::I32, v)); }

  DType random_dtype() { return random_.pick(kData); }
  int lanes_now() { return static_cast<int>(lanes_); }

  NodeRef load(size_t k) {
    NodeRef p = params_[outputs_.size() + k];
    NodeRef valid =
        random_.chance(20) ? alu(Op::Lt, {item_, i32(random_.below(kItems + 1))}) : nullptr;
    return b_.load(p, at_, lanes_now(), valid);
  }
  void store(size_t k) {
    NodeRef v = in(outputs_[k]);
    NodeRef valid = random_.chance(20) ? alu(Op::Le, {item_, i32(random_.below(kItems))}) : nullptr;
    b_.store(params_[k], at_, v, valid);
  }

  NodeRef any() {
    // Recent ones more often, so that chains become long.
    const auto n = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(random_.chance(50) ? random_.between(n * 2 / 3, n - 1)
                                                          : random_.below(n))];
  }
  /// A value of this dtype: one there is, else a cast or a splat.
  NodeRef in(DType d) {
    for (int tries = 0; tries < 4; ++tries)
      if (NodeRef v = any(); v->dtype == d) return v;
    if (random_.chance(15)) {
      NodeRef c = constant(Value::of(d, random_.between(is_unsigned(d) ? 0 : -3, 40)));
      return lanes_ == 1 ? c : emit(Op::Splat, d, {c}, {}, lanes_now());
    }
    NodeRef v = any();
    return v->dtype == d ? v : emit(Op::Cast, d, {v}, {}, lanes_now());
  }

  void step(bool may_loop) {
    const int64_t which = random_.below(12);
    if (which == 0 && may_loop) return loop();
    if (which == 1 && lanes_ > 1) return shuffle();
    const OpInfo& row = random_.pick(kOps);
    const DType d = any()->dtype;
    if (!is_alu(row.op) || !target_.native(row.op, d)) return step(may_loop);
    if (row.op == Op::Cast || row.op == Op::Bitcast) return convert(row.op, d);
    // What divides by 0 or asks for constants.
    if (row.op == Op::CDiv || row.op == Op::CMod || row.op == Op::ToIndex ||
        has_trait(row.op, kTable))
      return step(may_loop);
    std::vector<NodeRef> src;
    for (int k = 0; k < row.arity; ++k)
      src.push_back(in(row.op == Op::Where && k == 0 ? DType::Bool : d));
    const DType result = has_trait(row.op, kBoolResult) ? DType::Bool : d;
    const NodeSpec spec{row.op, result, src, {}, {}, static_cast<uint8_t>(lanes_)};
    if (node_problem(spec, static_cast<uint8_t>(Dialect::Linear))) return step(may_loop);
    values_.push_back(alu(row.op, src));
  }

  void convert(Op op, DType from) {
    const DType to = random_dtype();
    // The bits of a NaN are nobody's promise.
    if (op == Op::Bitcast &&
        (bits(from) != bits(to) || is_float(from) || is_bool(to) || from == to))
      return;
    if (from != to) values_.push_back(emit(op, to, {in(from)}, {}, lanes_now()));
  }

  /// Lanes in another order, of one vector or two, by way of one lane each; or only a few of them.
  void shuffle() {
    NodeRef v = any(), other = any();
    if (other->dtype != v->dtype) other = v;
    std::vector<NodeRef> picked;
    const int64_t turn = random_.below(lanes_), step = random_.chance(50) ? 1 : 3;
    const int64_t few = random_.chance(50) ? lanes_ : random_.between(2, 4);
    for (int64_t k = 0; k < lanes_; ++k) {
      const int64_t place = (k * step + turn) % few;
      picked.push_back(emit(Op::Lane, v->dtype, {place % 2 ? other : v}, {place % lanes_}));
    }
    values_.push_back(random_.chance(70) ? emit(Op::Vec, v->dtype, picked, {}, lanes_now())
                                         : emit(Op::Splat, v->dtype, {picked[0]}, {}, lanes_now()));
  }

  /// An accumulator that takes something new in every iteration.
  void loop() {
    NodeRef start = any();
    const DType d = start->dtype;
    NodeRef acc = emit(Op::Acc, d, {start}, {next_acc_}, lanes_now());
    NodeRef range = b_.open(i32(random_.between(0, 4)));
    const size_t outside = values_.size(), listed = listed_.size();
    NodeRef now = emit(Op::GetAcc, d, {acc}, {2 * next_acc_++}, lanes_now());
    values_.push_back(now);
    for (int64_t steps = random_.between(1, 3); steps > 0; --steps) step(false);
    const Op combine = random_.chance(50) ? Op::Add : Op::Max;
    NodeRef next = target_.native(combine, d) ? alu(combine, {in(d), now}) : in(d);
    emit(Op::SetAcc, DType::Void, {acc, next});
    b_.close(range);
    listed_.resize(listed);
    values_.resize(outside);  // what is computed inside stays there
    values_.push_back(emit(Op::GetAcc, d, {acc}, {2 * next_acc_ - 1}, lanes_now()));
  }

  Random random_;
  const Target& target_;
  ProgramBuilder b_;
  int64_t lanes_, next_acc_ = 0;
  std::vector<DType> outputs_, inputs_;
  std::vector<NodeRef> params_, values_, listed_;
  NodeRef item_, at_;
};

std::vector<std::byte> random_bytes(DType d, int64_t count, uint64_t seed) {
  Random random(seed);
  const auto width = static_cast<size_t>(bytes_for(d, 1));
  std::vector<std::byte> bytes(static_cast<size_t>(count) * width);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    uint64_t raw = random.next();
    const Value any = Value::load(d, &raw), few = Value::of(d, random.between(-20, 20));
    (is_bool(d)          ? Value::boolean((raw & 1) != 0)
     : random.chance(40) ? any
                         : few)
        .store(&bytes[i * width]);
  }
  return bytes;
}

using Outputs = std::vector<std::vector<std::byte>>;

Outputs run_on(Device& device, RandomProgram& random, const LinearProgram& program) {
  testing::Loaded loaded(device, {program});
  std::vector<std::shared_ptr<Buffer>> buffers;
  auto upload = [&](DType d, uint64_t seed) {
    const auto bytes = random_bytes(d, kItems * random.lanes(), seed);
    buffers.push_back(device.allocate(static_cast<int64_t>(bytes.size())));
    device.copy_in({buffers.back().get()}, bytes);
  };
  for (size_t k = 0; k < random.outputs().size(); ++k) upload(random.outputs()[k], 100 + k);
  for (size_t k = 0; k < random.inputs().size(); ++k) upload(random.inputs()[k], k);
  std::vector<BufferSlice> slices;
  for (auto& b : buffers) slices.push_back({b.get()});
  loaded.run(0, slices, {}, kItems);
  Outputs out;
  for (size_t k = 0; k < random.outputs().size(); ++k) {
    out.emplace_back(static_cast<size_t>(buffers[k]->bytes()));
    device.copy_out(out.back(), {buffers[k].get()});
  }
  return out;
}

/// The first difference as text; empty where there is none.
std::string difference(const RandomProgram& random, const Outputs& got, const Outputs& want) {
  for (size_t k = 0; k < want.size(); ++k) {
    const DType d = random.outputs()[k];
    for (int64_t i = 0; i < kItems * random.lanes(); ++i) {
      const auto at = static_cast<size_t>(bytes_for(d, i));
      const Value a = Value::load(d, &got[k][at]), b = Value::load(d, &want[k][at]);
      if (a != b && !(a.is_nan() && b.is_nan()))
        return strformat("output {}[{}] is {}, not {}", k, i, a.text(), b.text());
    }
  }
  return {};
}

void expect_level(const LinearProgram& program, const Target& target) {
  const MachineProgram code = generate_code(program, target).program;
  for (const Instruction& i : code.code)
    ASSERT_TRUE(i.form >= x86::kForms || target.cpu.contains(x86::required_features(i)))
        << x86::print(i) << " needs " << x86::required_features(i).text();
}

/// The program's values on both, where they differ.
void expect_same(uint64_t seed, Device& tested, Device& interp) {
  RandomProgram random(seed, tested.target());
  const LinearProgram program = random.program();
  try {
    verify_program(program, "test");
    if (tested.target().machine_code) expect_level(program, tested.target());
    const std::string wrong =
        difference(random, run_on(tested, random, program), run_on(interp, random, program));
    if (!wrong.empty()) ADD_FAILURE() << wrong << "\n" << print_program(program);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << print_program(program);
  }
}

void check_programs(uint64_t first, uint64_t last, const std::string& device,
                    const std::string& level = "") {
  Options options = testing::quiet_options();
  options.isa = level;
  Context context(options);
  ContextScope scope(context);
  Device& interp = context.get<DeviceTable>().open("CPU:INTERP");
  const testing::OpenedDevice tested(context, device);
  for (uint64_t seed = first; seed < last && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(strformat("{} {}, seed {}", device, level, seed));
    expect_same(seed, tested, interp);
  }
}

TEST(RandomProgram, MachineCodeGivesTheInterpretersBits) {
  for (const std::string& level : testing::isa_levels())
    check_programs(0, 300, testing::device_here("CPU:X86"), level);
}
TEST(RandomProgram, SlowMachineCode) {
  for (const std::string& level : testing::isa_levels())
    check_programs(300, 10'300, testing::device_here("CPU:X86"), level);
}
TEST(RandomProgram, PtxGivesTheInterpretersBits) { check_programs(0, 300, "PTX"); }
TEST(RandomProgram, SlowPtx) { check_programs(300, 10'300, "PTX"); }

}  // namespace
}  // namespace weft
