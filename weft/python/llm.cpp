// Language models: weft.llm.
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/llm/convert.h"
#include "weft/llm/grammar.h"
#include "weft/llm/lora.h"
#include "weft/llm/model.h"
#include "weft/llm/quantise_model.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

using llm::Model;
using llm::TokenId;

DType cache_type(const std::string& name) {
  if (name == "f16") return DType::F16;
  if (name == "f32") return DType::F32;
  if (name == "q8") return DType::I8;
  fail("llm.options", "a cache of '{}': f16, f32 or q8", name);
}

std::vector<TokenId> token_ids(const std::vector<int64_t>& ids) {
  std::vector<TokenId> out;
  for (const int64_t id : ids)
    out.push_back(id < 0 || id > INT32_MAX ? -1 : static_cast<TokenId>(id));
  return out;
}

std::string json_of(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  return nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(value));
}

struct OptionRow {
  std::string_view name;
  void (*set)(llm::Request& request, nb::handle value);
};

template <class T>
struct MemberOf;
template <class C, class T>
struct MemberOf<T C::*> {
  using Type = T;
};

template <auto member>
void set_sampling(llm::Request& request, nb::handle value) {
  request.sampling.*member = nb::cast<typename MemberOf<decltype(member)>::Type>(value);
}

using llm::Sampling;
constexpr OptionRow kOptions[] = {
    {"max_tokens",
     [](llm::Request& r, nb::handle value) { r.max_tokens = nb::cast<int64_t>(value); }},
    {"stop",
     [](llm::Request& r, nb::handle value) { r.stop = nb::cast<std::vector<std::string>>(value); }},
    {"stop_tokens",
     [](llm::Request& r, nb::handle value) {
       r.stop_tokens = token_ids(nb::cast<std::vector<int64_t>>(value));
     }},
    {"continues", [](llm::Request& r, nb::handle value) { r.continues = nb::cast<bool>(value); }},
    {"min_tokens",
     [](llm::Request& r, nb::handle value) { r.min_tokens = nb::cast<int64_t>(value); }},
    {"ignore_end", [](llm::Request& r, nb::handle value) { r.ignore_end = nb::cast<bool>(value); }},
    {"json_schema",
     [](llm::Request& r, nb::handle value) {
       r.grammar =
           std::make_shared<const llm::Grammar>(llm::Grammar::from_json_schema(json_of(value)));
     }},
    {"grammar",
     [](llm::Request& r, nb::handle value) {
       r.grammar = std::make_shared<const llm::Grammar>(
           llm::Grammar::from_gbnf(nb::cast<std::string>(value)));
     }},
    {"pattern",
     [](llm::Request& r, nb::handle value) {
       r.grammar = std::make_shared<const llm::Grammar>(
           llm::Grammar::from_pattern(nb::cast<std::string>(value)));
     }},
    {"choices",
     [](llm::Request& r, nb::handle value) {
       r.grammar = std::make_shared<const llm::Grammar>(
           llm::Grammar::from_choices(nb::cast<std::vector<std::string>>(value)));
     }},
    {"logit_bias",
     [](llm::Request& r, nb::handle value) {
       for (const auto& [id, bias] : nb::cast<std::map<int32_t, float>>(value))
         r.sampling.logit_bias.emplace_back(id, bias);
     }},
    {"temperature", set_sampling<&Sampling::temperature>},
    {"top_k", set_sampling<&Sampling::top_k>},
    {"top_p", set_sampling<&Sampling::top_p>},
    {"min_p", set_sampling<&Sampling::min_p>},
    {"typical_p", set_sampling<&Sampling::typical_p>},
    {"repetition_penalty", set_sampling<&Sampling::repetition_penalty>},
    {"presence_penalty", set_sampling<&Sampling::presence_penalty>},
    {"frequency_penalty", set_sampling<&Sampling::frequency_penalty>},
    {"penalised_tokens", set_sampling<&Sampling::penalised_tokens>},
    {"mirostat_tau", set_sampling<&Sampling::mirostat_tau>},
    {"mirostat_eta", set_sampling<&Sampling::mirostat_eta>},
    {"seed", set_sampling<&Sampling::seed>},
};

void set_option(llm::Request& request, const std::string& name, nb::handle value) {
  const auto* row = std::ranges::find(kOptions, name, &OptionRow::name);
  if (row == std::end(kOptions)) {
    std::string names;
    for (const OptionRow& known : kOptions) names += " " + std::string(known.name);
    fail_type("llm.options", "there is no option '{}'; there are:{}", name, names);
  }
  try {
    row->set(request, value);
  } catch (const std::bad_cast&) {
    fail_type("llm.options", "{} cannot be {}", name, nb::cast<std::string>(nb::repr(value)));
  }
}

