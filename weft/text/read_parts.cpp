#include "weft/text/read_parts.h"

#include "weft/base/utf8.h"

namespace weft::text {
namespace {

using Value = JsonTree::Value;

template <class Ptr>
struct Row {
  std::string_view type;
  Ptr (*read)(Value);
};

NormalizerPtr read_bert_normalizer(Value v) {
  BertNormalization how;
  how.clean_text = v["clean_text"].boolean_or(true);
  how.space_ideographs = v["handle_chinese_chars"].boolean_or(true);
  how.lowercase = v["lowercase"].boolean_or(true);
  how.strip_accents = v["strip_accents"].boolean_or(how.lowercase);
  return bert_normalizer(how);
}

constexpr Row<NormalizerPtr> kNormalizers[] = {
    {"NFC", [](Value) { return unicode_normalizer(NormalForm::C); }},
    {"NFD", [](Value) { return unicode_normalizer(NormalForm::D); }},
    {"NFKC", [](Value) { return unicode_normalizer(NormalForm::KC); }},
    {"NFKD", [](Value) { return unicode_normalizer(NormalForm::KD); }},
    {"Lowercase", [](Value) { return lowercase_normalizer(); }},
    {"StripAccents", [](Value) { return strip_accents_normalizer(); }},
    {"Strip",
     [](Value v) {
       return strip_normalizer(v["strip_left"].boolean_or(true), v["strip_right"].boolean_or(true));
     }},
    {"Prepend", [](Value v) { return prepend_normalizer(v["prepend"].text()); }},
    {"Replace",
     [](Value v) { return replace_normalizer(read_pattern(v["pattern"]), v["content"].text()); }},
    {"BertNormalizer", read_bert_normalizer},
    {"ByteLevel", [](Value) { return byte_level_normalizer(); }},
    {"Nmt", [](Value) { return nmt_normalizer(); }},
    {"Precompiled",
     [](Value v) -> NormalizerPtr {
       const Value table = v["precompiled_charsmap"];
       if (table.is_null() || table.text().empty()) return nullptr;
       return charsmap_normalizer(read_base64(table));
     }},
    {"Sequence",
     [](Value v) {
       return sequence(read_sequence<NormalizerPtr>(v["normalizers"], read_normalizer));
     }},
};

struct Named {
  std::string_view name;
  int value;
};
template <class Enum, size_t N>
Enum read_enum(const Named (&names)[N], Value value, Enum otherwise) {
  if (value.is_null()) return otherwise;
  for (const Named& row : names)
    if (row.name == value.text()) return static_cast<Enum>(row.value);
  value.fail_here("an unknown word, " + std::string(value.text()));
}

SplitBehavior read_behavior(Value value, SplitBehavior otherwise) {
  constexpr Named kNames[] = {{"Removed", 0},
                              {"Isolated", 1},
                              {"MergedWithPrevious", 2},
                              {"MergedWithNext", 3},
                              {"Contiguous", 4}};
  return read_enum(kNames, value, otherwise);
}

PrependScheme read_scheme(Value v) {
  constexpr Named kNames[] = {{"never", 0}, {"first", 1}, {"always", 2}};
  const bool before = v["add_prefix_space"].boolean_or(true);  // files older than prepend_scheme
  return read_enum(kNames, v["prepend_scheme"],
                   before ? PrependScheme::Always : PrependScheme::Never);
}

char32_t replacement(Value v) {
  return v["replacement"].is_null() ? 0x2581 : one_character(v["replacement"]);
}

constexpr Row<PreTokenizerPtr> kPreTokenizers[] = {
    {"ByteLevel",
     [](Value v) {
       return byte_level_pre_tokenizer(v["add_prefix_space"].boolean_or(true),
                                       v["use_regex"].boolean_or(true));
     }},
    {"Whitespace", [](Value) { return whitespace_pre_tokenizer(); }},
    {"WhitespaceSplit", [](Value) { return whitespace_split_pre_tokenizer(); }},
    {"BertPreTokenizer", [](Value) { return bert_pre_tokenizer(); }},
    {"Metaspace",
     [](Value v) {
       return metaspace_pre_tokenizer(replacement(v), read_scheme(v), v["split"].boolean_or(true));
     }},
    {"Split",
     [](Value v) {
       return split_pre_tokenizer(read_pattern(v["pattern"]),
                                  read_behavior(v["behavior"], SplitBehavior::Isolated),
                                  v["invert"].boolean_or(false));
     }},
    {"Punctuation",
     [](Value v) {
       return punctuation_pre_tokenizer(read_behavior(v["behavior"], SplitBehavior::Isolated));
     }},
    {"Digits",
     [](Value v) { return digits_pre_tokenizer(v["individual_digits"].boolean_or(false)); }},
    {"CharDelimiterSplit",
     [](Value v) { return delimiter_pre_tokenizer(one_character(v["delimiter"])); }},
    {"FixedLength",
     [](Value v) {
       return fixed_length_pre_tokenizer(
           static_cast<size_t>(v["length"].integer_or(5, 1, int64_t{1} << 30)));
     }},
    {"Sequence",
     [](Value v) {
       return sequence(read_sequence<PreTokenizerPtr>(v["pretokenizers"], read_pre_tokenizer));
     }},
};

size_t count_of(Value v) { return static_cast<size_t>(v.integer_or(0, 0, int64_t{1} << 30)); }

constexpr Row<DecoderPtr> kDecoders[] = {
    {"ByteLevel", [](Value) { return byte_level_decoder(); }},
    {"Metaspace", [](Value v) { return metaspace_decoder(replacement(v), read_scheme(v)); }},
    {"WordPiece",
     [](Value v) {
       return word_piece_decoder(v["prefix"].text_or("##"), v["cleanup"].boolean_or(true));
     }},
    {"BPEDecoder", [](Value v) { return bpe_decoder(v["suffix"].text_or("</w>")); }},
    {"ByteFallback", [](Value) { return byte_fallback_decoder(); }},
    {"Fuse", [](Value) { return fuse_decoder(); }},
    {"Strip",
     [](Value v) {
       return strip_decoder(one_character(v["content"]), count_of(v["start"]), count_of(v["stop"]));
     }},
    {"Replace",
     [](Value v) { return replace_decoder(read_pattern(v["pattern"]), v["content"].text()); }},
    {"CTC",
     [](Value v) {
       return ctc_decoder(v["pad_token"].text_or("<pad>"), v["word_delimiter_token"].text_or("|"),
                          v["cleanup"].boolean_or(true));
     }},
    {"Sequence",
     [](Value v) { return sequence(read_sequence<DecoderPtr>(v["decoders"], read_decoder)); }},
};

TokenId read_id(Value v) { return static_cast<TokenId>(v.integer(0, INT32_MAX)); }

// ---- what is put around a text

std::vector<Template::Item> read_items(Value list, Value specials) {
  std::vector<Template::Item> items;
  for (const Value entry : list) {
    Template::Item item;
    const Value sequence = entry["Sequence"], special = entry["SpecialToken"];
    const Value one = sequence.is_null() ? special : sequence;
    if (one.is_null()) entry.fail_here("neither a Sequence nor a SpecialToken");
    item.type_id = static_cast<int32_t>(one["type_id"].integer_or(0, 0, INT32_MAX));
    if (!sequence.is_null()) {
      item.kind = sequence["id"].text() == "B" ? Template::Item::Second : Template::Item::First;
    } else {
      item.kind = Template::Item::Tokens;
      const Value row = specials[special["id"].text()];
      if (row.is_null()) special["id"].fail_here("a special token without a row in special_tokens");
      for (const Value id : row["ids"]) item.ids.push_back(read_id(id));
    }
    items.push_back(std::move(item));
  }
  return items;
}

/// ["[SEP]", 102]
Template::Item read_pair(Value pair, int32_t type) {
  Template::Item item{Template::Item::Tokens, {}, type};
  for (const Value part : pair)
    if (!part.is_text()) item.ids.push_back(read_id(part));
  return item;
}

Template read_bert(Value v) {
  const Template::Item cls = read_pair(v["cls"], 0), sep = read_pair(v["sep"], 0);
  const Template::Item a{Template::Item::First, {}, 0}, b{Template::Item::Second, {}, 1};
  return {{cls, a, sep}, {cls, a, sep, b, read_pair(v["sep"], 1)}};
}
Template read_roberta(Value v) {
  const Template::Item cls = read_pair(v["cls"], 0), sep = read_pair(v["sep"], 0);
  const Template::Item a{Template::Item::First, {}, 0}, b{Template::Item::Second, {}, 0};
  return {{cls, a, sep}, {cls, a, sep, sep, b, sep}};
}
Template read_template(Value v) {
  return {read_items(v["single"], v["special_tokens"]), read_items(v["pair"], v["special_tokens"])};
}
/// One of its steps puts something around; ByteLevel is about offsets alone.
Template read_template_sequence(Value v) {
  Template all;
  bool found = false;
  for (const Value step : v["processors"]) {
    if (step["type"].text() == "ByteLevel") continue;
    if (found) step.fail_here("the second of two steps that put tokens around a text");
    found = true;
    all = read_post_processor(step);
  }
  return all;
}

constexpr Row<Template> kPostProcessors[] = {
    {"TemplateProcessing", read_template}, {"BertProcessing", read_bert},
    {"RobertaProcessing", read_roberta},   {"ByteLevel", [](Value) { return Template(); }},
    {"Sequence", read_template_sequence},
};

}  // namespace

/// Base64 (RFC 4648) with or without its =.
std::string read_base64(JsonTree::Value value) {
  const std::string_view text = value.text();
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) value.fail_here("no Base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

Pattern read_pattern(Value value) {
  if (value.is_text()) return Pattern::of_text(value.text());
  const Value regex = value["Regex"];
  return regex.is_null() ? Pattern::of_text(value["String"].text())
                         : Pattern::of_regex(regex.text());
}

char32_t one_character(Value value) {
  const std::string_view text = value.text();
  size_t at = 0;
  const char32_t c = text.empty() ? 0 : next_code_point(text, at);
  if (text.empty() || at != text.size()) value.fail_here("a text that is not one character");
  return c;
}

NormalizerPtr read_normalizer(Value value) {
  if (value.is_null()) return nullptr;
  return row_of_type(kNormalizers, value, "normalizer").read(value);
}
PreTokenizerPtr read_pre_tokenizer(Value value) {
  if (value.is_null()) return nullptr;
  return row_of_type(kPreTokenizers, value, "pre-tokenizer").read(value);
}
DecoderPtr read_decoder(Value value) {
  if (value.is_null()) return nullptr;
  return row_of_type(kDecoders, value, "decoder").read(value);
}
Template read_post_processor(Value value) {
  if (value.is_null()) return {};
  return row_of_type(kPostProcessors, value, "post-processor").read(value);
}

}  // namespace weft::text
