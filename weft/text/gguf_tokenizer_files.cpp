// A GGUF file's tokenizer as tokenizer.json and tokenizer_config.json have it (the package
// tokenizers, 0.23; transformers).
#include <algorithm>
#include <tuple>

#include "weft/base/json_writer.h"
#include "weft/text/gguf_keys.h"
#include "weft/text/gguf_presets.h"
#include "weft/text/gguf_tokenizer.h"

namespace weft::text {
namespace {

class FileWriter {
 public:
  FileWriter(const GgufContent& content, std::string_view what) : keys_(content, what) {}

  std::string tokenizer() {
    if (const auto whole = keys_.whole()) return std::string(*whole);
    const std::string_view model = keys_.text("model", "");
    json_.begin_object().field("version", "1.0");
    json_.key("truncation").null().key("padding").null();
    write_added();
    if (model == "gpt2")
      write_byte_pairs();
    else if (model == "llama")
      write_sentence_pieces();
    else if (model == "t5")
      write_unigram();
    else if (model == "bert")
      write_word_pieces();
    else
      keys_.refuse("model", "is " + quoted_name(model) + ", not gpt2, llama, bert or t5");
    write_around(model);
    return json_.end_object().take();
  }

  std::string config() {
    JsonWriter json;
    json.begin_object().field("tokenizer_class", "PreTrainedTokenizerFast");
    std::string_view last;
    for (const GgufRole& role : kGgufRoles) {
      const auto id = keys_.token(std::string(role.key) + "_token_id");
      if (!id || role.name == last || role.name == "eot" || role.name == "eom") continue;
      last = role.name;
      json.field(std::string(role.name) + "_token", keys_.tokens()[static_cast<size_t>(*id)]);
    }
    const GgufValue* chat = keys_.content().value("tokenizer.chat_template");
    if (chat != nullptr && chat->type == GgufType::String)
      json.field("chat_template", chat->text());
    json.field("clean_up_tokenization_spaces", false);
    return json.end_object().take();
  }

 private:
  void write_added() {
    json_.key("added_tokens").begin_array();
    for (size_t id = 0; id < keys_.tokens().size(); ++id) {
      const int64_t type = keys_.type_of(id);
      if (type != Control && type != UserDefined && type != Unknown) continue;
      json_.begin_object().field("id", id).field("content", keys_.tokens()[id]);
      for (const char* no : {"single_word", "lstrip", "rstrip", "normalized"})
        json_.field(no, false);
      json_.field("special", type != UserDefined).end_object();
    }
    json_.end_array();
  }

  // ---- steps

  /// {"type": type, fields of which are written by `rest`}
  template <class Rest>
  void step(std::string_view type, const Rest& rest) {
    json_.begin_object().field("type", type);
    rest();
    json_.end_object();
  }
  void step(std::string_view type) {
    step(type, [] {});
  }
  void byte_level(bool use_regex) {
    step("ByteLevel", [&] {
      json_.field("add_prefix_space", false).field("trim_offsets", true);
      json_.field("use_regex", use_regex);
    });
  }
  template <class Steps>
  void sequence(std::string_view of, const Steps& steps) {
    step("Sequence", [&] {
      json_.key(of).begin_array();
      steps();
      json_.end_array();
    });
  }
  void replace(std::string_view pattern, std::string_view content, bool regex = false) {
    step("Replace", [&] {
      json_.key("pattern").begin_object().field(regex ? "Regex" : "String", pattern).end_object();
      json_.field("content", content);
    });
  }
  void metaspace(std::string_view scheme, bool split) {
    step("Metaspace", [&] {
      json_.field("replacement", kMark).field("prepend_scheme", scheme).field("split", split);
    });
  }

  // ---- models

