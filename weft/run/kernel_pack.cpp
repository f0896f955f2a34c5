#include "weft/run/kernel_pack.h"

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/reader.h"
#include "weft/base/version.h"
#include "weft/graph/binary.h"
#include "weft/target/target.h"

namespace weft {
namespace {

// Layout: bytes of a graph file and the file, whose roots are all expressions and variables in the
// order in which kernels have them; then each kernel: name, params, numbers, code.
enum Presence : uint8_t { kAbsent, kPresent };

class Packer {
 public:
  std::string pack(std::span<const Translation* const> kernels) {
    for (const Translation* t : kernels) add(*t);
    const std::vector<std::byte> graph = write_graph(roots_);
    std::string head;
    std::swap(head, out_);
    number(static_cast<uint64_t>(graph.size()));
    out_.append(reinterpret_cast<const char*>(graph.data()), graph.size());
    return std::move(out_) + head;
  }

 private:
  void add(const Translation& t) {
    const LinearProgram& p = t.program;
    text(p.name);
    number(static_cast<uint32_t>(p.params.size()));
    for (const ProgramParam& param : p.params) {
      number(static_cast<uint8_t>(param.dtype));
      number(static_cast<uint8_t>((param.read ? 1 : 0) | (param.written ? 2 : 0)));
    }
    number(static_cast<uint32_t>(p.variables.size()));
    roots_.insert(roots_.end(), p.variables.begin(), p.variables.end());
    root(p.core_size);
    number(p.flops);
    number(p.bytes);
    const std::vector<LoopCost> costs = loop_costs(p);
    number(static_cast<uint32_t>(costs.size()));
    for (const LoopCost& c : costs) {
      number(static_cast<int32_t>(c.around));
      number(c.ns);
      root(c.size);
    }
    text(t.code);
  }

  template <class T>
  void number(T x) {
    out_.append(reinterpret_cast<const char*>(&x), sizeof(x));
  }
  void text(std::string_view x) {
    number(static_cast<uint32_t>(x.size()));
    out_ += x;
  }
  void root(NodeRef n) {
    number(n ? kPresent : kAbsent);
    if (n) roots_.push_back(n);
  }

  std::string out_;
  std::vector<NodeRef> roots_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view data)
      : in_(std::as_bytes(std::span(data)), "a pack of kernels"),
        graph_(std::make_shared<Graph>()) {
    roots_ = read_graph(*graph_, in_.bytes(in_.u64()), in_.what());
  }

  PackedKernel next() {
    PackedKernel k;
    LinearProgram& p = k.program;
    p.graph = graph_;
    p.name = in_.text(in_.u32());
    p.params.resize(in_.count(in_.u32(), 2));
    for (ProgramParam& param : p.params) {
      param.dtype = static_cast<DType>(in_.u8());
      const uint8_t uses = in_.u8();
      param.read = (uses & 1) != 0, param.written = (uses & 2) != 0;
    }
    const uint32_t variables = in_.u32();
    for (uint32_t i = 0; i < variables && !damaged_; ++i) p.variables.push_back(root());
    p.core_size = optional_root();
    p.flops = in_.f64();
    p.bytes = in_.f64();
    k.costs.resize(in_.count(in_.u32(), 13));
    for (LoopCost& c : k.costs) {
      c.around = in_.i32();
      c.ns = in_.f64();
      c.size = optional_root();
    }
    if (!is_right(k)) damaged_ = true;
    k.code = in_.text(in_.u32());
    return k;
  }
  bool done() const { return !damaged_ && in_.done() && next_root_ == roots_.size(); }

 private:
  NodeRef root() {
    if (next_root_ < roots_.size()) return roots_[next_root_++];
    damaged_ = true;
    return graph_->index(0);
  }
  NodeRef optional_root() { return in_.u8() == kPresent ? root() : nullptr; }

  static bool is_right(const PackedKernel& k) {
    bool right = !k.costs.empty() && !k.costs[0].size;
    for (size_t i = 1; i < k.costs.size(); ++i)
      right &=
          k.costs[i].size && k.costs[i].around >= -1 && k.costs[i].around < static_cast<int>(i) - 1;
    for (NodeRef v : k.program.variables) right &= v->op == Op::Variable;
    return right;
  }

  ByteReader in_;
  std::shared_ptr<Graph> graph_;
  std::vector<NodeRef> roots_;
  size_t next_root_ = 0;
  bool damaged_ = false;
};

}  // namespace

ObjectKey key_of_pack(std::span<const PackedFor> kernels, const Target& target,
                      const Options& options) {
  std::vector<NodeRef> sinks;
  std::string flags =
      strformat("pack {} {} {} {}", target.key(), target.threads, options.rules, options.passes);
  for (const PackedFor& k : kernels) {
    sinks.push_back(k.sink);
    flags += k.distinct ? '+' : '-';
  }
  const std::vector<std::byte> graph = write_graph(sinks);
  return ObjectKey::of({reinterpret_cast<const char*>(graph.data()), graph.size()}, flags,
                       strformat("{:x}", build_id()));
}

std::string pack_kernels(std::span<const Translation* const> kernels) {
  return Packer().pack(kernels);
}

std::optional<std::vector<PackedKernel>> unpack_kernels(std::string_view data, size_t count) {
  try {
    Unpacker in(data);
    std::vector<PackedKernel> kernels;
    for (size_t i = 0; i < count; ++i) kernels.push_back(in.next());
    if (in.done()) return kernels;
  } catch (const Error&) {  // it was written by something else
  }
  return std::nullopt;
}

}  // namespace weft
