// Stepper: a network's steps, each compiled once for all lengths and replayed afterwards.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "weft/llm/generator.h"
#include "weft/llm/network.h"

namespace weft::llm {

/// What a step gives of its tokens.
enum class Give : uint8_t {
  LastLogits,  ///< of the last token of each row: (rows, vocabulary)
  AllLogits,   ///< of all: (tokens, vocabulary), those of a row behind those of the rows before
  Hidden,      ///< of a single row, normed: (tokens, dim)
};

/// Tokens that go behind what a slot holds.
struct StepRow {
  int64_t slot = 0, start = 0;
  std::span<const TokenId> tokens;
};

/// Rows come in few numbers, so that few steps are compiled: what is missing repeats the last row,
/// which writes what is there already.
void fill_rows(std::vector<StepRow>& rows, int64_t slots);

class Stepper {
 public:
  /// `positions` is rounded up to a multiple of kGrain.
  Stepper(Config config, const Weights& weights, int64_t slots, int64_t positions, DType cache,
          Factors factors = Factors::F32);

  /// Weights with the same numbers that lie otherwise: steps are compiled anew when they come.
  void use(const Weights& weights);

  /// The longest part of a text that one step takes, of `left` tokens behind `start`: steps have a
  /// few lengths only, and the last one is filled up. Of encoders, which have Give::Hidden only, a
  /// text is one part.
  int64_t part(int64_t start, int64_t left) const;
  /// So many of `wanted` tokens each of some rows may have, the last of which begins at `start`:
  /// where one token is needed, more should take little more time. One, where rows go apart.
  int64_t row_tokens(int64_t rows, int64_t start, int64_t wanted) const;

  /// One step of rows of row_tokens() at most, or of one row of part(): f32, row-major. With
  /// LastLogits rows of several have one token each. What fills rows up to the length of a step
  /// lies behind their last tokens and is never seen.
  std::vector<float> run(std::span<const StepRow> rows, Give give = Give::LastLogits);

  /// After an error of run(), where it left the cache half written: nothing goes on from there.
  bool lost() const { return lost_; }
  /// An empty cache in the place of one that is lost.
  void renew();

  /// Whether tokens that answer are computed one by one, by the kernels of a text that is alone, so
  /// that their bits do not depend on who else is there (WEFT_DETERMINISTIC): sums of a product are
  /// cut otherwise where it has more rows.
  bool goes_apart() const { return apart_; }

  const Config& config() const { return network_.config(); }
  bool writes() const { return network_.writes(); }
  int64_t positions() const { return cache_.positions; }
  /// Whether the text that a slot holds may go on at a position of it, in the place of what was
  /// there: layers with windows keep the windows of the last positions only. At 0 it always may.
  bool can_go_on(int64_t slot, int64_t at) const;
  int64_t slots() const { return cache_.slots; }
  int64_t cache_bytes() const { return cache_.bytes(); }

  static constexpr int64_t kGrain = 64;  ///< positions that are looked at are a multiple of it
  static constexpr int64_t kMostRowTokens = 6;

 private:
  struct Shape {
    int64_t rows, tokens;
    Give give;
    auto operator<=>(const Shape&) const = default;
  };
  struct Step {
    std::function<Tensor(const Tensor&, const Tensor&, const std::vector<Dim>&, const Dim&)>
        function;
    int calls = 0;
  };
  Shape shape_of(std::span<const StepRow> rows, Give give) const;
  std::vector<float> run_together(std::span<const StepRow> rows, Give give);
  std::vector<float> run_apart(std::span<const StepRow> rows);
  Step& step_of(const Shape& shape);
  void give_back_memory(Step& step);
  Tensor compute(const Shape& shape, const Tensor& tokens, const Tensor& positions,
                 const std::vector<Dim>& places, const Dim& last);
  std::vector<Dim> bound(const Shape& shape, std::span<const StepRow> rows) const;
  void make_room(const StepRow& row, int64_t tokens);

  void capture_moves();

  Network network_;
  Factors factors_;
  DType kept_;  // in the cache
  KvCache cache_;
  bool apart_, lost_ = false;
  std::map<Shape, Step> steps_;
  std::vector<int64_t> near_begins_;  // of slots: the first position that layers with windows keep
  std::function<void(const Dim&, const Dim&)> keep_near_;  // a slot's numbers from a place on
};

}  // namespace weft::llm
