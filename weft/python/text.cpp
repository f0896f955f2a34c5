// Tokenizers: weft.text.
#include <nanobind/stl/string_view.h>

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/text/chat.h"
#include "weft/text/tokenizer.h"
#include "weft/text/train_bpe.h"

namespace weft::python {

namespace {

using text::BpeTrainer;
using text::DecodeStream;
using text::EncodeOptions;
using text::Encoding;
using text::Padding;
using text::TokenId;
using text::Tokenizer;
using text::Truncation;

/// Of str or bytes; lone surrogates become bytes that are no UTF-8, and so U+FFFD.
std::string text_of(nb::handle text) {
  if (PyBytes_Check(text.ptr()))
    return {PyBytes_AS_STRING(text.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(text.ptr()))};
  if (!PyUnicode_Check(text.ptr()))
    fail_type("tokenizer.text",
              "a text is a str or bytes, not {}; decode or join what it is made of",
              Py_TYPE(text.ptr())->tp_name);
  Py_ssize_t size = 0;
  if (const char* known = PyUnicode_AsUTF8AndSize(text.ptr(), &size))
    return {known, static_cast<size_t>(size)};
  PyErr_Clear();
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!bytes.is_valid()) throw nb::python_error();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

std::optional<std::string> pair_of(nb::handle text) {
  return text.is_none() ? std::nullopt : std::optional(text_of(text));
}

/// Those that are no token of any tokenizer become -1.
std::vector<TokenId> ids_of(const std::vector<int64_t>& ids) {
  std::vector<TokenId> out;
  for (const int64_t id : ids)
    out.push_back(id < 0 || id > INT32_MAX ? -1 : static_cast<TokenId>(id));
  return out;
}

Tokenizer from_file(const std::string& path) {
  const Released released;
  return Tokenizer::from_file(path);
}
Tokenizer from_json(const std::string& json) {
  const Released released;
  return Tokenizer::from_json(json);
}

Encoding encoding(const Tokenizer& t, nb::handle text, nb::handle pair, bool special, bool parse) {
  const std::string first = text_of(text);
  const std::optional<std::string> second = pair_of(pair);
  const Released released;
  return t.encoding(first, second, {special, parse});
}

std::vector<TokenId> encode(const Tokenizer& t, nb::handle text, nb::handle pair, bool special,
                            bool parse) {
  return encoding(t, text, pair, special, parse).ids;
}

std::vector<Encoding> encodings(const Tokenizer& t, const nb::iterable& given, bool special,
                                bool parse) {
  std::vector<std::string> texts;
  for (nb::handle text : given) texts.push_back(text_of(text));
  const Released released;
  return t.encodings(texts, {special, parse});
}

std::vector<std::vector<TokenId>> encode_batch(const Tokenizer& t, const nb::iterable& given,
                                               bool special, bool parse) {
  std::vector<std::vector<TokenId>> all;
  for (Encoding& e : encodings(t, given, special, parse)) all.push_back(std::move(e.ids));
  return all;
}

std::string decode(const Tokenizer& t, const std::vector<int64_t>& ids, bool skip) {
  const std::vector<TokenId> known = ids_of(ids);
  const Released released;
  return t.decode(known, skip);
}

nb::list special_tokens(const Tokenizer& t) {
  nb::list all;
  for (const text::SpecialToken& token : t.special_tokens())
    all.append(nb::make_tuple(token.text, token.id));
  return all;
}

Truncation::Strategy strategy_of(const std::string& name) {
  if (name == "longest_first") return Truncation::Strategy::LongestFirst;
  if (name == "only_first") return Truncation::Strategy::OnlyFirst;
  if (name == "only_second") return Truncation::Strategy::OnlySecond;
  fail("tokenizer.truncation",
       "no strategy is called {}; longest_first, only_first, only_second are", name);
}
bool is_left(const std::string& direction) {
  if (direction != "left" && direction != "right")
    fail("tokenizer.direction", "a direction is left or right, not {}", direction);
  return direction == "left";
}

void bind_encoding(nb::module_& m) {
  nb::class_<Encoding> c(m, "Encoding", "A text's tokens, and what models want to know of each.");
  c.def_prop_ro("ids", [](const Encoding& e) { return e.ids; });
  c.def_prop_ro(
      "type_ids", [](const Encoding& e) { return e.type_ids; },
      "0 for tokens of the first text, 1 for those of the second.");
  c.def_prop_ro(
      "attention_mask",
      [](const Encoding& e) {
        return std::vector<int>(e.attention_mask.begin(), e.attention_mask.end());
      },
      "0 where a token is padding, else 1.");
  c.def_prop_ro(
      "special_tokens_mask",
      [](const Encoding& e) {
        return std::vector<int>(e.special_mask.begin(), e.special_mask.end());
      },
      "1 where a token is not of the text.");
  c.def("__len__", [](const Encoding& e) { return e.ids.size(); });
}

using TokenizerClass = nb::class_<Tokenizer>;

void bind_encode(TokenizerClass& c) {
  c.def("encode", encode, "text"_a, "pair"_a = nb::none(), "add_special_tokens"_a = true,
        "parse_special"_a = true, nb::call_guard<PythonSite>(),
        nb::sig("def encode(self, text: str | bytes, pair: str | bytes | None = None, "
                "add_special_tokens: bool = True, "
                "parse_special: bool = True) -> list[int]"),
        "The ids of a text, or of two. parse_special=False: special tokens that are written in the "
        "text are only "
        "its characters, as they should be in what users write.");
  c.def("encoding", encoding, "text"_a, "pair"_a = nb::none(), "add_special_tokens"_a = true,
        "parse_special"_a = true, nb::call_guard<PythonSite>(),
        nb::sig("def encoding(self, text: str | bytes, pair: str | bytes | None = None, "
                "add_special_tokens: bool = True, "
                "parse_special: bool = True) -> Encoding"),
        "encode() with type ids and masks.");
  c.def("encode_batch", encode_batch, "texts"_a, "add_special_tokens"_a = true,
        "parse_special"_a = true, nb::call_guard<PythonSite>(),
        nb::sig(
            "def encode_batch(self, texts: Iterable[str | bytes], add_special_tokens: bool = True, "
            "parse_special: bool = True) -> list[list[int]]"),
        "The ids of several texts, of one length where padding is set.");
  c.def(
      "encodings", encodings, "texts"_a, "add_special_tokens"_a = true, "parse_special"_a = true,
      nb::call_guard<PythonSite>(),
      nb::sig("def encodings(self, texts: Iterable[str | bytes], add_special_tokens: bool = True, "
              "parse_special: bool = True) -> list[Encoding]"),
      "encode_batch() with type ids and masks.");
  c.def("decode", decode, "ids"_a, "skip_special_tokens"_a = true, nb::call_guard<PythonSite>(),
        nb::sig("def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str"),
        "The text of ids; those that are no token are left out.");
}

std::string json_of(nb::handle value) {
  return nb::cast<std::string>(
      nb::module_::import_("json").attr("dumps")(value, "ensure_ascii"_a = false));
}

/// Messages, tools and what else the template knows go through JSON, as they do from other faces.
nb::object apply_chat_template(const Tokenizer& t, nb::handle messages, nb::handle tools,
                               nb::handle documents, bool add_generation_prompt, bool tokenize,
                               const std::string& chat_template, const nb::kwargs& variables) {
  text::ChatOptions options;
  options.add_generation_prompt = add_generation_prompt;
  if (!tools.is_none()) options.tools = json_of(tools);
  if (!documents.is_none()) options.documents = json_of(documents);
  if (variables.size() != 0) options.variables = json_of(variables);
  const auto chat =
      chat_template.empty() ? text::ChatTemplate(t) : text::ChatTemplate(t, chat_template);
  const std::string prompt = chat.prompt(json_of(messages), options);
  if (!tokenize) return nb::cast(prompt);
  return nb::cast(t.encode(prompt, text::ChatTemplate::encoding()));
}

void bind_chat(TokenizerClass& c) {
  c.def(
      "apply_chat_template", apply_chat_template, "messages"_a, "tools"_a = nb::none(),
      "documents"_a = nb::none(), "add_generation_prompt"_a = true, "tokenize"_a = true,
      "chat_template"_a = "", "variables"_a, nb::call_guard<PythonSite>(),
      nb::sig("def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], "
              "tools: Sequence[Mapping[str, Any]] | None = None, "
              "documents: Sequence[Mapping[str, Any]] | None = None, "
              "add_generation_prompt: bool = True, tokenize: bool = True, "
              "chat_template: str = \"\", **variables: Any) -> list[int] | str"),
      "The ids of a conversation as its model was trained on it, or with tokenize=False the text. "
      "The model's template, ChatML where it has none, or chat_template; further arguments are "
      "variables of it.");
}

void bind_vocabulary(TokenizerClass& c) {
  method(c, "token_to_id", &Tokenizer::token_to_id, "token"_a);
  c.def(
      "id_to_token", [](const Tokenizer& t, int64_t id) { return t.id_to_token(ids_of({id})[0]); },
      "id"_a);
  c.def_prop_ro("vocab_size", &Tokenizer::vocab_size, "Tokens, added ones included.");
  c.def_prop_ro("special_tokens", special_tokens,
                nb::sig("def special_tokens(self) -> list[tuple[str, int]]"),
                "Texts and ids of the tokens for control.");
  c.def("named_token", &Tokenizer::named_token, "role"_a,
        "The id of the token that a file calls bos, eos, unk, sep, pad, cls or mask.");
  c.def_prop_ro("chat_template", &Tokenizer::chat_template,
                "The template that came with it, or \"\".");
}

void bind_lengths(TokenizerClass& c) {
  c.def(
      "enable_truncation",
      [](Tokenizer& t, size_t most, const std::string& strategy, const std::string& direction) {
        t.set_truncation(Truncation{most, strategy_of(strategy), is_left(direction)});
      },
      "max_length"_a, "strategy"_a = "longest_first", "direction"_a = "right",
      "Cuts texts so that all tokens are at most max_length.", nb::call_guard<PythonSite>());
  c.def("no_truncation", [](Tokenizer& t) { t.set_truncation({}); });
  c.def(
      "enable_padding",
      [](Tokenizer& t, size_t length, int64_t id, int32_t type_id, size_t multiple,
         const std::string& direction) {
        t.set_padding(Padding{length, multiple, is_left(direction), ids_of({id})[0], type_id});
      },
      "length"_a = 0, "pad_id"_a = 0, "pad_type_id"_a = 0, "pad_to_multiple_of"_a = 1,
      "direction"_a = "right", "Fills up to `length` tokens; 0: to the longest of a batch.",
      nb::call_guard<PythonSite>());
  c.def("no_padding", [](Tokenizer& t) { t.set_padding({}); });
}

void bind_trainer(nb::module_& m) {
  nb::class_<BpeTrainer> c(
      m, "BpeTrainer",
      "A byte-level tokenizer learnt from texts: the same for the same texts in "
      "any order.\n\n"
      "    trainer = BpeTrainer(8192, special_tokens=[\"<|endoftext|>\"])\n"
      "    for text in texts: trainer.add(text)\n"
      "    open(\"tokenizer.json\", \"w\").write(trainer.train())");
  c.def(
      "__init__",
      [](BpeTrainer* self, size_t size, uint64_t frequency, std::vector<std::string> special,
         std::string pattern) {
        new (self) BpeTrainer({size, frequency, std::move(special), std::move(pattern)});
      },
      "vocab_size"_a = 32000, "min_frequency"_a = 2, nb::kw_only(),
      "special_tokens"_a = std::vector<std::string>(), "pattern"_a = "",
      nb::call_guard<PythonSite>(),
      nb::sig("def __init__(self, vocab_size: int = 32000, min_frequency: int = 2, *, "
              "special_tokens: Sequence[str] = (), pattern: str = '') -> None"),
      "vocab_size counts special tokens (the lowest ids), 256 bytes and merges; pairs that are "
      "seen "
      "less often than min_frequency are not merged; matches of pattern are words, \"\": GPT-2's.");
  c.def(
      "add",
      [](BpeTrainer& trainer, nb::handle text) {
        const std::string known = text_of(text);
        const Released released;
        trainer.add(known);
      },
      "text"_a, nb::call_guard<PythonSite>(), nb::sig("def add(self, text: str | bytes) -> None"),
      "Counts the words of a text.");
  c.def(
      "train",
      [](const BpeTrainer& trainer) {
        const Released released;
        return trainer.train();
      },
      nb::call_guard<PythonSite>(), "The content of a tokenizer.json.");
}

}  // namespace

void bind_text(nb::module_& m) {
  bind_encoding(m);
  bind_trainer(m);
  TokenizerClass c(m, "Tokenizer",
                   "Texts to token ids and back, as a tokenizer.json or a GGUF file says.\n\n"
                   "    t = Tokenizer.from_file(\"all-MiniLM-L6-v2\")\n"
                   "    t.decode(t.encode(\"Hello, world\"))  # \"hello, world\"");
  c.def_static("from_file", from_file, "path"_a, nb::call_guard<PythonSite>(),
               "A tokenizer.json, a folder with one, or a GGUF file.");
  c.def_static("from_json", from_json, "json"_a, nb::call_guard<PythonSite>(),
               "The content of a tokenizer.json.");
  bind_encode(c);
  bind_chat(c);
  bind_vocabulary(c);
  bind_lengths(c);
  nb::class_<DecodeStream> stream(
      m, "DecodeStream",
      "Decodes tokens as they come; a character whose bytes are not all there is held back.");
  stream.def(nb::init<const Tokenizer&, bool>(), "tokenizer"_a, "skip_special_tokens"_a = true,
             nb::keep_alive<1, 2>());
  stream.def(
      "step", [](DecodeStream& s, int64_t id) { return s.step(ids_of({id})[0]); }, "id"_a,
      "What the text has become longer by.");
  stream.def("finish", &DecodeStream::finish, "What was held back.");
}

}  // namespace weft::python
