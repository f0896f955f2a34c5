#include "weft/io/functions.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/reader.h"
#include "weft/device/device.h"
#include "weft/graph/binary.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify.h"
#include "weft/io/tensors.h"
#include "weft/rewrite/driver.h"
#include "weft/run/storage.h"

namespace weft {

namespace {

constexpr const char* kVersionKey = "weft.function";
constexpr const char* kVersion = "2";

std::string key(const char* what, size_t i, const char* of = "") {
  return strformat("{}.{}{}", what, i, of);
}

/// Copies and placeholders name devices by their ids, which are of one Context; files by their
/// place among names. Where an input lies is its own matter.
std::vector<int64_t> ints_with_device(NodeRef n, FunctionRef<int64_t(int64_t)> renamed) {
  std::vector<int64_t> ints(n->ints().begin(), n->ints().end());
  if (n->op == Op::Copy) ints[0] = renamed(ints[0]);
  if (n->op != Op::Param || ints.size() < 2) return ints;
  const int64_t device = is_inner_param(n) ? renamed(ints[1]) : 0;
  ints.resize(1);
  if (device != 0) ints.push_back(device);
  return ints;
}

std::vector<NodeRef> with_devices(Graph& g, std::span<const NodeRef> roots,
                                  FunctionRef<int64_t(int64_t)> renamed) {
  NodeRef all = rebuild(g.intern({Op::Sink, DType::Void, roots}),
                        [&](NodeRef n, std::span<const NodeRef> src) {
                          const std::vector<int64_t> ints = ints_with_device(n, renamed);
                          return g.intern({n->op, n->dtype, src, ints, n->text(), n->lanes});
                        });
  return {all->src().begin(), all->src().end()};
}

// ---- writing

/// Numbers in the order in which PlanReader takes them.
std::vector<int64_t> plan_of(const CapturedFunction& f) {
  std::vector<int64_t> plan;
  const auto add = [&](auto x) { plan.push_back(static_cast<int64_t>(x)); };
  add(f.memories), add(f.places.size()), add(f.arguments), add(f.sizes.size());
  for (const auto& p : f.places) add(p.memory), add(p.ending.place), add(p.ending.memory);
  add(f.results.size());
  for (const auto& r : f.results) add(r.itself), add(r.ending.place), add(r.ending.memory);
  add(f.computations.size());
  for (const auto& c : f.computations) {
    add(c.inputs.size()), add(c.results.size());
    for (const int m : c.inputs) add(m);
    for (const int m : c.results) add(m);
  }
  return plan;
}

/// Forms and views of the arguments, their sizes, then the values of each computation.
std::vector<NodeRef> roots_of(Graph& g, const CapturedFunction& f) {
  std::vector<NodeRef> roots;
  for (size_t i = 0; i < f.arguments; ++i) {
    const auto& p = f.places[i];
    roots.push_back(p.form.get());
    roots.push_back(p.view ? p.view.get() : g.make(Op::Sink, DType::Void, {}));
  }
  for (const auto& [name, size] : f.sizes) roots.push_back(size.get());
  for (const auto& c : f.computations)
    for (const RootedNode& v : c.values) roots.push_back(v.get());
  return roots;
}

template <class T>
HostArray array_of(DType dtype, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return HostArray::owned(dtype, {static_cast<int64_t>(values.size())},
                          {bytes.begin(), bytes.end()});
}

std::vector<std::byte> graph_of(Context& context, const CapturedFunction& f, Metadata& metadata) {
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  std::vector<int64_t> devices;
  const auto number = [&](int64_t id) -> int64_t {
    if (id == 0) return 0;
    const auto at = std::ranges::find(devices, id);
    if (at != devices.end()) return at - devices.begin() + 1;
    devices.push_back(id);
    metadata[key("device", devices.size())] =
        context.get<DeviceTable>().open(static_cast<DeviceId>(id)).name();
    return static_cast<int64_t>(devices.size());
  };
  return write_graph(with_devices(g, roots_of(g, f), number));
}

SafetensorsContent content_of(const CapturedFunction& f) {
  Context& context = Context::current();
  SafetensorsContent out;
  out.metadata = {{kVersionKey, kVersion}, {"name", f.name}};
  out.arrays = {{"graph", array_of(DType::U8, graph_of(context, f, out.metadata))},
                {"plan", array_of(DType::I64, plan_of(f))}};
  for (size_t i = 0; i < f.places.size(); ++i) {
    const auto& p = f.places[i];
    out.metadata[key("place", i)] = p.name;
    if (i < f.arguments) continue;
    out.arrays.push_back({key("state", i), host_array_of(p.state)});
    Device& device = context.get<DeviceTable>().open(p.state.device());
    if (&device != &context.get<DeviceTable>().default_device())
      out.metadata[key("place", i, ".device")] = device.name();
  }
  for (size_t i = 0; i < f.sizes.size(); ++i) out.metadata[key("size", i)] = f.sizes[i].first;
  for (size_t i = 0; i < f.constants.size(); ++i) {
    out.metadata[key("constant", i)] = f.constants[i].first;
    out.metadata[key("constant", i, ".value")] = f.constants[i].second;
  }
  return out;
}

// ---- reading

class FunctionReader {
 public:
  FunctionReader(std::span<const std::byte> data, std::string_view what)
      : what_(what), content_(parse_safetensors(data, what)) {}