llm::RequestId submit(Model& m, const std::vector<int64_t>& prompt, const nb::dict& options) {
  llm::Request request;
  request.prompt = token_ids(prompt);
  request.sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f};
  for (const auto& [name, value] : options) set_option(request, nb::cast<std::string>(name), value);
  return m.submit(std::move(request));
}

constexpr const char* kFinish[] = {"", "stop", "length", "cancelled", "failed"};

/// (request, ids, text, finish, error) of each that changed.
nb::list step(Model& m) {
  std::vector<llm::Progress> all;
  {
    const Released released;
    all = m.step();
  }
  nb::list out;
  for (const llm::Progress& p : all) {
    std::vector<TokenId> ids;
    for (const llm::GeneratedToken& t : p.tokens) ids.push_back(t.token.id);
    const nb::bytes text(p.text.data(), p.text.size());
    out.append(nb::make_tuple(p.request, ids, text.attr("decode")("utf-8", "replace"),
                              kFinish[static_cast<size_t>(p.finish)], p.error));
  }
  return out;
}

Tensor logits(Model& m, const std::vector<int64_t>& tokens) {
  const std::vector<TokenId> ids = token_ids(tokens);
  const std::vector<float> all = m.logits(ids);
  return Tensor::from(all, {ids.size(), all.size() / ids.size()});
}

constexpr auto kNoProgress = [](size_t, size_t, std::string_view) {};

void quantise(const std::string& path, const std::string& out, const std::string& type,
              bool requantise) {
  const Released released;
  llm::check_output(path, out);
  llm::save_quantised_model(out, llm::model_as_gguf(path), {type, requantise}, kNoProgress);
}

void merge_lora(const std::string& path, const std::vector<std::pair<std::string, double>>& lora,
                const std::string& out, const std::string& type) {
  const Released released;
  llm::check_output(path, out);
  GgufModel model = llm::model_as_gguf(path);
  const llm::Config config = llm::read_config(model.content);
  for (const auto& [file, strength] : lora)
    model = llm::merged(std::move(model), llm::read_lora(file, config), strength);
  llm::save_quantised_model(out, std::move(model), {type, true}, kNoProgress);
}

void convert(const std::string& path, const std::string& out, const std::string& type) {
  if (!is_gguf(path)) return quantise(path, out, type, false);
  const Released released;
  llm::save_folder(out, load_gguf(path), llm::folder_options(type), kNoProgress);
}

}  // namespace

void bind_llm(nb::module_& m) {
  nb::class_<Model> c(m, "LanguageModel", "What weft.llm.Model is made of.");
  c.def(
      "__init__",
      [](Model* self, const std::string& path, int64_t context, int64_t slots,
         const std::string& cache, const std::string& factors, const std::string& draft,
         int64_t draft_tokens, const std::vector<std::pair<std::string, double>>& lora) {
        llm::ModelOptions options;
        for (const auto& [file, strength] : lora) options.lora.push_back({file, strength});
        options.context = context;
        options.slots = slots;
        options.cache = cache_type(cache);
        options.factors = factors_named(factors);
        options.draft_model = draft;
        options.draft_tokens = draft_tokens;
        const Released released;
        new (self) Model(path, options);
      },
      "path"_a, "context"_a = 4096, "slots"_a = 1, "cache"_a = "f16", "factors"_a = "auto",
      "draft"_a = "", "draft_tokens"_a = 0,
      "lora"_a = std::vector<std::pair<std::string, double>>(), nb::call_guard<PythonSite>());
  method(c, "submit", submit, "prompt"_a, "options"_a);
  method(c, "step", step);
  method(c, "cancel", &Model::cancel, "request"_a);
  method(c, "logits", logits, "tokens"_a);
  method(
      c, "embedding",
      [](Model& self, const std::vector<int64_t>& tokens) {
        return self.embedding(token_ids(tokens));
      },
      "tokens"_a);
  c.def_prop_ro("tokenizer", &Model::tokenizer, nb::rv_policy::reference_internal);
  c.def_prop_ro("name", &Model::model_name);
  c.def_prop_ro("context", &Model::context_length);
  c.def_prop_ro("counters", &Model::counters);
  m.def("quantize", quantise, "path"_a, "out"_a, "type"_a, "requantize"_a,
        nb::call_guard<PythonSite>(), "What weft.llm.quantize is made of.");
  m.def("merge_lora", merge_lora, "path"_a, "lora"_a, "out"_a, "type"_a,
        nb::call_guard<PythonSite>(), "What weft.llm.merge is made of.");
  m.def("convert", convert, "path"_a, "out"_a, "type"_a, nb::call_guard<PythonSite>(),
        "What weft.llm.convert is made of.");
}

}  // namespace weft::python
