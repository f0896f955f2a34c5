// How many buffers a kernel takes, on machines that bind few.
//
// Values are decided consumers first, so what a kernel reads in the end is not known while it
// grows. Every value that it wants counts as a buffer until it turns out to be computed in the
// kernel: then its sources count instead, those that the kernel did not want before. Where they
// would be too many, the value is stored, which adds none.
#include "weft/schedule/plan.h"

namespace weft {

/// Whether kernel `kernel` may want the sources of `n` in its place.
bool Planner::has_room(NodeRef n, int kernel) const {
  const int64_t most = target.most_buffers;
  int64_t count = kernels[static_cast<size_t>(kernel)].buffers - 1;
  if (count + static_cast<int64_t>(n->nsrc) <= most) return true;
  for (size_t i = 0; i < n->nsrc; ++i) {
    NodeRef s = n->src(i);
    if (contains(n->src().first(i), s) || !may_be_read(s)) continue;
    const std::vector<Use>* wanted = uses.find(s);
    count += !wanted || !is_wanted_by(*wanted, kernel);
  }
  return count <= most;
}

/// Those who want `n` compute it themselves.
void Planner::leave_buffer(NodeRef n, const std::vector<Use>& wanted) {
  if (!binds_few() || !may_be_read(n)) return;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!is_wanted_by(std::span(wanted).first(i), wanted[i].kernel))
      --kernels[static_cast<size_t>(wanted[i].kernel)].buffers;
}

}  // namespace weft
