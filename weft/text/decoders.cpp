#include "weft/text/decoders.h"

#include <algorithm>
#include <utility>

#include "weft/base/utf8.h"

namespace weft::text {
namespace {

using Tokens = std::vector<std::string>;

template <class Function>
class Decode final : public Decoder {
 public:
  explicit Decode(Function function) : function_(std::move(function)) {}
  void decode(Tokens& tokens) const override { function_(tokens); }

 private:
  Function function_;
};
template <class Function>
DecoderPtr by(Function function) {
  return std::make_unique<Decode<Function>>(std::move(function));
}

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  return Pattern::of_text(what).replaced(text, with);
}

/// clean_up_tokenization of the package transformers: no space before punctuation and contractions.
std::string cleaned(std::string text) {
  constexpr std::pair<const char*, const char*> kRows[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRows) text = replaced(text, from, to);
  return text;
}

/// The byte of <0x0A>; -1: it is another token.
int byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    const int lower = c | 32;
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (lower < 'a' || lower > 'f')) return -1;
    byte = byte * 16 + (digit ? c - '0' : lower - 'a' + 10);
  }
  return byte;
}

void decode_fallback(Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (is_utf8(bytes)) {
      out.push_back(bytes);
    } else {
      for (size_t i = 0; i < bytes.size(); ++i) out.push_back("\xef\xbf\xbd");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = byte_of(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens.swap(out);
}

void decode_byte_level(Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += spelt_bytes(token).value_or(token);
  tokens = {valid_utf8(bytes)};
}

std::string stripped(const std::string& token, char32_t content, size_t start, size_t stop) {
  size_t begin = 0, end = token.size();
  for (size_t i = 0, at = 0; i < start && at < end && next_code_point(token, at) == content; ++i)
    begin = at;
  for (size_t i = 0; i < stop && end > begin; ++i) {
    const size_t before = code_point_before(token, end);
    size_t at = before;
    if (next_code_point(token, at) != content) break;
    end = before;
  }
  return token.substr(begin, end - begin);
}

}  // namespace

DecoderPtr byte_level_decoder() { return by(decode_byte_level); }
DecoderPtr byte_fallback_decoder() { return by(decode_fallback); }

DecoderPtr metaspace_decoder(char32_t replacement, PrependScheme prepend) {
  std::string mark;
  append_utf8(mark, replacement);
  return by([mark, prepend](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], mark, i == 0 && prepend != PrependScheme::Never ? "" : " ");
  });
}

DecoderPtr word_piece_decoder(std::string_view prefix, bool cleanup) {
  return by([prefix = std::string(prefix), cleanup](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : ' ' + token;
      if (cleanup) token = cleaned(std::move(token));
    }
  });
}

DecoderPtr bpe_decoder(std::string_view suffix) {
  return by([suffix = std::string(suffix)](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  });
}

DecoderPtr fuse_decoder() {
  return by([](Tokens& tokens) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  });
}

DecoderPtr strip_decoder(char32_t content, size_t start, size_t stop) {
  return by([=](Tokens& tokens) {
    for (std::string& token : tokens) token = stripped(token, content, start, stop);
  });
}

DecoderPtr replace_decoder(Pattern pattern, std::string_view with) {
  return by([pattern = std::move(pattern), with = std::string(with)](Tokens& tokens) {
    for (std::string& token : tokens) token = pattern.replaced(token, with);
  });
}

DecoderPtr ctc_decoder(std::string_view pad, std::string_view delimiter, bool cleanup) {
  return by([pad = std::string(pad), delimiter = std::string(delimiter), cleanup](Tokens& tokens) {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    Tokens out;
    for (const std::string& token : tokens) {
      std::string text = replaced(token, pad, "");
      if (cleanup) text = replaced(cleaned(std::move(text)), delimiter, " ");
      if (!text.empty()) out.push_back(std::move(text));
    }
    tokens.swap(out);
  });
}

DecoderPtr sequence(std::vector<DecoderPtr> steps) {
  return by([steps = std::move(steps)](Tokens& tokens) {
    for (const DecoderPtr& step : steps) step->decode(tokens);
  });
}

}  // namespace weft::text
