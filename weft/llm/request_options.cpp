#include "weft/llm/request_options.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <ranges>

#include "weft/base/error.h"
#include "weft/io/host_array.h"
#include "weft/llm/grammar.h"

namespace weft::llm {

namespace {

using Options = std::vector<RequestOption>;
constexpr double kAny = std::numeric_limits<double>::infinity();

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::string range_text(const RequestOption& o) {
  return o.most == kAny ? strformat("{} or more", o.least) : strformat("{} to {}", o.least, o.most);
}

/// In floats where it is one: 0.01f is less than 0.01.
template <class T>
bool in_range(const RequestOption& o, T x) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, float, double>;
  const auto value = static_cast<Wide>(x);
  return value >= static_cast<Wide>(o.least) && value <= static_cast<Wide>(o.most);
}

[[noreturn]] void refuse(const RequestOption& o, std::string_view text, std::string_view wanted) {
  fail("llm.options", "{} is {}; it has to be {}", o.name, quoted_name(text), wanted);
}

template <class T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::vector<std::string_view> parts_of(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, between))
    parts.emplace_back(part.begin(), part.end());
  return parts;
}

/// What an option's value is read from.
struct Reader {
  const RequestOption& option;
  std::span<const std::string> texts;

  std::string_view one() const {
    return texts.empty() ? std::string_view() : std::string_view(texts.back());
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void operator()(T* x) const {
    const std::optional<T> value = number_of<T>(one());
    const std::string wanted =
        (std::is_integral_v<T> ? "an integer, " : "a number, ") + range_text(option);
    if (!value || !in_range(option, *value)) refuse(option, one(), wanted);
    *x = *value;
  }
  void operator()(bool* x) const {
    if (one() != "true" && one() != "false") refuse(option, one(), "true or false");
    *x = one() == "true";
  }
  void operator()(Texts* x) const { x->assign(texts.begin(), texts.end()); }
  void operator()(std::vector<TokenId>* x) const {
    x->clear();
    for (const std::string& text : texts)
      for (const std::string_view part : parts_of(text, ',')) x->push_back(token(part, part));
  }
  void operator()(TokenBiases* x) const {
    x->clear();
    for (const std::string& text : texts)
      for (const std::string_view part : parts_of(text, ',')) x->push_back(bias(part));
  }
  void operator()(std::optional<std::string>* x) const {
    x->reset();
    if (!texts.empty()) *x = texts.back();
  }
  void operator()(std::optional<Texts>* x) const {
    x->reset();
    if (!texts.empty()) x->emplace(texts.begin(), texts.end());
  }

 private:
  static constexpr std::string_view kTokens = "ids of tokens, with commas between";
  static constexpr std::string_view kBiases = "TOKEN=BIAS, an id and a number";

  TokenId token(std::string_view text, std::string_view all,
                std::string_view wanted = kTokens) const {
    const std::optional<TokenId> id = number_of<TokenId>(text);
    if (!id || *id < 0) refuse(option, all, wanted);
    return *id;
  }
  std::pair<TokenId, float> bias(std::string_view text) const {
    const size_t end = text.find('=');
    if (end == std::string_view::npos) refuse(option, text, kBiases);
    const std::optional<float> bias = number_of<float>(text.substr(end + 1));
    if (!bias) refuse(option, text, kBiases);
    return {token(text.substr(0, end), text, kBiases), *bias};
  }
};

std::string joined(const auto& all, auto text_of) {
  std::string text;
  for (const auto& one : all) text += (text.empty() ? "" : ",") + text_of(one);
  return text;
}

Options options_of(Constraint& c) {
  return {
      {"json_schema", "json_schema", &c.json_schema, "a JSON schema that the answer follows"},
      {"grammar", "grammar", &c.grammar, "a grammar in GBNF that the answer follows"},
      {"pattern", "guided_regex", &c.pattern, "a regular expression that the whole answer matches"},
      {"choices", "guided_choice", &c.choices, "texts, of which the answer is one"},
  };
}

Options options_of(Request& r) {
  return {
      {"max_tokens", "max_tokens", &r.max_tokens,
       "of the answer at most; -1: as far as the context reaches", -1, kAny},
      {"min_tokens", "min_tokens", &r.min_tokens, "before that none is drawn that would end it", 0,
       kAny},
      {"stop", "stop", &r.stop, "texts that end it and are not part of it"},
      {"stop_tokens", "stop_token_ids", &r.stop_tokens, "ids of tokens that end it, too"},
      {"ignore_end", "ignore_eos", &r.ignore_end, "go on after the model's end of text"},
      {"continues", "", &r.continues, "the prompt's text: its first word keeps its space"},
      {"reuse_prefix", "cache_prompt", &r.reuse_prefix,
       "begin behind what an earlier text left of the prompt"},
  };
}

}  // namespace

