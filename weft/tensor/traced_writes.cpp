#include "weft/tensor/traced_writes.h"

#include <algorithm>

#include "weft/rewrite/driver.h"
#include "weft/tensor/tracing.h"

namespace weft {

TracedWrites::TracedWrites(const char* tag, Tensors holes) : tag_(tag), holes_(std::move(holes)) {}

TracedWrites::~TracedWrites() {
  if (!done_) restore();
}

std::vector<TracedWrites::Write> TracedWrites::writes() const {
  std::vector<Write> found;
  for (const WriteWatch::Write& w : watch_.writes())
    if (auto cell = std::dynamic_pointer_cast<TensorCell>(w.cell.lock()))
      if (!watch_.made_here(*cell)) found.push_back({std::move(cell), w.before});
  return found;
}

bool TracedWrites::depends(const TensorCell& cell) const {
  const std::vector<NodeRef> holes = nodes_of(holes_), value{cell.value()};
  for (NodeRef n : Toposort(value))
    if (std::ranges::find(holes, n) != holes.end()) return true;
  return false;
}

void TracedWrites::restore() {
  for (const Write& w : writes()) w.cell->set_value(w.before.get());
}

void TracedWrites::bind(const Tensors& values) {
  done_ = true;
  for (const Write& w : writes()) {
    const Tensor after = TensorAccess::make(w.cell->context(), w.cell->value());
    w.cell->set_value(bound({after}, holes_, values)[0].node());
  }
}

void TracedWrites::refuse_per_slice() {
  for (const Write& w : writes())
    if (depends(*w.cell))
      fail(tag_,
           "the function assigns to {} another value for each slice, and it has place for one: "
           "return the value instead (batch norm: outside of training)",
           w.cell->label());
  done_ = true;
}

void TracedWrites::refuse_in_rounds() {
  for (const Write& w : writes())
    fail(tag_, "the body assigns to {}, which rounds do not hand on: carry it", w.cell->label());
  done_ = true;
}

Tensors TracedWrites::take() {
  taken_ = writes();
  Tensors after;
  for (const Write& w : taken_) {
    after.push_back(TensorAccess::make(w.cell->context(), w.cell->value()));
    w.cell->set_value(w.before.get());
  }
  done_ = true;
  return after;
}

void TracedWrites::give(const Tensors& values) {
  for (size_t i = 0; i < taken_.size(); ++i) taken_[i].cell->set_value(values[i].node());
}

}  // namespace weft
