// List scheduling by memory. Of the kernels that are ready, those come first after which no more
// memory is in use: the gradient of a weight, say, as soon as what it is made of is there, instead
// of at the end. All others come in the graph's order, which is one of depth first; but whoever
// waits for nobody, as copies of weights and zeros to add to do, comes when the first of its
// readers would, and so does whoever waits for such kernels alone that are there for it, as a
// weight that is decoded does for its scales.
#include "weft/schedule/run_order.h"

#include <algorithm>
#include <queue>

#include "weft/base/error.h"

namespace weft {
namespace {

class ListScheduler {
 public:
  ListScheduler(const Planner& plan, std::span<const int> physical)
      : plan_(plan), kernels_(plan.kernels.size()), memory_(plan.buffers.size()) {
    find_dependences();
    find_positions();
    find_memory(physical);
  }

  std::vector<int> run() {
    for (size_t k = 0; k < kernels_.size(); ++k)
      if (kernels_[k].waiting == 0) make_ready(k);
    std::vector<int> order;
    while (!ready_.empty()) {
      Queue& from = frees_.empty() ? ready_ : frees_;
      const auto k = static_cast<size_t>(from.top().second);
      from.pop();
      if (std::exchange(kernels_[k].done, true)) continue;
      order.push_back(static_cast<int>(k));
      update_memory(k);
      for (int n : kernels_[k].next)
        if (--kernels_[static_cast<size_t>(n)].waiting == 0) make_ready(static_cast<size_t>(n));
    }
    if (order.size() != kernels_.size())
      internal_error("schedule", "kernels wait for each other in a circle");
    return order;
  }

 private:
  using Queue =
      std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>>;
  struct State {
    int waiting = 0;             // for so many kernels
    std::vector<int> next = {};  // those that wait for it
    int position = 0;
    std::vector<int> uses = {};  // intermediates
    bool ready = false, freeing = false, done = false;
  };
  struct Memory {
    double bytes = 0;  // none of what is not an intermediate
    std::vector<int> users = {};
    size_t left = 0;  // users that have not run
    bool begun = false;
  };

  void find_dependences() {
    for (size_t k = 0; k < kernels_.size(); ++k) {
      std::vector<int> before = plan_.kernels[k].after;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      std::erase(before, static_cast<int>(k));
      kernels_[k].waiting = static_cast<int>(before.size());
      for (int b : before) kernels_[static_cast<size_t>(b)].next.push_back(static_cast<int>(k));
    }
  }

  void find_positions() {
    NodeMap<int> of_node(plan_.order.size());
    for (size_t i = 0; i < plan_.order.size(); ++i) of_node[plan_.order[i]] = static_cast<int>(i);
    for (size_t k = 0; k < kernels_.size(); ++k)
      kernels_[k].position = of_node.at(plan_.kernels[k].root);
    for (const bool leaves : {false, true})  // whose readers come later by then
      for (size_t k = 0; k < kernels_.size(); ++k)
        if (leaves ? kernels_[k].waiting == 0 : waits_for_its_own(k)) wait_for_reader(k);
  }

  bool waits_for_its_own(size_t k) const {
    const std::vector<int>& before = plan_.kernels[k].after;
    return kernels_[k].waiting > 0 && std::ranges::all_of(before, [&](int b) {
             const State& leaf = kernels_[static_cast<size_t>(b)];
             return leaf.waiting == 0 && leaf.next.size() == 1;
           });
  }

  void wait_for_reader(size_t k) {
    State& kernel = kernels_[k];
    if (kernel.next.empty()) return;
    const auto position = [&](int n) { return kernels_[static_cast<size_t>(n)].position; };
    kernel.position =
        std::max(kernel.position, position(std::ranges::min(kernel.next, {}, position)));
  }

  void find_memory(std::span<const int> physical) {
    const auto place = [&](NodeRef n) {
      return physical[static_cast<size_t>(plan_.buffer_index(n))];
    };
    std::vector<bool> outside(memory_.size());
    for (size_t b = 0; b < memory_.size(); ++b) {
      const BufferPlan& buffer = plan_.buffers[b];
      if (buffer.input >= 0) outside[b] = true;
      memory_[b].bytes = largest_numel(buffer.node->shape->span()) * bits(buffer.node->dtype) / 8;
    }
    for (const ScheduleOutput& o : plan_.outputs)
      outside[static_cast<size_t>(place(o.value))] = true;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      std::vector<int>& uses = kernels_[k].uses;
      for (NodeRef n : plan_.kernels[k].reads) uses.push_back(place(n));
      for (const KernelOutput& o : plan_.kernels[k].outputs) uses.push_back(place(o.node));
      std::erase_if(uses, [&](int b) { return outside[static_cast<size_t>(b)]; });
      std::sort(uses.begin(), uses.end());
      uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
      for (int b : uses) memory_[static_cast<size_t>(b)].users.push_back(static_cast<int>(k));
    }
    for (Memory& m : memory_) m.left = m.users.size();
  }

  /// Bytes less in use once it has run.
  double freed_by(size_t k) const {
    double freed = 0;
    for (int b : kernels_[k].uses) {
      const Memory& m = memory_[static_cast<size_t>(b)];
      freed += (m.left == 1 ? m.bytes : 0) - (m.begun ? 0 : m.bytes);
    }
    return freed;
  }

  void make_ready(size_t k) {
    kernels_[k].ready = true;
    ready_.push({kernels_[k].position, static_cast<int>(k)});
    look_at(k);
  }

  /// What it frees only grows until it runs.
  void look_at(size_t k) {
    State& kernel = kernels_[k];
    if (!kernel.ready || kernel.done || kernel.freeing || freed_by(k) < 0) return;
    kernel.freeing = true;
    frees_.push({kernel.position, static_cast<int>(k)});
  }

  void update_memory(size_t k) {
    for (int b : kernels_[k].uses) {
      Memory& m = memory_[static_cast<size_t>(b)];
      const bool first = !std::exchange(m.begun, true);
      if (--m.left != 1 && !first) continue;
      for (int user : m.users) look_at(static_cast<size_t>(user));
    }
  }

  const Planner& plan_;
  std::vector<State> kernels_;
  std::vector<Memory> memory_;  // by buffer
  Queue ready_, frees_;         // by position; kernels of the second are in the first, too
};

}  // namespace

std::vector<int> run_order(const Planner& plan, std::span<const int> physical) {
  return ListScheduler(plan, physical).run();
}

}  // namespace weft