Options options_of(Sampling& s) {
  return {
      {"temperature", "temperature", &s.temperature, "0 takes the likeliest token", 0, 100},
      {"top_k", "top_k", &s.top_k, "of so many likeliest tokens; 0: all", 0, kAny},
      {"top_p", "top_p", &s.top_p, "of the likeliest that make up this probability", 0, 1},
      {"min_p", "min_p", &s.min_p, "of those with this share of the likeliest one's", 0, 1},
      {"typical_p", "typical_p", &s.typical_p, "locally typical sampling; 1: none", 0, 1},
      {"repetition_penalty", "repetition_penalty", &s.repetition_penalty, "1: none", 0.01, 100},
      {"presence_penalty", "presence_penalty", &s.presence_penalty,
       "taken from what was written before", -100, 100},
      {"frequency_penalty", "frequency_penalty", &s.frequency_penalty,
       "and once for each time it was", -100, 100},
      {"penalised_tokens", "repeat_last_n", &s.penalised_tokens,
       "that penalties look back at; -1: all", -1, kAny},
      {"logit_bias", "logit_bias", &s.logit_bias, "added to tokens' logits"},
      {"mirostat_tau", "mirostat_tau", &s.mirostat_tau,
       "above 0: Mirostat 2 at this surprise, in place of top_k to min_p", 0, 100},
      {"mirostat_eta", "mirostat_eta", &s.mirostat_eta, "its learning rate", 0, 1},
      {"seed", "seed", &s.seed, "the same gives the same text", 0, kAny},
  };
}

Options request_options(RequestPlan& plan) {
  Options all = options_of(plan.request);
  for (const Options& more : {options_of(plan.request.sampling), options_of(plan.constraint)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

const RequestOption& find_option(std::span<const RequestOption> options, std::string_view name) {
  const auto found = std::ranges::find(options, name, &RequestOption::name);
  if (found != options.end()) return *found;
  std::string known;
  for (const RequestOption& o : options) known += " " + std::string(o.name);
  fail_type("llm.options", "there is no option {}; there are:{}", quoted_name(name), known);
}

void check_options(std::span<const RequestOption> options) {
  for (const RequestOption& o : options)
    std::visit(
        [&]<class T>(const T* x) {
          if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
            if (!in_range(o, *x))
              fail("llm.sampling", "{} is {}; it has to be {}", o.name, *x, range_text(o));
          }
        },
        o.place);
}

const char* RequestOption::type_name() const {
  return std::visit(
      Overloaded{
          []<class T>(const T*) {
            return !std::is_arithmetic_v<T> ? "TEXT" : std::is_integral_v<T> ? "INT" : "FLOAT";
          },
          [](const std::vector<TokenId>*) { return "INT"; },
          [](const TokenBiases*) { return "TOKEN=BIAS"; },
      },
      place);
}

bool RequestOption::several() const {
  return std::visit(
      []<class T>(const T*) {
        return std::is_same_v<T, Texts> || std::is_same_v<T, std::vector<TokenId>> ||
               std::is_same_v<T, TokenBiases> || std::is_same_v<T, std::optional<Texts>>;
      },
      place);
}

bool RequestOption::takes_none() const {
  return several() || std::holds_alternative<std::optional<std::string>*>(place);
}

void RequestOption::set(std::span<const std::string> texts) const {
  std::visit(Reader{*this, texts}, place);
}

std::string RequestOption::text() const {
  const auto itself = [](const std::string& x) { return x; };
  return std::visit(
      Overloaded{
          [](const auto* x) { return strformat("{}", *x); },
          [&](const Texts* x) { return joined(*x, itself); },
          [](const std::vector<TokenId>* x) {
            return joined(*x, [](TokenId id) { return strformat("{}", id); });
          },
          [](const TokenBiases* x) {
            return joined(*x, [](const auto& b) { return strformat("{}={}", b.first, b.second); });
          },
          [](const std::optional<std::string>* x) { return x->value_or(""); },
          [&](const std::optional<Texts>* x) { return joined(x->value_or(Texts()), itself); },
      },
      place);
}

Request RequestPlan::made() const {
  std::vector<std::string_view> given;
  std::optional<Grammar> grammar;
  const auto hold = [&](std::string_view name, const auto& value, auto make) {
    if (!value) return;
    given.push_back(name);
    if (given.size() > 1)
      fail("llm.options", "{} and {} are given; an answer can be held to one of them", given[0],
           given[1]);
    grammar.emplace(make(*value));
  };
  hold("json_schema", constraint.json_schema, Grammar::from_json_schema);
  hold("grammar", constraint.grammar, Grammar::from_gbnf);
  hold("pattern", constraint.pattern, Grammar::from_pattern);
  hold("choices", constraint.choices, Grammar::from_choices);
  Request made = request;
  if (grammar) made.grammar = std::make_shared<const Grammar>(std::move(*grammar));
  return made;
}

}  // namespace weft::llm
