#include "weft/viz/stored_order.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::viz {
namespace {

constexpr uint32_t kUnseen = UINT32_MAX, kOpen = UINT32_MAX - 1;

struct Frame {
  uint64_t number;
  size_t next, begin;  // of its sources, among those of all frames
  Op op;
  DType dtype;
  uint16_t lanes;
};

}  // namespace

StoredOrder::StoredOrder(const NodeSource& source, std::span<const uint64_t> roots) {
  if (!source.arena()) source.damaged("its nodes are not there");
  const Numbered<uint64_t>& stored = source.arena()->nodes;
  std::vector<uint32_t> places(stored.items().size(), kUnseen);  // by where they are stored
  std::vector<Frame> stack;
  std::vector<uint64_t> waiting, read;  // sources
  StoredNode node;
  const auto place = [&](uint64_t number) -> uint32_t& {
    const uint64_t* at = stored.find(number);
    if (!at) source.damaged(strformat("node {} is not there", number));
    return places[static_cast<size_t>(at - stored.items().data())];
  };
  const auto enter = [&](uint64_t number) {
    uint32_t& at = place(number);
    if (at != kUnseen) return;
    at = kOpen;
    source.read(number, node, read);
    stack.push_back({number, waiting.size(), waiting.size(), node.op, node.dtype, node.lanes});
    waiting.insert(waiting.end(), read.begin(), read.end());
  };
  const auto leave = [&](const Frame& f) {
    for (size_t i = f.begin; i < waiting.size(); ++i) sources.push_back(place(waiting[i]));
    waiting.resize(f.begin);
    place(f.number) = static_cast<uint32_t>(numbers.size());
    numbers.push_back(f.number);
    begins.push_back(static_cast<uint32_t>(sources.size()));
    ops.push_back(f.op);
    dtypes.push_back(f.dtype);
    lanes.push_back(f.lanes);
    stack.pop_back();
  };
  for (const uint64_t root : roots) {
    enter(root);
    while (!stack.empty()) {
      Frame& f = stack.back();
      f.next == waiting.size() ? leave(Frame(f)) : enter(waiting[f.next++]);
    }
  }
}

std::vector<bool> StoredOrder::below(std::span<const uint64_t> roots) const {
  std::vector<uint64_t> wanted(roots.begin(), roots.end());
  std::ranges::sort(wanted);
  std::vector<bool> in(size());
  for (size_t i = size(); i-- > 0;) {
    if (!in[i] && std::ranges::binary_search(wanted, numbers[i])) in[i] = true;
    for (uint32_t s = begins[i]; in[i] && s < begins[i + 1]; ++s) in[sources[s]] = true;
  }
  return in;
}

}  // namespace weft::viz
