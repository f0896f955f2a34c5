#include "weft/llm/stepper.h"

#include <algorithm>
#include <bit>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/resident_memory.h"
#include "weft/tensor/jit.h"

namespace weft::llm {

namespace {

/// Tokens that a step of one text takes, and that each row of a step of several texts has.
constexpr int64_t kParts[] = {1, 16, 64, 256};
constexpr int64_t kRowTokens[] = {1, 2, 4, 6};
/// So many tokens of all rows take little more time than one does, as products multiply them while
/// weights are decoded; and so many as more than those.
constexpr int64_t kCheapTokens[] = {6, 16};
constexpr size_t kPlaceSizes = 6;  // variables of a row

int64_t up_to_grain(int64_t n) {
  return (n + Stepper::kGrain - 1) / Stepper::kGrain * Stepper::kGrain;
}

/// So many positions go on to be kept where there is no room for more: the window, from a whole
/// grain on, and a grain of which a text may go back.
int64_t kept_near(int64_t window) { return up_to_grain(window + 2 * Stepper::kGrain); }

/// Of layers that see a window: room for a step behind that, and for so many more that little of
/// the time is spent on moving.
int64_t near_positions(const Config& c, int64_t positions) {
  if (c.window == 0) return positions;
  return std::min(positions,
                  kept_near(c.window) + kParts[std::size(kParts) - 1] + up_to_grain(c.window / 4));
}

}  // namespace

void fill_rows(std::vector<StepRow>& rows, int64_t slots) {
  const size_t full = std::min(std::bit_ceil(rows.size()), static_cast<size_t>(slots));
  while (rows.size() < full) rows.push_back(rows.back());
}

Stepper::Stepper(Config config, const Weights& weights, int64_t slots, int64_t positions,
                 DType cache, Factors factors)
    : network_(std::move(config), weights, positions, factors),
      factors_(factors),
      kept_(cache),
      cache_(network_.config(), slots, up_to_grain(positions),
             near_positions(network_.config(), up_to_grain(positions)), cache),
      apart_(Context::current().options().deterministic),
      near_begins_(static_cast<size_t>(slots), 0) {
  capture_moves();
}

void Stepper::capture_moves() {
  const auto keep = [this](const Dim& slot, const Dim& from) {
    for (int64_t i = 0; i < this->config().layers; ++i)
      if (this->config().is_local(i))
        for (auto* all : {&cache_.keys, &cache_.values})
          (*all)[static_cast<size_t>(i)].keep(slot, {from, kept_near(this->config().window)});
  };
  auto function = std::make_shared<Jit<decltype(keep)>>(keep, "a window's move");
  function->capture_at_once();
  keep_near_ = [function](const Dim& slot, const Dim& from) { (*function)(slot, from); };
}

void Stepper::renew() {
  steps_.clear();
  cache_.keys.clear(), cache_.values.clear();  // before there are others
  cache_ = KvCache(config(), slots(), positions(), cache_.near_positions, kept_);
  std::ranges::fill(near_begins_, 0);
  capture_moves();
  lost_ = false;
}

void Stepper::use(const Weights& weights) {
  network_.use(weights, factors_);
  steps_.clear();
}

namespace {

/// The first of the sizes that is enough, or the last one that fits behind `start`; at least 1.
int64_t fitting(std::span<const int64_t> sizes, int64_t start, int64_t wanted, int64_t positions) {
  int64_t best = 1;
  for (const int64_t size : sizes) {
    if (start + size > positions) break;
    best = size;
    if (size >= wanted) break;
  }
  return best;
}

}  // namespace

int64_t Stepper::part(int64_t start, int64_t left) const {
  if (config().encoder) return left;
  return std::min(fitting(kParts, start, left, positions()), left);
}

int64_t Stepper::row_tokens(int64_t rows, int64_t start, int64_t wanted) const {
  if (apart_) return 1;
  const auto* cheap =
      std::ranges::find_if(kCheapTokens, [&](int64_t tokens) { return rows <= tokens; });
  const int64_t most = cheap == std::end(kCheapTokens) ? 1 : *cheap / rows;
  return std::min(fitting(kRowTokens, start, std::min(wanted, most), positions()),
                  std::min(wanted, most));
}

namespace {

int64_t most_tokens(std::span<const StepRow> rows) {
  size_t most = 0;
  for (const StepRow& row : rows) most = std::max(most, row.tokens.size());
  return static_cast<int64_t>(most);
}

/// Of a text of an encoder, filled up: few lengths.
int64_t encoded_tokens(int64_t text, int64_t positions) {
  const auto least = static_cast<uint64_t>(kParts[1]);
  const auto length = std::bit_ceil(std::max(static_cast<uint64_t>(text), least));
  return std::min(static_cast<int64_t>(length), positions);
}

/// Not a part of a prompt.
bool answers(std::span<const StepRow> rows, Give give) {
  return rows.size() > 1 ||
         (give == Give::AllLogits && most_tokens(rows) <= Stepper::kMostRowTokens);
}

}  // namespace

Stepper::Shape Stepper::shape_of(std::span<const StepRow> rows, Give give) const {
  const int64_t most = most_tokens(rows);
  if (config().encoder) return {1, encoded_tokens(most, positions()), give};
  int64_t start = 0;
  for (const StepRow& row : rows) start = std::max(start, row.start);
  const auto sizes =
      answers(rows, give) ? std::span<const int64_t>(kRowTokens) : std::span<const int64_t>(kParts);
  const int64_t size = fitting(sizes, start, most, positions());
  return {static_cast<int64_t>(rows.size()), std::max(size, most), give};
}

bool Stepper::can_go_on(int64_t slot, int64_t at) const {
  const int64_t begin = near_begins_[static_cast<size_t>(slot)];
  return at == 0 || begin == 0 || at - config().window >= begin;
}

namespace {

// What can have one value only is no variable: sizes that are equal would not look so.
Dim sized(const char* name, size_t i, int64_t least, int64_t most, int64_t step, int64_t value) {
  const Variable any(strformat("{}{}", name, i), least, most, step);
  return least == most ? Dim(value) : any.bind(value);
}

}  // namespace

/// Layers with windows move what they keep of a slot to the front where there is no room behind it.
void Stepper::make_room(const StepRow& row, int64_t tokens) {
  int64_t& begin = near_begins_[static_cast<size_t>(row.slot)];
  if (row.start == 0) begin = 0;
  WEFT_CHECK(can_go_on(row.slot, row.start), "a text goes back behind its window");
  if (row.start + tokens <= begin + cache_.near_positions) return;
  const int64_t first = (row.start - config().window - kGrain) / kGrain * kGrain;
  const int64_t most = cache_.near_positions - kept_near(config().window);
  const int64_t from = std::min(first - begin, most);
  keep_near_(sized("slot", 0, 0, slots() - 1, 1, row.slot),
             sized("from", 0, 0, most, kGrain, from));
  begin += from;
}

std::vector<Dim> Stepper::bound(const Shape& shape, std::span<const StepRow> rows) const {
  if (config().encoder) return {};
  // Of a window that ends anywhere, in whole grains.
  const int64_t window = config().window > 0 ? config().window : positions();
  const int64_t room = cache_.near_positions;
  const int64_t near = std::min(room, up_to_grain(window + shape.tokens + kGrain));
  std::vector<Dim> places;
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    const int64_t end = up_to_grain(row.start + shape.tokens);
    places.push_back(sized("slot", i, 0, slots() - 1, 1, row.slot));
    places.push_back(sized("start", i, 0, positions() - shape.tokens, 1, row.start));
    places.push_back(sized("used", i, kGrain, positions(), kGrain, end));
    const Dim start = places[places.size() - 2], used = places.back();
    if (near == positions()) {  // windows are as long as texts
      places.insert(places.end(), {start, Dim(0), used});
      continue;
    }
    const int64_t near_start = row.start - near_begins_[static_cast<size_t>(row.slot)];
    const int64_t near_end = up_to_grain(near_start + shape.tokens),
                  seen = std::min(near_end, near);
    places.push_back(room == positions()
                         ? start
                         : sized("near_start", i, 0, room - shape.tokens, 1, near_start));
    places.push_back(sized("first", i, 0, room - near, kGrain, near_end - seen));
    places.push_back(sized("near", i, kGrain, near, kGrain, seen));
  }
  return places;
}

