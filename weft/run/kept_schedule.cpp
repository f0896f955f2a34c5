#include "weft/run/kept_schedule.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/base/version.h"
#include "weft/graph/binary.h"
#include "weft/graph/tuple.h"
#include "weft/target/target.h"

namespace weft {
namespace {

// Of so many nodes a schedule takes some milliseconds, and a file is read in a fraction of one.
constexpr size_t kFewestNodes = 500;

/// Of the program, the machine, and the code that schedules for it.
ObjectKey key_of(Context& context, const NormalForm& form, std::span<const int> into,
                 const std::vector<bool>& constants, const Target& target) {
  std::string flags = strformat("schedule {} {} {} {}", target.key(), target.threads,
                                context.options().rules, context.options().passes);
  for (const int slot : into) append_format(flags, " {}", slot);
  flags += constants.empty() ? "" : " ";
  for (const bool constant : constants) flags += constant ? '+' : '-';
  const std::vector<std::byte> graph = write_graph(form.values);
  return ObjectKey::of({reinterpret_cast<const char*>(graph.data()), graph.size()}, flags,
                       strformat("{:x}", build_id()));
}

size_t count_inputs(const Toposort& nodes) {
  int64_t count = 0;
  for (NodeRef n : nodes)
    if (n->op == Op::Param && !is_inner_param(n)) count = std::max(count, param_slot(n) + 1);
  return static_cast<size_t>(count);
}

}  // namespace

KeptSchedule::KeptSchedule(Context& context, const NormalForm& form, std::span<const int> into,
                           const std::vector<bool>& constants, const Target& target)
    : context_(context), program_{0, into.size()} {
  const Toposort nodes(form.values);
  if (!context.options().cache || !has_build_id() || !target.machine_code ||
      nodes.size() < kFewestNodes)
    return;
  program_.inputs = count_inputs(nodes);
  key_ = key_of(context, form, into, constants, target);
}

std::optional<Schedule> KeptSchedule::find() const {
  if (!key_) return std::nullopt;
  Span span(context_.tracer(), "read schedule");
  const std::optional<std::string> data = ObjectCache(context_).find(*key_);
  return data ? read_schedule(*data, program_) : std::nullopt;
}

void KeptSchedule::store(const Schedule& schedule) const {
  const bool elsewhere =
      std::ranges::any_of(schedule.buffers, [](const BufferSpec& b) { return b.device != 0; });
  if (!key_ || elsewhere) return;
  Span span(context_.tracer(), "write schedule");
  ObjectCache(context_).store(*key_, write_schedule(schedule));
}

}  // namespace weft
