// ONNX models and tokenizers behind weft.h.
#include "weft/base/file.h"
#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/onnx/runner.h"
#include "weft/text/chat.h"
#include "weft/text/train_bpe.h"

namespace weft::c {

struct ModelObject {
  ModelObject(std::shared_ptr<ContextObject> of, const std::string& path)
      : owner(std::move(of)), run(path) {}

  std::shared_ptr<ContextObject> owner;  // outlives the model
  onnx::OnnxRunner run;
};

namespace {

void write_name(const std::vector<onnx::DeclaredValue>& from, size_t index, char* name,
                size_t capacity, size_t* length) {
  if (index >= from.size())
    refuse("model.index", "the model has {} of these: there is no number {}", from.size(), index);
  write_text(from[index].name, name, capacity, length);
}

}  // namespace

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_model_open(weft_context context, const char* path, weft_model* out) {
  return guarded([&] {
    const auto owner = object_of(context);
    const std::string file(required_text("path", path));
    require_pointer("out", out);
    const ContextScope scope(owner->context);
    *out = make_handle<weft_model>(std::make_shared<ModelObject>(owner, file));
  });
}

weft_status weft_model_counts(weft_model model, size_t* inputs, size_t* outputs) {
  return guarded([&] {
    const auto m = object_of(model);
    if (inputs) *inputs = m->run.inputs().size();
    if (outputs) *outputs = m->run.outputs().size();
  });
}

weft_status weft_model_input(weft_model model, size_t index, char* name, size_t capacity,
                             size_t* length) {
  return guarded(
      [&] { write_name(object_of(model)->run.inputs(), index, name, capacity, length); });
}

weft_status weft_model_output(weft_model model, size_t index, char* name, size_t capacity,
                              size_t* length) {
  return guarded(
      [&] { write_name(object_of(model)->run.outputs(), index, name, capacity, length); });
}

weft_status weft_model_call(weft_model model, const char* const* names, const weft_tensor* inputs,
                            size_t count, weft_tensor* outs, size_t capacity, size_t* out_count) {
  return guarded([&] {
    const auto m = object_of(model);
    auto owner = m->owner;
    const ContextScope scope(owner->context);
    require_pointer("names", names, count);
    const std::vector<Tensor> given = tensors_of(inputs, count, owner);
    onnx::NamedValues named;
    for (size_t i = 0; i < count; ++i)
      named[std::string(required_text("a name", names[i]))] = given[i];
    const auto& declared = m->run.outputs();
    if (out_count) *out_count = declared.size();
    if (declared.size() > capacity) refuse_space("model", declared.size(), capacity);
    require_pointer("outs", outs, declared.size());
    const onnx::NamedValues made = m->run(named);
    std::vector<Tensor> results;
    for (const onnx::DeclaredValue& output : declared) {
      const onnx::Value& y = made.at(output.name);
      if (y.kind() != onnx::Value::Kind::Tensor)
        fail_type("onnx.node",
                  "the output {} is no tensor, which this interface has alone; use C++",
                  output.name);
      results.push_back(y.tensor());
    }
    tensor_handles(owner, std::move(results), outs);
  });
}

weft_status weft_model_kernels(weft_model model, size_t* out) {
  return guarded([&] {
    const auto m = object_of(model);
    require_pointer("out", out);
    *out = m->run.kernels();
  });
}

void weft_model_release(weft_model model) { release_handle(model); }

weft_status weft_tokenizer_open(const char* path, weft_tokenizer* out) {
  return guarded([&] {
    const std::string file(required_text("path", path));
    require_pointer("out", out);
    auto tokenizer = std::make_shared<const text::Tokenizer>(text::Tokenizer::from_file(file));
    *out = make_handle<weft_tokenizer>(
        std::make_shared<TokenizerObject>(TokenizerObject{std::move(tokenizer)}));
  });
}

weft_status weft_tokenizer_encode(weft_tokenizer tokenizer, const char* text, bool special_tokens,
                                  int32_t* ids, size_t capacity, size_t* count) {
  return guarded([&] {
    const auto t = object_of(tokenizer);
    const std::string_view given = required_text("text", text);
    const auto made = t->tokenizer->encode(given, {.add_special_tokens = special_tokens});
    if (count) *count = made.size();
    if (!ids) return require_pointer("count", count);
    if (made.size() > capacity) refuse_space("ids", made.size(), capacity);
    std::copy(made.begin(), made.end(), ids);
  });
}

weft_status weft_tokenizer_decode(weft_tokenizer tokenizer, const int32_t* ids, size_t count,
                                  char* text, size_t capacity, size_t* length) {
  return guarded([&] {
    const auto t = object_of(tokenizer);
    require_pointer("ids", ids, count);
    write_text(t->tokenizer->decode({ids, count}), text, capacity, length);
  });
}

weft_status weft_tokenizer_chat(weft_tokenizer tokenizer, const char* messages, const char* tools,
                                char* text, size_t capacity, size_t* length) {
  return guarded([&] {
    const auto t = object_of(tokenizer);
    const std::string_view given = required_text("messages", messages);
    const text::ChatTemplate form(*t->tokenizer);
    write_text(form.prompt(given, {.tools = tools ? tools : ""}), text, capacity, length);
  });
}

void weft_tokenizer_release(weft_tokenizer tokenizer) { release_handle(tokenizer); }

weft_status weft_tokenizer_train(const char* path, const char* const* texts, size_t count,
                                 size_t vocab_size, const char* const* special_tokens) {
  return guarded([&] {
    const std::string file(required_text("path", path));
    require_pointer("texts", texts, count);
    text::BpeTraining options{.vocab_size = vocab_size};
    for (; special_tokens && *special_tokens; ++special_tokens)
      options.special_tokens.emplace_back(*special_tokens);
    text::BpeTrainer trainer(std::move(options));
    for (size_t i = 0; i < count; ++i) trainer.add(required_text("texts", texts[i]));
    atomic_write_file(file, trainer.train());
  });
}

}  // extern "C"
