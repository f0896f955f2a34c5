#include "weft/llm/stepper.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/tensor/jit.h"

namespace weft::llm {

namespace {

/// Tokens that a step of one text takes.
constexpr int64_t kParts[] = {1, 16, 64, 256};

int64_t up_to_grain(int64_t n) {
  return (n + Stepper::kGrain - 1) / Stepper::kGrain * Stepper::kGrain;
}

}  // namespace

Stepper::Stepper(Config config, const Weights& weights, int64_t slots, int64_t positions,
                 DType cache, Factors factors)
    : network_(std::move(config), weights, up_to_grain(positions), factors),
      cache_(network_.config(), slots, up_to_grain(positions), cache) {}

int64_t Stepper::part(int64_t start, int64_t left) const {
  int64_t best = 1;
  for (const int64_t size : kParts) {
    if (start + size > positions()) break;
    best = size;
    if (size >= left) break;
  }
  return std::min(best, left);
}

std::vector<Dim> Stepper::bound(const Shape& shape, std::span<const StepRow> rows) const {
  std::vector<Dim> places;
  for (size_t i = 0; i < rows.size(); ++i) {
    const StepRow& row = rows[i];
    // What can have one value only is no variable: sizes that are equal would not look so.
    const auto add = [&](const char* name, int64_t least, int64_t most, int64_t step,
                         int64_t value) {
      const Variable any(strformat("{}{}", name, i), least, most, step);
      places.push_back(least == most ? Dim(value) : any.bind(value));
    };
    add("slot", 0, slots() - 1, 1, row.slot);
    add("start", 0, positions() - shape.tokens, 1, row.start);
    add("used", kGrain, positions(), kGrain, up_to_grain(row.start + shape.tokens));
  }
  return places;
}

Tensor Stepper::compute(const Shape& shape, const Tensor& tokens, const Tensor& positions,
                        const std::vector<Dim>& places, const Dim& last) {
  Batch batch{tokens, positions, {}};
  for (size_t i = 0; i < places.size(); i += 3)
    batch.places.push_back({places[i], places[i + 1], places[i + 2]});
  const Tensor hidden = network_.hidden(batch, cache_);
  const int64_t dim = config().dim;
  if (shape.give == Give::Hidden) return hidden.reshape({shape.tokens, dim});
  if (shape.give == Give::AllLogits) return network_.logits(hidden.reshape({shape.tokens, dim}));
  if (shape.tokens == 1) return network_.logits(hidden.reshape({shape.rows, dim}));
  return network_.logits(hidden.index({0, Slice(last, last + Dim(1))}));
}

Stepper::Step& Stepper::step_of(const Shape& shape) {
  Step& step = steps_[shape];
  if (step) return step;
  const auto captured = [this, shape](const Tensor& tokens, const Tensor& positions,
                                      const std::vector<Dim>& places, const Dim& last) {
    return compute(shape, tokens, positions, places, last);
  };
  auto function = std::make_shared<Jit<decltype(captured)>>(captured, "a model's step");
  step = [function](const Tensor& tokens, const Tensor& positions, const std::vector<Dim>& places,
                    const Dim& last) { return (*function)(tokens, positions, places, last); };
  return step;
}

std::vector<float> Stepper::run(std::span<const StepRow> rows, Give give) {
  WEFT_CHECK(!rows.empty(), "a step of nothing");
  int64_t tokens = static_cast<int64_t>(rows[0].tokens.size());
  const int64_t given = tokens;
  if (rows.size() == 1)
    for (const int64_t size : kParts)
      if (size >= tokens && rows[0].start + size <= positions()) {
        tokens = size;
        break;
      }
  const Shape shape{static_cast<int64_t>(rows.size()), tokens, give};
  std::vector<int32_t> ids, at;
  for (const StepRow& row : rows)
    for (int64_t i = 0; i < tokens; ++i) {
      ids.push_back(i < given ? row.tokens[static_cast<size_t>(i)] : 0);
      at.push_back(static_cast<int32_t>(row.start + i));
    }
  const Dims dims = {shape.rows, tokens};
  const Variable last("last", 0, std::max<int64_t>(tokens - 1, 1));
  const Tensor result = step_of(shape)(Tensor::from(ids, dims), Tensor::from(at, dims),
                                       bound(shape, rows), last.bind(given - 1));
  std::vector<float> all = result.to_vector<float>();
  if (give != Give::LastLogits)
    all.resize(all.size() / static_cast<size_t>(tokens) * static_cast<size_t>(given));
  return all;
}

}  // namespace weft::llm