  template <class Rest>
  void model(std::string_view type, const Rest& rest) {
    json_.key("model");
    step(type, rest);
  }
  void vocabulary() {
    json_.key("vocab").begin_object();
    for (size_t id = 0; id < keys_.tokens().size(); ++id) json_.field(keys_.tokens()[id], id);
    json_.end_object();
  }
  void unknown_token() {
    json_.key("unk_token");
    if (const auto id = keys_.token("unknown_token_id"))
      json_.value(keys_.tokens()[static_cast<size_t>(*id)]);
    else
      json_.null();
  }

  void write_byte_pairs() {
    const std::string_view name = keys_.text("pre", "default");
    const GgufPreset* preset = find_gguf_preset(name);
    if (preset == nullptr) keys_.refuse("pre", "is not known, " + quoted_name(name));
    json_.key("normalizer").null().key("pre_tokenizer");
    sequence("pretokenizers", [&] {
      for (const char* pattern : preset->patterns)
        step("Split", [&] {
          json_.key("pattern").begin_object().field("Regex", pattern).end_object();
          json_.field("behavior", "Isolated").field("invert", false);
        });
      byte_level(false);
    });
    json_.key("decoder");
    byte_level(true);
    model("BPE", [&] {
      json_.field("ignore_merges", preset->ignore_merges).field("byte_fallback", false);
      vocabulary();
      json_.key("merges").begin_array();
      for (const std::string_view merge : keys_.texts("merges")) {
        const size_t space = merge.find(' ', 1);
        json_.begin_array().value(merge.substr(0, space));
        json_.value(merge.substr(std::min(space, merge.size() - 1) + 1)).end_array();
      }
      json_.end_array();
    });
  }

  void write_sentence_pieces() {
    const bool prefix = keys_.flag("add_space_prefix", true);
    json_.key("normalizer");
    sequence("normalizers", [&] {
      if (prefix) step("Prepend", [&] { json_.field("prepend", kMark); });
      replace(" ", kMark);
    });
    json_.key("pre_tokenizer").null().key("decoder");
    sequence("decoders", [&] {
      replace(kMark, " ");
      step("ByteFallback");
      step("Fuse");
      if (prefix)
        step("Strip", [&] { json_.field("content", " ").field("start", 1).field("stop", 0); });
    });
    model("BPE", [&] {
      unknown_token();
      json_.field("fuse_unk", true).field("byte_fallback", true).field("ignore_merges", false);
      vocabulary();
      std::vector<Merge> merges = merges_by_score(keys_, vocabulary_of(keys_));
      std::ranges::sort(merges, {},
                        [](const Merge& m) { return std::tuple(m.rank, m.merged, m.left); });
      json_.key("merges").begin_array();
      for (const Merge& m : merges) {
        json_.begin_array().value(keys_.tokens()[static_cast<size_t>(m.left)]);
        json_.value(keys_.tokens()[static_cast<size_t>(m.right)]).end_array();
      }
      json_.end_array();
    });
  }

  void write_unigram() {
    if (keys_.find("precompiled_charsmap") != nullptr)
      keys_.refuse("precompiled_charsmap", "is not written to a tokenizer.json yet");
    const std::vector<double> scores = keys_.finite_scores();
    json_.key("normalizer");
    sequence("normalizers", [&] {
      if (!keys_.flag("remove_extra_whitespaces", true)) return;
      step("Strip", [&] { json_.field("strip_left", true).field("strip_right", true); });
      replace(" {2,}", " ", true);
    });
    const char* scheme = keys_.flag("add_space_prefix", true) ? "always" : "never";
    json_.key("pre_tokenizer");
    metaspace(scheme, true);
    json_.key("decoder");
    metaspace(scheme, true);
    model("Unigram", [&] {
      json_.key("unk_id");
      const auto unknown = keys_.token("unknown_token_id");
      unknown ? json_.value(*unknown) : json_.null();
      json_.field("byte_fallback", false).key("vocab").begin_array();
      for (size_t i = 0; i < keys_.tokens().size(); ++i)
        json_.begin_array().value(keys_.tokens()[i]).value(scores[i]).end_array();
      json_.end_array();
    });
  }

