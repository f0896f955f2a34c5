// weft tokenize: a text's tokens and their ids, the text of ids, or a tokenizer learnt from texts.
#include <charconv>
#include <cstdio>

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/app/progress.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/text/chat.h"
#include "weft/text/tokenizer.h"
#include "weft/text/train_bpe.h"

namespace weft {
namespace {

using text::TokenId;
using text::Tokenizer;

/// Numbers with anything but digits between.
std::vector<TokenId> ids_of(std::string_view words) {
  std::vector<TokenId> ids;
  const char* end = words.data() + words.size();
  for (const char* at = words.data(); at < end;) {
    TokenId id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error == std::errc::result_out_of_range)
      fail("tokenize.ids", "an id of more than {}; ids are what `weft tokenize` prints", INT32_MAX);
    if (error == std::errc()) ids.push_back(id);
    at = error == std::errc() ? stop : at + 1;
  }
  return ids;
}

void print_json(const Session& session, const Tokenizer& t, const std::vector<TokenId>& ids,
                std::string_view text) {
  JsonWriter json;
  json.begin_object().field("text", text).key("ids").begin_array();
  for (const TokenId id : ids) json.value(id);
  json.end_array().key("tokens").begin_array();
  for (const TokenId id : ids) json.value(t.id_to_token(id).value_or(""));
  session.write(json.end_array().end_object().take() + "\n");
}

/// Every token on a background of its own, then the ids.
void print_tokens(const Session& session, const Tokenizer& t, const std::vector<TokenId>& ids) {
  constexpr int kBackgrounds[] = {104, 102, 103, 105, 106};
  std::string tokens, numbers;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string token = t.id_to_token(ids[i]).value_or("");
    for (size_t at = 0; at < token.size(); ++at)
      if (static_cast<unsigned char>(token[at]) < 0x20 || token[at] == 0x7f) token[at] = '?';
    tokens += session.colour ? strformat("\033[30;{}m{}\033[0m", kBackgrounds[i % 5], token)
                             : strformat("{}{}", i == 0 ? "" : " ", token);
    numbers += strformat("{}{}", i == 0 ? "" : " ", ids[i]);
  }
  session.write(strformat("{}\n{}\n{} tokens\n", tokens, numbers, ids.size()));
}

int tokenize_chat(const Session& session, const Tokenizer& t, const std::string& path) {
  const std::string prompt = text::ChatTemplate(t).prompt(MappedFile(path).text());
  const std::vector<TokenId> ids = t.encode(prompt, text::ChatTemplate::encoding());
  if (session.json) {
    print_json(session, t, ids, prompt);
  } else {
    session.write(prompt + "\n\n");
    print_tokens(session, t, ids);
  }
  return kExitOk;
}

int train_tokenizer(const Session& session, const TokenizeOptions& options) {
  text::BpeTrainer trainer({.vocab_size = options.train, .special_tokens = options.special_tokens});
  ProgressBar reading("read", static_cast<int64_t>(options.files.size()), "files",
                      session.context.options(), session.err);
  for (size_t i = 0; i < options.files.size(); ++i) {
    trainer.add(MappedFile(options.files[i]).text());
    reading.update(static_cast<int64_t>(i) + 1, options.files[i]);
  }
  reading.finish();
  ProgressBar merging("merge", static_cast<int64_t>(options.train), "tokens",
                      session.context.options(), session.err);
  size_t tokens = 0;
  const std::string made = trainer.train([&](size_t done, size_t) {
    tokens = done;
    merging.update(static_cast<int64_t>(done));
  });
  merging.finish();
  atomic_write_file(options.model, made);
  session.write(session.json ? JsonWriter()
                                       .begin_object()
                                       .field("tokens", tokens)
                                       .field("path", options.model)
                                       .end_object()
                                       .take() +
                                   "\n"
                             : strformat("{} tokens in {}\n", tokens, options.model));
  return kExitOk;
}

}  // namespace

int run_tokenize(const Session& session, const TokenizeOptions& options) {
  if (options.train > 0) return train_tokenizer(session, options);
  const Tokenizer t = Tokenizer::from_file(options.model);
  if (!options.chat.empty()) return tokenize_chat(session, t, options.chat);
  const std::string given = options.text == "-" ? standard_input() : options.text;
  if (options.decode) {
    const std::vector<TokenId> ids = ids_of(given);
    const std::string text = t.decode(ids, false);
    if (session.json)
      print_json(session, t, ids, text);
    else
      session.write(text + "\n");
    return kExitOk;
  }
  const std::vector<TokenId> ids = t.encode(given);
  if (session.json)
    print_json(session, t, ids, given);
  else
    print_tokens(session, t, ids);
  return kExitOk;
}

}  // namespace weft
