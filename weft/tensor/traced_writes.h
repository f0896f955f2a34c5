// TracedWrites: what becomes of tensors that a traced function assigns to, batch norm's averages
// for instance: they are left with values, not with what is made of the trace's placeholders.
#pragma once

#include "weft/tensor/access.h"
#include "weft/tensor/transforms.h"

namespace weft {

/// Lives while a function runs on `holes`, and until one of the others is called. Where the
/// function or that fails, everything has its value from before.
class TracedWrites {
 public:
  TracedWrites(const char* tag, Tensors holes);
  ~TracedWrites();
  TracedWrites(const TracedWrites&) = delete;
  TracedWrites& operator=(const TracedWrites&) = delete;

  /// The function runs once, on `values`: so do its assignments.
  void bind(const Tensors& values);
  /// It runs for each slice: an Error where that makes a difference to what is assigned.
  void refuse_per_slice();
  /// It runs in every round, and a tensor that is not carried would be assigned once: an Error.
  void refuse_in_rounds();
  /// What was assigned; the tensors have their values from before until give().
  Tensors take();
  void give(const Tensors& values);

 private:
  struct Write {
    std::shared_ptr<TensorCell> cell;
    RootedNode before;
  };
  std::vector<Write> writes() const;  // of tensors that are older than the trace
  bool depends(const TensorCell& cell) const;
  void restore();

  const char* tag_;
  Tensors holes_;
  WriteWatch watch_;
  std::vector<Write> taken_;
  bool done_ = false;
};

}  // namespace weft
