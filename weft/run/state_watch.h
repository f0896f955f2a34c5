// StateWatch: which memory is state that a function reads and no call of it changes: it was there
// before the call, is no argument, and is not written.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/run/active_capture.h"
#include "weft/run/storage.h"

namespace weft {

class StateWatch final : public StorageListener {
 public:
  using Holders = std::unordered_map<int64_t, std::vector<std::weak_ptr<Storage>>>;

  /// Nothing is state until begin().
  void begin(Holders holders, std::vector<int64_t> argument_ids);

  void created(Storage& s) override { born_.insert(&s); }
  void destroyed(Storage& s) noexcept override;
  void written(Storage& s) override;
  bool stays(int64_t buffer_id) const override;

  /// Whether its value is of this call: it was made, or written, since.
  bool is_new(const Storage& s) const;
  const std::unordered_set<Storage*>& born() const { return born_; }  ///< and still alive
  /// What is older and was written, in that order.
  std::vector<std::shared_ptr<Storage>> changed() const;
  const Holders& holders() const { return holders_; }
  const std::vector<int64_t>& argument_ids() const { return argument_ids_; }

 private:
  Holders holders_;
  std::vector<int64_t> argument_ids_;
  std::unordered_set<Storage*> born_, changed_;  // still alive
  std::vector<Storage*> change_order_;           // nothing may depend on addresses
};

/// The first call of a function whose second one is captured. What this thread realizes while it
/// lives is scheduled as the capture will be, so that it has the same bits and the same kernels.
/// Realizes the arguments first, as that does.
class RehearsalScope {
 public:
  RehearsalScope(Context& context, std::span<const std::shared_ptr<Storage>> arguments);
  ~RehearsalScope();
  RehearsalScope(const RehearsalScope&) = delete;
  RehearsalScope& operator=(const RehearsalScope&) = delete;

  /// Realizes `results` and what was written besides.
  void finish(std::span<const std::shared_ptr<Storage>> results);

  /// This thread's in `context`, or null.
  static StateWatch* active(const Context& context);

 private:
  Context& context_;
  RehearsalScope* outer_;
  StateWatch watch_;
};

}  // namespace weft
