#include "weft/run/state_watch.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/run/realize.h"

namespace weft {

void StateWatch::begin(Holders holders, std::vector<int64_t> argument_ids) {
  holders_ = std::move(holders);
  argument_ids_ = std::move(argument_ids);
}

void StateWatch::destroyed(Storage& s) noexcept {
  born_.erase(&s);
  if (changed_.erase(&s) > 0) std::erase(change_order_, &s);
}

void StateWatch::written(Storage& s) {
  if (!born_.contains(&s) && changed_.insert(&s).second) change_order_.push_back(&s);
}

bool StateWatch::is_new(const Storage& s) const {
  Storage* key = const_cast<Storage*>(&s);
  return born_.contains(key) || changed_.contains(key);
}

std::vector<std::shared_ptr<Storage>> StateWatch::changed() const {
  std::vector<std::shared_ptr<Storage>> all;
  for (Storage* s : change_order_) all.push_back(s->shared_from_this());
  return all;
}

bool StateWatch::stays(int64_t id) const {
  const auto held = holders_.find(id);
  if (held == holders_.end() || std::ranges::find(argument_ids_, id) != argument_ids_.end())
    return false;
  return std::ranges::none_of(held->second, [&](const std::weak_ptr<Storage>& weak) {
    return changed_.contains(weak.lock().get());
  });
}

namespace {
thread_local RehearsalScope* t_rehearsal = nullptr;
}

RehearsalScope::RehearsalScope(Context& context,
                               std::span<const std::shared_ptr<Storage>> arguments)
    : context_(context), outer_(t_rehearsal) {
  realize(context, arguments);
  std::vector<int64_t> ids;
  for (const auto& a : arguments) ids.push_back(buffer_id(a->value()));
  watch_.begin(context.get<BufferTable>().holders(), std::move(ids));
  t_rehearsal = this;
}

RehearsalScope::~RehearsalScope() { t_rehearsal = outer_; }

StateWatch* RehearsalScope::active(const Context& context) {
  return t_rehearsal && &t_rehearsal->context_ == &context ? &t_rehearsal->watch_ : nullptr;
}

void RehearsalScope::finish(std::span<const std::shared_ptr<Storage>> results) {
  std::vector<std::shared_ptr<Storage>> all(results.begin(), results.end());
  for (auto& s : watch_.changed()) all.push_back(std::move(s));
  realize(context_, all);
}

}  // namespace weft
