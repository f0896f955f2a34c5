#include "weft/viz/drawings.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"

namespace weft::viz {

namespace {

constexpr size_t kMostDrawings = 6;
constexpr std::string_view kGraphParameters[] = {"pass", "side", "realization", "kernel"};

// A drawing asks its session for texts as long as it lives.
struct Kept {
  Kept(std::shared_ptr<const Session> of, std::shared_ptr<const GraphData> data,
       const DrawingOptions& options, const Drawing* before)
      : session(std::move(of)), drawing(std::move(data), options, before) {}
  std::shared_ptr<const Session> session;
  Drawing drawing;
};

GroupBy group_by(std::string_view text) {
  if (text.empty()) return GroupBy::None;
  if (text == "line") return GroupBy::Line;
  if (text == "layer") return GroupBy::Layer;
  if (text == "kernel") return GroupBy::Kernel;
  fail("viz.parameter", "group is '{}'; it has to be line, layer or kernel", text.substr(0, 64));
}

std::vector<uint32_t> numbers(std::string_view text) {
  std::vector<uint32_t> all;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    uint32_t number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc() || (read.ptr != end && (*read.ptr != ',' || read.ptr + 1 == end)))
      fail("viz.parameter", "open is '{}'; it has to be numbers of groups, as 0,3",
           text.substr(0, 64));
    all.push_back(number);
    at = read.ptr == end ? end : read.ptr + 1;
  }
  return all;
}

// This thread computes for long: it has the CPU where none that answers wants it. On Linux both are
// of the thread (sched(7), nice(2)); a process that may run before all others starts threads
// that may, too, which the first ends.
void give_way() {
  constexpr int kNice = 10;
  const sched_param normal{};
  ::sched_setscheduler(0, SCHED_BATCH, &normal);
  static_cast<void>(::nice(kNice));
}

}  // namespace

Drawings::Drawings(Refine refine)
    : refine_(std::move(refine)), refiner_([this] { refine_in_turn(); }) {}

Drawings::~Drawings() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  refiner_.join();
}

std::shared_ptr<Drawing> Drawings::find(const Session* session, const std::string& graph,
                                        const std::string& groups) {
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->session != session || entry->graph != graph ||
        (!groups.empty() && entry->groups != groups))
      continue;
    std::rotate(entries_.begin(), entry, entry + 1);
    return entries_.front().drawing;
  }
  return nullptr;
}

std::shared_ptr<const Drawing> Drawings::get(std::shared_ptr<const Session> session,
                                             const Parameters& parameters) {
  Parameters of_graph;
  std::string graph;
  for (const std::string_view name : kGraphParameters) {
    if (!parameters.has(name)) continue;
    of_graph.set(name, parameters.text(name));
    graph += strformat("{}={}&", name, parameters.text(name));
  }
  const DrawingOptions options{group_by(parameters.text("group")),
                               numbers(parameters.text("open"))};
  const std::string groups = strformat("{} {}", parameters.text("group"), parameters.text("open"));
  if (auto known = find(session.get(), graph, groups)) return known;
  const auto before = find(session.get(), graph, "");
  // Of a large graph, reading it takes longer than grouping it.
  std::shared_ptr<const GraphData> data = before ? before->data() : graph_data(*session, of_graph);
  const auto kept = std::make_shared<Kept>(session, std::move(data), options, before.get());
  const std::shared_ptr<Drawing> drawing(kept, &kept->drawing);
  const std::lock_guard lock(mutex_);
  entries_.push_front({session.get(), graph, groups, drawing, drawing->fine()});
  if (entries_.size() > kMostDrawings) entries_.pop_back();
  changed_.notify_all();
  return drawing;
}

// Under the lock; null where all are fine.
std::shared_ptr<Drawing> Drawings::next_to_refine() {
  const auto next = std::ranges::find(entries_, false, &Entry::refining);
  if (next == entries_.end()) return nullptr;
  next->refining = true;
  return next->drawing;
}

void Drawings::refine_in_turn() {
  give_way();
  std::unique_lock lock(mutex_);
  for (;;) {
    std::shared_ptr<Drawing> drawing;
    changed_.wait(lock, [&] { return ending_ || (drawing = next_to_refine()) != nullptr; });
    if (ending_) return;
    lock.unlock();
    try {
      refine_(*drawing);
    } catch (const std::exception&) {
      // For want of memory: it stays coarse.
    }
    lock.lock();
  }
}

}  // namespace weft::viz
