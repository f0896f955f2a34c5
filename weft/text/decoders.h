// Decoders: how tokens become a text again.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/parts.h"
#include "weft/text/pattern.h"
#include "weft/text/pre_tokenizers.h"

namespace weft::text {

using DecoderPtr = std::unique_ptr<const Decoder>;

DecoderPtr byte_level_decoder();
DecoderPtr metaspace_decoder(char32_t replacement, PrependScheme prepend);
DecoderPtr word_piece_decoder(std::string_view prefix, bool cleanup);
DecoderPtr bpe_decoder(std::string_view suffix);
DecoderPtr byte_fallback_decoder();
DecoderPtr fuse_decoder();
/// At most `start` of `content` from the beginning of every token, `stop` from its end.
DecoderPtr strip_decoder(char32_t content, size_t start, size_t stop);
DecoderPtr replace_decoder(Pattern pattern, std::string_view with);
/// Of connectionist temporal classification: repeated tokens are one.
DecoderPtr ctc_decoder(std::string_view pad, std::string_view word_delimiter, bool cleanup);
DecoderPtr sequence(std::vector<DecoderPtr> steps);

}  // namespace weft::text
