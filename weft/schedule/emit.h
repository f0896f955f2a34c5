// From kernels of a plan to steps of a schedule. Equal kernels become one.
#pragma once
#include "weft/schedule/build.h"

namespace weft {

class Emitter {
 public:
  /// `physical`: the buffer that each buffer of the plan really is.
  Emitter(Planner& plan, std::span<const int> physical, Schedule& out)
      : plan_(plan), physical_(physical), out_(out), many_parts_(has_many_parts(plan)) {}

  void emit(const KernelPlan& k, NodeRef sink);

 private:
  struct Known {
    int kernel;
    std::vector<int> slots;  // of the numbered form, by slot of the simplified one
  };
  struct Round;

  int physical(NodeRef n) const { return physical_[static_cast<size_t>(plan_.buffer_index(n))]; }
  NodeRef use_physical(NodeRef sink);
  const Known& simplified(NodeRef numbered);
  int index_of(NodeRef sink);
  int add_buffer(const BufferSpec& like);
  BufferSpec spec_like(NodeRef n, DeviceId device);
  std::vector<int> buffers_of_inputs(NodeRef step) const;
  std::vector<bool> constant_inputs(NodeRef step, const RepeatParts& parts) const;
  std::vector<int> buffers_of_results(const KernelPlan& k);

  void clear(NodeRef like, int buffer, const KernelPlan& k);
  void emit_custom(const KernelPlan& k);
  void emit_repeat(const KernelPlan& k);
  void bind_buffers(Round& round, const Schedule& inner, std::span<const int> given,
                    size_t first_carry);
  static std::vector<bool> steps_of_first_round(const Round& round, const Schedule& inner);
  void emit_rounds(Round& round, const Schedule& inner, const KernelPlan& k);

  Planner& plan_;
  std::span<const int> physical_;
  Schedule& out_;
  bool many_parts_;
  NodeMap<Known> seen_;   // by numbered form
  NodeMap<int> kernels_;  // by simplified form
};

}  // namespace weft
