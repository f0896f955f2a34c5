// Normalizers: what happens to a text before it is cut into words.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/parts.h"
#include "weft/text/pattern.h"
#include "weft/text/unicode.h"

namespace weft::text {

using NormalizerPtr = std::unique_ptr<const Normalizer>;

NormalizerPtr unicode_normalizer(NormalForm form);
NormalizerPtr lowercase_normalizer();
NormalizerPtr strip_accents_normalizer();  // leaves out marks
NormalizerPtr strip_normalizer(bool left, bool right);
NormalizerPtr prepend_normalizer(std::string_view text);  // where there is any text
NormalizerPtr replace_normalizer(Pattern pattern, std::string_view with);
NormalizerPtr byte_level_normalizer();
NormalizerPtr nmt_normalizer();  // SentencePiece's rules of nmt_nfkc for controls and spaces

struct BertNormalization {
  bool clean_text = true, space_ideographs = true, strip_accents = true, lowercase = true;
};
NormalizerPtr bert_normalizer(BertNormalization how);

/// SentencePiece's table of what becomes what: a double array (Aoe 1989) of UTF-8 prefixes, then
/// texts that end with a NUL. Clusters of less than six bytes are looked up whole, then characters.
/// Throws an Error ("tokenizer.charsmap") where it is damaged.
NormalizerPtr charsmap_normalizer(std::string_view table);

NormalizerPtr sequence(std::vector<NormalizerPtr> steps);

}  // namespace weft::text
