// What an answer has to be: a JSON schema, a grammar, a pattern or one of some texts.
#include "weft/base/format.h"
#include "weft/llm/grammar.h"
#include "weft/serve/sampling_fields.h"

namespace weft::serve {

namespace {

using llm::Grammar;
using Name = std::string_view;
constexpr size_t kMostChoices = 1024;

void set_grammar(Grammar grammar, CompletionRequest& request) {
  request.request.grammar = std::make_shared<const Grammar>(std::move(grammar));
}

/// A schema may stand in a string.
void read_schema(const Fields& fields, Name name, CompletionRequest& request) {
  const JsonTree::Value value = fields[name];
  if (!value.is_text() && !value.is_object())
    fields.refuse(name, "it has to be a JSON schema, as an object or a string");
  request.answer_schema = value.is_text() ? std::string(value.text()) : json_text(value);
}

/// An empty one is llama.cpp's word for none.
void read_grammar(const Fields& fields, Name name, CompletionRequest& request) {
  if (!fields.text(name).empty()) set_grammar(Grammar::from_gbnf(fields.text(name)), request);
}

void read_pattern(const Fields& fields, Name name, CompletionRequest& request) {
  set_grammar(Grammar::from_pattern(fields.text(name)), request);
}

void read_choices(const Fields& fields, Name name, CompletionRequest& request) {
  std::vector<std::string> choices;
  for (const JsonTree::Value one : fields.array(name, kMostChoices)) {
    if (!one.is_text() || one.text().empty())
      fields.refuse(name, "it has to be an array of strings that are not empty");
    choices.emplace_back(one.text());
  }
  set_grammar(Grammar::from_choices(choices), request);
}

void read_format(const Fields& fields, Name name, CompletionRequest& request) {
  request.answer_schema = answer_schema(Fields(fields[name], fields.path(name) + "."), true);
}

struct ConstraintRow {
  Name name;
  void (*read)(const Fields& fields, Name name, CompletionRequest& request);
};

void read_one_of(const Fields& fields, std::span<const ConstraintRow> rows,
                 CompletionRequest& request) {
  Name before;
  for (const ConstraintRow& row : rows) {
    if (!fields.has(row.name)) continue;
    const bool held = request.request.grammar != nullptr || !request.answer_schema.empty();
    if (held)
      fields.refuse(row.name,
                    strformat("{} is given, too; one of them can be held to", fields.path(before)));
    row.read(fields, row.name, request);
    before = row.name;
  }
}

void read_structured(const Fields& fields, Name name, CompletionRequest& request) {
  constexpr ConstraintRow kRows[] = {{"json", read_schema},
                                     {"regex", read_pattern},
                                     {"choice", read_choices},
                                     {"grammar", read_grammar}};
  const Fields inner(fields[name], fields.path(name) + ".");
  constexpr Name kKnown[] = {"json", "regex", "choice", "grammar"};
  inner.only(kKnown);
  read_one_of(inner, kRows, request);
}

}  // namespace

void read_constraint(const Fields& fields, CompletionRequest& request) {
  constexpr ConstraintRow kRows[] = {
      {"response_format", read_format}, {"grammar", read_grammar},
      {"json_schema", read_schema},     {"guided_json", read_schema},
      {"guided_regex", read_pattern},   {"guided_choice", read_choices},
      {"guided_grammar", read_grammar}, {"structured_outputs", read_structured}};
  read_one_of(fields, kRows, request);
}

}  // namespace weft::serve