Tensor Stepper::compute(const Shape& shape, const Tensor& tokens, const Tensor& positions,
                        const std::vector<Dim>& places, const Dim& last) {
  if (config().encoder)
    return network_.encoded(tokens, last + Dim(1)).reshape({shape.tokens, config().dim});
  Batch batch{tokens, positions, {}};
  for (size_t i = 0; i < places.size(); i += kPlaceSizes)
    batch.places.push_back({places[i],
                            {places[i + 1], {0, places[i + 2]}},
                            {places[i + 3], {places[i + 4], places[i + 5]}}});
  const Tensor hidden = network_.hidden(batch, cache_);
  const int64_t dim = config().dim;
  const Tensor rows = hidden.reshape({shape.rows * shape.tokens, dim});
  if (shape.give == Give::Hidden) return rows;
  if (shape.give == Give::AllLogits || shape.tokens == 1) return network_.logits(rows);
  return network_.logits(hidden.index({0, Slice(last, last + Dim(1))}));
}

Stepper::Step& Stepper::step_of(const Shape& shape) {
  Step& step = steps_[shape];
  if (step.function) return step;
  const auto captured = [this, shape](const Tensor& tokens, const Tensor& positions,
                                      const std::vector<Dim>& places, const Dim& last) {
    return compute(shape, tokens, positions, places, last);
  };
  auto function = std::make_shared<Jit<decltype(captured)>>(captured, "a model's step");
  function->capture_at_once();
  step.function = [function](const Tensor& tokens, const Tensor& positions,
                             const std::vector<Dim>& places, const Dim& last) {
    return (*function)(tokens, positions, places, last);
  };
  return step;
}

