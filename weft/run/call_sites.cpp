#include "weft/run/call_sites.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/graph/provenance.h"
#include "weft/run/run_state.h"

namespace weft {

bool StepSites::operator==(const StepSites& other) const {
  const auto equal = [](const CallSite& a, const CallSite& b) {
    return a.file == b.file && a.line == b.line;
  };
  return equal(first, other.first) && equal(last, other.last);
}

std::string StepSites::text() const {
  std::string text = short_text(first);
  if (last.file == first.file && last.line == first.line) return text;
  const std::string end = short_text(last);
  if (end != text) text += " .. " + end;
  return text;
}

namespace {

NodeMap<NodeRef> copies_of(Context& context, const NormalForm& form) {
  if (form.copies.size() > 0) return form.copies;
  const DeviceId here = context.get<DeviceTable>().default_device().id();
  return normal_copies(context.get<RunState>().graph, form.asked, here);
}

}  // namespace

CallSites::CallSites(Context& context, const NormalForm& form) {
  const Provenance& known = context.get<Provenance>();
  const Toposort order(form.asked);
  // What a public function makes on the way to its result belongs to the line of the result.
  NodeMap<CallSite> sites(order.size());
  for (size_t i = order.size(); i-- > 0;) {
    NodeRef n = order.nodes()[i];
    CallSite& site = sites[n];
    if (const CallSite own = known.find(n)) site = own;
    const CallSite theirs = site;
    for (NodeRef s : n->src())
      if (CallSite& source = sites[s]; !source) source = theirs;
  }
  const NodeMap<NodeRef> copies = copies_of(context, form);
  // Inside of kernels and gradients nothing is realized.
  for (NodeRef n : order)
    if (const NodeRef* copy = copies.find(n); copy && *copy && sites.at(n))
      sites_.try_emplace((*copy)->hash, sites.at(n));
}

CallSite CallSites::of(uint64_t origin) const {
  const auto found = sites_.find(origin);
  return found == sites_.end() ? CallSite{} : found->second;
}

std::vector<std::string> CallSites::lines_of(std::span<const uint64_t> origins) const {
  std::vector<std::string> lines;
  for (const uint64_t origin : origins) {
    std::string line = short_text(of(origin));
    if (!line.empty() && std::ranges::find(lines, line) == lines.end())
      lines.push_back(std::move(line));
  }
  return lines;
}

StepSites CallSites::of(std::span<const uint64_t> origins) const {
  StepSites step;
  for (const uint64_t origin : origins) {
    const CallSite site = of(origin);
    if (!site) continue;
    if (!step.first) step.first = site;
    step.last = site;
  }
  return step;
}

}  // namespace weft
