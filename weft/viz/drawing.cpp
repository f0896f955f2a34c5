#include "weft/viz/drawing.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"

namespace weft::viz {

namespace {

constexpr size_t kDrawnAtOnce = 30'000;     // boxes: some 100 ms
constexpr size_t kLabelsMeasured = 30'000;  // nodes of graphs whose boxes fit their labels
constexpr int kLastLevelOfLabels = 1;
constexpr size_t kMostListed = 500;     // groups, members, neighbours
constexpr size_t kMostPoints = 20'000;  // of routes
constexpr float kCharacter = 7.2F, kHeight = 26;

int64_t tenths(double pixels) { return static_cast<int64_t>(std::llround(pixels * 10)); }

std::string group_name(const GraphData& data, GroupBy by, size_t node) {
  if (by == GroupBy::Line) return data.line(node);
  if (by == GroupBy::Layer) return data.layer(node);
  const int64_t kernel = data.kernel(node);
  return kernel < 0 ? "" : strformat("kernel {}", kernel);
}

// Of a route, without the points that lie right between two others, one above the other.
std::vector<Point> corners(std::vector<Point> route) {
  std::vector<Point> out;
  for (size_t i = 0; i < route.size(); ++i) {
    const bool ends = i == 0 || i + 1 == route.size();
    if (ends || route[i].x != route[i - 1].x || route[i].x != route[i + 1].x)
      out.push_back(route[i]);
  }
  return out;
}

// Lists of numbers, as small as JSON gets.
class TileWriter {
 public:
  explicit TileWriter(TileId id)
      : unit_(std::ldexp(1.0, id.level)),
        left_(static_cast<double>(id.x) * kTilePixels),
        top_(static_cast<double>(id.y) * kTilePixels) {
    json_.begin_object();
  }

  template <class Row, class Write>
  void list(std::string_view name, const std::vector<Row>& rows, const Write& write) {
    json_.key(name).begin_array();
    for (const Row& row : rows) write(row);
    json_.end_array();
  }
  TileWriter& number(uint32_t value) { return json_.value(value), *this; }
  TileWriter& text(std::string_view value) { return json_.value(value), *this; }
  TileWriter& length(float units) {
    return json_.value(tenths(static_cast<double>(units) / unit_)), *this;
  }
  TileWriter& point(Point at) {
    json_.value(tenths(at.x / unit_ - left_)).value(tenths(at.y / unit_ - top_));
    return *this;
  }
  TileWriter& look(BoxLook look) { return json_.value(look.kind).value(look.mark), *this; }
  std::string take(uint32_t share) { return json_.field("share", share).end_object().take(); }

