// A model's packed matrices in the order in which answers read them.
#pragma once

#include "weft/llm/model_file.h"
#include "weft/tensor/packed.h"

namespace weft::llm {

/// The bytes of a packed matrix with words of `rows` rows side by side, as decode_interleaved()
/// reads them. Realized. Errors: those of interleave_rows().
Tensor interleaved(const Tensor& packed, Codec codec, const Dims& shape, int64_t rows);
/// Whether weights fit in half of the memory: more would push each other out of it.
bool may_stay_in_memory(const Weights& weights);
/// The file's weights with rows side by side where steps of up to `rows` tokens with these factors
/// are faster so (interleaved_rows()) and the copies may stay in memory.
Weights for_answers(const ModelFile& file, Factors factors, int64_t rows);
/// Of matrices that for_answers() has copied the file's pages may leave memory, once nothing reads
/// what lies beside them: the system maps up to 2 MiB around a vector.
void let_go_of_copied(const Weights& in_file, const Weights& used);

}  // namespace weft::llm