  CapturedFunction read() {
    const std::string version = text(kVersionKey);
    if (version != kVersion)
      fail("function.version", "{}: version {} of captured functions; this program reads {}", what_,
           quoted_name(version), kVersion);
    f_.name = text("name");
    read_plan(array("plan", DType::I64));
    for (size_t i = f_.arguments; i < f_.places.size(); ++i) f_.places[i].state = state(i);
    read_graphs(array("graph", DType::U8));
    for (size_t i = 0; content_.metadata.contains(key("constant", i)); ++i)
      f_.constants.emplace_back(text(key("constant", i)), text(key("constant", i, ".value")));
    return std::move(f_);
  }

 private:
  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> pattern, Args&&... args) const {
    fail("function.damaged", "{}: {}; the file is damaged or no captured function", what_,
         strformat(pattern, std::forward<Args>(args)...));
  }

  const std::string& text(const std::string& name) const {
    const auto at = content_.metadata.find(name);
    if (at == content_.metadata.end()) damaged("it has no \"{}\"", name);
    return at->second;
  }
  const HostArray& array(const std::string& name, DType dtype) const {
    const HostArray* found = content_.find(name);
    if (!found || found->dtype != dtype) damaged("it has no \"{}\" of {}", name, weft::name(dtype));
    return *found;
  }

  void read_plan(const HostArray& plan) {
    ByteReader in(plan.bytes, what_);
    const auto count = [&](size_t least) {
      return in.count(static_cast<uint64_t>(in.i64()), least * sizeof(int64_t));
    };
    // Each memory is somebody's: no more of them than numbers are left.
    f_.memories = count(1);
    f_.places.resize(count(3));
    f_.arguments = static_cast<size_t>(number(in, 0, f_.places.size() + 1));
    f_.sizes.resize(count(1));
    for (size_t i = 0; i < f_.sizes.size(); ++i) f_.sizes[i].first = text(key("size", i));
    for (size_t i = 0; i < f_.places.size(); ++i) {
      f_.places[i].name = text(key("place", i));
      f_.places[i].memory = number(in, -1, f_.memories);
      f_.places[i].ending = ending(in);
    }
    f_.results.resize(count(3));
    for (auto& r : f_.results) {
      r.itself = number(in, -1, f_.places.size());
      r.ending = ending(in);
      if (r.itself < 0 && r.ending.none()) damaged("a result is nothing");
    }
    f_.computations.resize(count(2));
    for (auto& c : f_.computations) {
      c.inputs.resize(count(1)), c.results.resize(count(1));
      for (int& m : c.inputs) m = number(in, -1, f_.memories);
      for (int& m : c.results) m = number(in, 0, f_.memories);
    }
    if (!in.done()) damaged("numbers follow its plan");
  }