 private:
  double unit_, left_, top_;
  JsonWriter json_;
};

}  // namespace

struct Drawing::Placed {
  Placed(const Drawing& drawing, LayoutEffort effort)
      : layout(layout_graph(drawing.boxes_, drawing.graph_.edges,
                            {.effort = effort, .before = drawing.before_})),
        tiles(layout, drawing.boxes_, drawing.graph_.edges, drawing.looks_),
        fine(effort == LayoutEffort::Full) {
    if (fine) tiles.finish_lines();
  }
  const Layout layout;
  TileIndex tiles;
  const bool fine;
};

Drawing::Drawing(std::shared_ptr<const GraphData> data, const DrawingOptions& options,
                 const Drawing* before)
    : data_(std::move(data)) {
  if (data_->size() > kMostLayoutNodes || data_->sources.size() > kMostLayoutEdges)
    fail("viz.limit", "the graph has {} nodes and {} edges; at most {} and {} are drawn",
         data_->size(), data_->sources.size(), kMostLayoutNodes, kMostLayoutEdges);
  make_groups(options);
  graph_ = collapse(node_edges(), groups_);
  size_boxes();
  if (before != nullptr && before->data_->size() == data_->size()) before_ = places_of(*before);
  placed_ = std::make_shared<Placed>(
      *this, graph_.size() <= kDrawnAtOnce ? LayoutEffort::Full : LayoutEffort::Coarse);
}

void Drawing::make_groups(const DrawingOptions& options) {
  groups_.assign(data_->size(), kNoGroup);
  if (options.group == GroupBy::None) return;
  std::unordered_map<std::string, uint32_t> numbers;
  for (size_t node = 0; node < data_->size(); ++node) {
    const std::string name = group_name(*data_, options.group, node);
    if (name.empty()) continue;
    const auto [found, is_new] = numbers.emplace(name, static_cast<uint32_t>(numbers.size()));
    if (is_new) group_names_.push_back(name);
    groups_[node] = found->second;
  }
  group_nodes_.assign(group_names_.size(), 0);
  group_open_.assign(group_names_.size(), false);
  for (const uint32_t group : options.open)
    if (group < group_open_.size()) group_open_[group] = true;
  for (uint32_t& group : groups_) {
    if (group == kNoGroup) continue;
    ++group_nodes_[group];
    if (group_open_[group]) group = kNoGroup;
  }
}

// Without those that go back, as the loops of programs do.
std::vector<Edge> Drawing::node_edges() {
  std::vector<Edge> edges;
  edges.reserve(data_->sources.size());
  for (uint32_t node = 0; node < data_->size(); ++node)
    for (uint32_t i = data_->begins[node]; i < data_->begins[node + 1]; ++i)
      if (const uint32_t source = data_->sources[i]; source < node) {
        edges.push_back({source, node});
      } else {
        ++loops_;
        if (back_.size() < kMostListed) back_.push_back({source, node});
      }
  return edges;
}

std::vector<double> Drawing::places_of(const Drawing& before) const {
  const auto old = before.placed();
  std::vector<double> places;
  for (uint32_t box = 0; box < graph_.size(); ++box)
    places.push_back(old->layout.centres[before.graph_.box_of[node_of(box)]].x);
  return places;
}

void Drawing::size_boxes() {
  const bool measured = graph_.size() <= kLabelsMeasured;
  for (uint32_t box = 0; box < graph_.size(); ++box) {
    const float width = measured ? kCharacter * static_cast<float>(label(box).size()) + 20 : 120;
    boxes_.push_back({std::clamp(width, 40.0F, 280.0F), kHeight});
    BoxLook look{data_->kinds.empty() ? uint16_t{0} : data_->kinds[node_of(box)], 0};
    for (const uint32_t node : graph_.members.of(box)) {
      const Mark mark = data_->marks.empty() ? Mark::None : data_->marks[node];
      if (mark != Mark::None && mark != Mark::Same) look.mark = static_cast<uint8_t>(mark);
    }
    looks_.push_back(look);
  }
}

std::shared_ptr<Drawing::Placed> Drawing::placed() const {
  const std::lock_guard lock(mutex_);
  return placed_;
}

bool Drawing::fine() const { return placed()->fine; }

void Drawing::refine() {
  placed()->tiles.finish_lines();
  data_->prepare();
  auto fine = std::make_shared<Placed>(*this, LayoutEffort::Full);
  const std::lock_guard lock(mutex_);
  placed_ = std::move(fine);
}

std::string Drawing::node_label(size_t node, bool brief) const {
  if (!brief) return data_->label(node);
  return strformat("{} {}", data_->kind_names[data_->kinds[node]], data_->dtype(node));
}

std::string Drawing::label(uint32_t box, bool brief) const {
  if (graph_.group_of[box] == kNoGroup) return node_label(node_of(box), brief);
  const size_t nodes = graph_.members.of(box).size();
  return strformat("{} ({})", group_names_[graph_.group_of[box]], nodes);
}

uint32_t Drawing::box_of(uint64_t node) const {
  if (node >= graph_.box_of.size())
    fail("viz.parameter", "there is no node {}; the graph has {}", node, graph_.box_of.size());
  return graph_.box_of[node];
}

/// "back": of each edge that goes back x, y and half the width of the box it leaves, then of the
/// one it goes to.
void Drawing::write_back_edges(JsonWriter& json, const Layout& layout) const {
  json.key("back").begin_array();
  for (const Edge& e : back_) {
    json.begin_array();
    for (const uint32_t node : {e.from, e.to}) {
      const uint32_t box = graph_.box_of[node];
      json.value(layout.centres[box].x).value(layout.centres[box].y);
      json.value(static_cast<double>(boxes_[box].width) / 2);
    }
    json.end_array();
  }
  json.end_array();
}

std::string Drawing::json() const {
  const auto now = placed();
  JsonWriter json;
  json.begin_object().field("form", data_->form).field("title", data_->title);
  json.field("nodes", data_->size())
      .field("boxes", graph_.size())
      .field("edges", graph_.edges.size());
  json.field("width", now->layout.width).field("height", now->layout.height);
  json.field("level", now->tiles.level_for(900)).field("fine", now->fine).field("loops", loops_);
  write_back_edges(json, now->layout);
  json.key("kinds").begin_array();
  for (const std::string& kind : data_->kind_names) json.value(kind);
  json.end_array().key("groups").begin_array();
  for (size_t i = 0; i < std::min(group_names_.size(), kMostListed); ++i)
    json.begin_object()
        .field("group", i)
        .field("name", group_names_[i])
        .field("nodes", group_nodes_[i])
        .field("open", bool{group_open_[i]})
        .end_object();
  return json.end_array().end_object().take();
}

std::string Drawing::tile_json(TileId id) const {
  const Tile tile = placed()->tiles.tile(id);
  TileWriter writer(id);
  writer.list("boxes", tile.boxes, [&](const TileBox& box) {
    writer.number(box.box)
        .point({box.x, box.y})
        .length(boxes_[box.box].width)
        .length(boxes_[box.box].height);
    writer.look(looks_[box.box]);
  });
  const bool labelled = id.level <= kLastLevelOfLabels;
  writer.list("labels", labelled ? tile.boxes : std::vector<TileBox>(),
              [&](const TileBox& box) { writer.text(label(box.box)); });
  writer.list("cells", tile.cells, [&](const TileCell& cell) {
    writer.point({cell.left, cell.top})
        .point({cell.right, cell.bottom})
        .number(cell.count)
        .look(cell.look);
  });
  writer.list("lines", tile.lines, [&](const TileLine& line) {
    writer.point(line.from).point(line.to).number(line.cut).number(line.source);
  });
  return writer.take(tile.line_share);
}

// All edges are looked at: a few milliseconds of a million, and only of a box that is chosen.
void Drawing::write_neighbours(JsonWriter& json, uint32_t box, const Layout& layout,
                               bool brief) const {
  size_t points = 0;
  const auto route = [&](const Edge& e) {
    json.key("route").begin_array();
    if (points < kMostPoints)
      for (const Point& at : corners(layout.route(e))) json.value(at.x).value(at.y), ++points;
    json.end_array();
  };
  const auto list = [&](const char* name, uint32_t Edge::* here, uint32_t Edge::* there) {
    size_t listed = 0;
    json.key(name).begin_array();
    for (const Edge& e : graph_.edges) {
      if (e.*here != box || listed++ >= kMostListed) continue;
      json.begin_object().field("box", e.*there).field("label", label(e.*there, brief));
      route(e);
      json.end_object();
    }
    json.end_array();
  };
  list("sources", &Edge::to, &Edge::from);
  list("users", &Edge::from, &Edge::to);
}

std::string Drawing::box_json(uint32_t box, bool without_waiting) const {
  if (box >= graph_.size())
    fail("viz.parameter", "there is no box {}; the drawing has {}", box, graph_.size());
  constexpr std::string_view kMarks[] = {"", "same", "added", "removed", "changed"};
  const auto now = placed();
  const size_t node = node_of(box);
  const auto [left, right] = now->tiles.beside(box);
  const auto members = graph_.members.of(box);
  const bool brief = without_waiting && !data_->has_texts_at_hand();
  JsonWriter json;
  json.begin_object()
      .field("box", box)
      .field("x", now->layout.centres[box].x)
      .field("y", now->layout.centres[box].y);
  json.field("width", static_cast<double>(boxes_[box].width))
      .field("height", static_cast<double>(boxes_[box].height));
  json.field("label", label(box, brief))
      .field("text", brief ? "" : data_->detail(node))
      .field("line", data_->line(node));
  json.field("dtype", data_->dtype(node))
      .field("shape", brief ? "" : data_->shape(node))
      .field("mark", kMarks[looks_[box].mark])
      .field("layer", data_->layer(node));
  json.field("kernel", data_->kernel(node))
      .field("bytes", data_->bytes(node))
      .field("ns", data_->ns(node));
  json.key("group");
  graph_.group_of[box] == kNoGroup ? json.null() : json.value(graph_.group_of[box]);
  json.field("nodes", members.size()).key("members").begin_array();
  for (size_t i = 0; i < std::min(members.size(), kMostListed); ++i)
    json.begin_object()
        .field("node", members[i])
        .field("label", node_label(members[i], brief))
        .end_object();
  json.end_array();
  write_neighbours(json, box, now->layout, brief);
  json.field("left", left).field("right", right).field("complete", !brief);
  return json.end_object().take();
}

}  // namespace weft::viz
