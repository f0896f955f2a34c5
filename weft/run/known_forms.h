// KnownForms: programs whose normal form was made before, recognised without making a node.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

struct NormalForm;

/// By structure: the same operations of other buffers, and of other values of variables, have the
/// same normal form. A program is recognised by walking it once beside what is known of the first
/// one like it.
class KnownForms {
 public:
  /// Programs are of `from`, their normal forms of `to`.
  KnownForms(Graph& from, Graph& to);
  ~KnownForms();
  KnownForms(const KnownForms&) = delete;
  KnownForms& operator=(const KnownForms&) = delete;

  /// The normal form of `values`, but for NormalForm::copies; false where it is not known.
  bool find(std::span<const NodeRef> values, DeviceId default_device, NormalForm& form) const;
  /// A form that was just made, of `form.asked`.
  void add(const NormalForm& form, DeviceId default_device);
  /// The form that has this root.
  void forget(NodeRef root);
  void clear();

 private:
  // Programs so large that they hold as many nodes start anew.
  static constexpr size_t kMostNodes = size_t{1} << 16;
  // Of one hash: which operands are the same buffer, and bodies of loops, are not in it.
  static constexpr size_t kMostAlike = 4;

  struct Step;
  struct Form;
  class Walk;
  static Form form_of(const NormalForm& form, const Toposort& order);
  void drop(const Form& form);

  Graph &from_, &to_;
  std::unordered_map<uint64_t, std::vector<Form>> forms_;  // the newest of a hash last
  size_t nodes_ = 0;
};

}  // namespace weft