namespace {

/// Of rows of `tokens` each the first ones, as many as were given of each.
std::vector<float> given_ones(std::vector<float> all, std::span<const StepRow> rows,
                              int64_t tokens) {
  const auto each = static_cast<size_t>(tokens);
  const size_t width = all.size() / (rows.size() * each);
  auto end = all.begin();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(i * each * width);
    const size_t count = rows[i].tokens.size() * width;
    end = from == end ? end + static_cast<std::ptrdiff_t>(count) : std::copy_n(from, count, end);
  }
  all.erase(end, all.end());
  return all;
}

}  // namespace

std::vector<float> Stepper::run(std::span<const StepRow> rows, Give give) {
  WEFT_CHECK(!rows.empty(), "a step of nothing");
  try {
    return apart_ && answers(rows, give) ? run_apart(rows) : run_together(rows, give);
  } catch (...) {
    lost_ = cache_.lost();
    throw;
  }
}

std::vector<float> Stepper::run_together(std::span<const StepRow> rows, Give give) {
  const Shape shape = shape_of(rows, give);
  for (const StepRow& row : rows) make_room(row, shape.tokens);
  std::vector<int32_t> ids, at;
  for (const StepRow& row : rows)
    for (int64_t i = 0; i < shape.tokens; ++i) {
      const auto place = static_cast<size_t>(i);
      ids.push_back(place < row.tokens.size() ? row.tokens[place] : 0);
      at.push_back(static_cast<int32_t>(row.start + i));
    }
  const Dims dims = {shape.rows, shape.tokens};
  Step& step = step_of(shape);
  const Variable last("last", 0, std::max<int64_t>(shape.tokens - 1, 1));
  const Tensor result =
      step.function(Tensor::from(ids, dims), Tensor::from(at, dims), bound(shape, rows),
                    last.bind(static_cast<int64_t>(rows[0].tokens.size()) - 1));
  std::vector<float> all = result.to_vector<float>();
  give_back_memory(step);
  return give == Give::LastLogits ? all : given_ones(std::move(all), rows, shape.tokens);
}

/// What compiling took, then what the first replay took to make its commands; and of the tokens'
/// table what the system mapped around each row that was looked at: 64 KiB, or up to 2 MiB.
void Stepper::give_back_memory(Step& step) {
  if (step.calls++ < 2) give_back_free_memory();
  network_.let_go_of_tokens();
}

/// With the logits of every token. What only fills rows up is not computed again.
std::vector<float> Stepper::run_apart(std::span<const StepRow> rows) {
  std::vector<float> all, last;
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    const bool again = i > 0 && row.slot == rows[i - 1].slot;
    for (size_t t = 0; t < row.tokens.size(); ++t) {
      const StepRow one{row.slot, row.start + static_cast<int64_t>(t), row.tokens.subspan(t, 1)};
      if (!again) last = run_together(std::span(&one, 1), Give::LastLogits);
      all.insert(all.end(), last.begin(), last.end());
    }
  }
  return all;
}

}  // namespace weft::llm
