// A model's packed matrices in the order in which answers read them.
#pragma once

#include <functional>

#include "weft/llm/model_file.h"
#include "weft/tensor/packed.h"

namespace weft::llm {

/// The bytes of a packed matrix with words of `rows` rows side by side, as decode_interleaved()
/// reads them. Realized. Errors: those of interleave_rows().
Tensor interleaved(const Tensor& packed, Codec codec, const Dims& shape, int64_t rows);
/// Whether weights fit in half of the memory: more would push each other out of it.
bool may_stay_in_memory(const Weights& weights);
/// A model file's weights with rows side by side where steps of up to `rows` tokens with these
/// factors are faster so (interleaved_rows()) and the copies may stay in memory. Copies that may
/// wait (interleaving_may_wait()) are made by copy_next(), when the first tokens are out: the same
/// bits follow with and without them. Who computes with now() in between has what was copied in
/// memory twice.
class AnswerWeights {
 public:
  AnswerWeights(const ModelFile& file, Factors factors, int64_t rows);

  const Weights& now() const { return now_; }
  bool begun() const { return begun_; }
  bool complete() const { return complete_; }
  /// A matrix. True: that was the last one, and now() has them all from here on, not before.
  /// Errors: no memory is left.
  bool copy_next();
  /// Of matrices that now() has copies of the file's pages may leave memory, once nothing reads
  /// what lies beside them: the system maps up to 2 MiB around a vector.
  void let_go_of_copied() const;

 private:
  std::function<int64_t(Codec)> rows_of_;
  Weights file_, now_, all_;
  bool begun_ = false, complete_ = true;
};
/// All of them at once.
Weights for_answers(const ModelFile& file, Factors factors, int64_t rows);

}  // namespace weft::llm
