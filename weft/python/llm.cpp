// Language models: weft.llm.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/llm/convert.h"
#include "weft/llm/lora.h"
#include "weft/llm/model.h"
#include "weft/llm/quantise_model.h"
#include "weft/llm/request_options.h"
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

/// Ids that are none are -1, which the model refuses.
bool taken(nb::handle value, std::vector<TokenId>& out) {
  std::vector<int64_t> ids;
  if (!nb::try_cast(value, ids)) return false;
  out = token_ids(ids);
  return true;
}
bool taken(nb::handle value, llm::TokenBiases& out) {
  std::map<int32_t, float> biases;
  if (!nb::try_cast(value, biases)) return false;
  out.assign(biases.begin(), biases.end());
  return true;
}
template <class T>
bool taken(nb::handle value, T& out) {
  return nb::try_cast(value, out);
}

void set_option(const llm::RequestOption& option, nb::handle given) {
  const bool schema = option.name == "json_schema" && nb::isinstance<nb::dict>(given);
  const nb::object value = schema ? nb::cast(json_of(given)) : nb::borrow(given);
  std::visit(
      [&](auto* x) {
        if (!taken(value, *x))
          fail_type("llm.options", "{} cannot be {}", option.name, nb::repr(given).c_str());
      },
      option.place);
}

/// Names and defaults.
nb::dict known_options() {
  llm::RequestPlan plan;
  nb::dict all;
  for (const llm::RequestOption& o : request_options(plan))
    std::visit([&](const auto* x) { all[nb::cast(std::string(o.name))] = nb::cast(*x); }, o.place);
  return all;
}

llm::RequestId submit(Model& m, const std::vector<int64_t>& prompt, const nb::dict& options) {
  llm::RequestPlan plan;
  const auto known = request_options(plan);
  for (const auto& [name, value] : options)
    set_option(find_option(known, nb::cast<std::string>(name)), value);
  check_options(known);
  llm::Request request = plan.made();
  request.prompt = token_ids(prompt);
  return m.submit(std::move(request));
}

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
                              llm::finish_name(p.finish), p.error));
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
  m.def("request_options", known_options, nb::call_guard<PythonSite>(),
        "Names and defaults of weft.llm.Options.");
  m.def("quantize", quantise, "path"_a, "out"_a, "type"_a, "requantize"_a,
        nb::call_guard<PythonSite>(), "What weft.llm.quantize is made of.");
  m.def("merge_lora", merge_lora, "path"_a, "lora"_a, "out"_a, "type"_a,
        nb::call_guard<PythonSite>(), "What weft.llm.merge is made of.");
  m.def("convert", convert, "path"_a, "out"_a, "type"_a, nb::call_guard<PythonSite>(),
        "What weft.llm.convert is made of.");
}

}  // namespace weft::python