  int number(ByteReader& in, int64_t least, size_t end) const {
    const int64_t x = in.i64();
    if (x < least || x >= static_cast<int64_t>(end)) damaged("its plan has the number {}", x);
    return static_cast<int>(x);
  }
  CapturedFunction::Ending ending(ByteReader& in) const {
    const int place = number(in, -1, f_.places.size());
    return {place, number(in, -1, f_.memories)};
  }

  Tensor state(size_t i) const {
    const HostArray* found = content_.find(key("state", i));
    if (!found) damaged("it has no \"{}\"", key("state", i));
    const auto device = content_.metadata.find(key("place", i, ".device"));
    Tensor t = tensor_of(*found);
    if (device != content_.metadata.end()) t = t.to(device->second);
    return t.realize();
  }

  void read_graphs(const HostArray& bytes) {
    Context& context = Context::current();
    Graph& g = tensor_graph(context);
    const Graph::Building building(g);
    std::vector<NodeRef> roots = read_graph(g, bytes.bytes, what_);
    roots = with_devices(g, roots, [&](int64_t k) -> int64_t {
      if (k == 0) return 0;
      return context.get<DeviceTable>().open(text(key("device", static_cast<size_t>(k)))).id();
    });
    size_t at = 0;
    const auto next = [&] {
      if (at >= roots.size()) damaged("its graph has {} values", roots.size());
      return roots[at++];
    };
    for (size_t i = 0; i < f_.arguments; ++i) {
      NodeRef form = next(), view = next();
      if (form->op != Op::Param) damaged("argument {} has no form", i);
      check_tensor_graph({&form, 1}, what_);
      f_.places[i].form = RootedNode(form);
      if (view->op == Op::Sink) continue;
      check_tensor_graph({&view, 1}, what_);
      f_.places[i].view = RootedNode(view);
    }
    for (auto& [name, size] : f_.sizes) {
      size = RootedNode(next());
      if (size.get()->dtype != DType::Index) damaged("{} is no size", name);
    }
    check_tensor_graph(std::span(roots).subspan(at), what_);
    for (auto& c : f_.computations) {
      for (size_t k = 0; k < c.results.size(); ++k) c.values.emplace_back(next());
      check_computation(c);
    }
    if (at != roots.size()) damaged("its graph has {} values, not {}", roots.size(), at);
  }

  /// What a call relies on besides a valid graph: data, made from the inputs. What is captured is
  /// in normal form, without functions.
  void check_computation(const CapturedFunction::Computation& c) const {
    std::vector<NodeRef> values;
    for (const RootedNode& v : c.values) values.push_back(v.get());
    for (NodeRef v : values)
      if (!is_data(v->dtype)) damaged("it computes {}", name(v->dtype));
    for (NodeRef n : Toposort::evaluated(values))
      if (n->op == Op::Param && param_slot(n) >= static_cast<int64_t>(c.inputs.size()))
        damaged("a computation reads what it is not given");
    for (NodeRef n : Toposort(values))
      if (n->op == Op::Function) damaged("a computation holds a function");
  }

  std::string_view what_;
  SafetensorsContent content_;
  CapturedFunction f_;
};

}  // namespace

std::vector<std::byte> function_bytes(const CapturedFunction& f) {
  SafetensorsContent content = content_of(f);
  return safetensors_bytes(std::move(content.arrays), content.metadata);
}

CapturedFunction parse_function(std::span<const std::byte> data, std::string_view what) {
  return FunctionReader(data, what).read();
}

void save_function(const std::string& path, const CapturedFunction& f) {
  SafetensorsContent content = content_of(f);
  save_safetensors(path, std::move(content.arrays), content.metadata);
}

LoadedFunction load_function(const std::string& path, CallSite at) {
  const MappedFile file(path);
  return LoadedFunction(parse_function(file.bytes(), path), at);
}

}  // namespace weft