  void write_word_pieces() {
    json_.key("normalizer");
    step("BertNormalizer", [&] {
      for (const char* yes : {"clean_text", "handle_chinese_chars", "lowercase"})
        json_.field(yes, true);
      json_.key("strip_accents").null();
    });
    json_.key("pre_tokenizer");
    step("BertPreTokenizer");
    json_.key("decoder");
    step("WordPiece", [&] { json_.field("prefix", "##").field("cleanup", true); });
    model("WordPiece", [&] {
      unknown_token();
      json_.field("continuing_subword_prefix", "##").field("max_input_chars_per_word", 100);
      json_.key("vocab").begin_object();
      for (size_t id = 0; id < keys_.tokens().size(); ++id)
        json_.field(word_piece(keys_.tokens()[id], keys_.type_of(id)), id);
      json_.end_object();
    });
  }
  static std::string word_piece(std::string_view token, int64_t type) {
    if (token.starts_with(kMark)) return std::string(token.substr(kMark.size()));
    const bool special = type != Normal || (token.starts_with('[') && token.ends_with(']'));
    return (special ? "" : "##") + std::string(token);
  }

  // ---- what is put around a text

  struct Piece {
    std::string id;  // of a special token; "A" and "B": the texts
    int32_t type = 0;
  };
  void pieces(const char* key, const std::vector<Piece>& all) {
    json_.key(key).begin_array();
    for (const Piece& piece : all) {
      const bool text = piece.id == "A" || piece.id == "B";
      json_.begin_object().key(text ? "Sequence" : "SpecialToken").begin_object();
      json_.field("id", piece.id).field("type_id", piece.type).end_object().end_object();
    }
    json_.end_array();
  }

  void write_around(std::string_view model) {
    const bool bert = model == "bert";
    const auto token = [&](const char* first, const char* second) -> std::optional<TokenId> {
      const auto id = keys_.token(std::string(first) + "_token_id");
      return id ? id : keys_.token(std::string(second) + "_token_id");
    };
    std::optional<TokenId> begin = bert ? token("cls", "bos") : token("bos", "bos");
    std::optional<TokenId> end = bert ? token("seperator", "eos") : token("eos", "eos");
    if (!keys_.flag("add_bos_token", bert || model == "llama")) begin.reset();
    if (!keys_.flag(bert ? "add_sep_token" : "add_eos_token", bert || model == "t5")) end.reset();
    json_.key("post_processor");
    if (!begin && !end) {
      json_.null();
      return;
    }
    step("TemplateProcessing", [&] { write_template(begin, end, bert); });
  }

  void write_template(std::optional<TokenId> begin, std::optional<TokenId> end, bool bert) {
    const auto name = [&](TokenId id) {
      return std::string(keys_.tokens()[static_cast<size_t>(id)]);
    };
    std::vector<Piece> single, pair;
    if (begin) single.push_back({name(*begin)});
    single.push_back({"A"});
    pair = single;
    if (end) single.push_back({name(*end)});
    if (end && bert) pair.push_back({name(*end)});
    pair.push_back({"B", 1});
    if (end) pair.push_back({name(*end), 1});
    pieces("single", single);
    pieces("pair", pair);
    json_.key("special_tokens").begin_object();
    for (const auto& id : {begin, end == begin ? std::optional<TokenId>() : end}) {
      if (!id) continue;
      json_.key(name(*id)).begin_object().field("id", name(*id));
      json_.key("ids").begin_array().value(*id).end_array();
      json_.key("tokens").begin_array().value(name(*id)).end_array().end_object();
    }
    json_.end_object();
  }

  GgufKeys keys_;
  JsonWriter json_;
};

}  // namespace

TokenizerFiles tokenizer_files(const GgufContent& content, std::string_view what) {
  FileWriter writer(content, what);
  return {writer.tokenizer(), writer.config()};
}

}  // namespace weft::text
