// `weft llm convert` and `weft llm quantize`: models from one kind of file to another.
#include <optional>

#include "weft/app/app.h"
#include "weft/app/llm_options.h"
#include "weft/app/progress.h"
#include "weft/base/context.h"
#include "weft/base/json_writer.h"
#include "weft/llm/convert.h"
#include "weft/llm/lora.h"
#include "weft/llm/model.h"
#include "weft/llm/quantise_model.h"

namespace weft {

namespace {

/// Of what is done tensor by tensor; of how many, the first call says.
class TensorBar {
 public:
  TensorBar(const Session& session, std::string what) : session_(session), what_(std::move(what)) {}
  void operator()(size_t done, size_t all, std::string_view name) {
    if (!bar_)
      bar_.emplace(what_, static_cast<int64_t>(all), "tensors", session_.context.options(),
                   session_.err);
    bar_->update(static_cast<int64_t>(done), name);
    if (done == all) bar_->finish();
  }

 private:
  const Session& session_;
  std::string what_;
  std::optional<ProgressBar> bar_;
};

int to_gguf(const Session& session, const LlmOptions& o, GgufModel model, bool requantise) {
  TensorBar bar(session, o.action);
  const llm::QuantisedSizes sizes = llm::save_quantised_model(
      o.output, std::move(model), {.mix = o.type, .requantise = requantise}, bar);
  if (!session.json) {
    session.print("{}: {} in {:.1f} MiB, {:.1f} before\n", o.output,
                  o.type.empty() ? "as it was" : o.type, static_cast<double>(sizes.after) / 0x1p20,
                  static_cast<double>(sizes.before) / 0x1p20);
    return kExitOk;
  }
  JsonWriter json;
  json.begin_object().field("path", o.output).field("type", o.type);
  json.field("bytes_before", sizes.before).field("bytes", sizes.after);
  session.print("{}\n", json.end_object().text());
  return kExitOk;
}

int to_folder(const Session& session, const LlmOptions& o, const GgufModel& model) {
  TensorBar bar(session, o.action);
  llm::save_folder(o.output, model, llm::folder_options(o.type), bar);
  if (!session.json) {
    session.print("{}: config.json, model.safetensors, tokenizer.json\n", o.output);
    return kExitOk;
  }
  session.print("{}\n", JsonWriter().begin_object().field("path", o.output).end_object().text());
  return kExitOk;
}

}  // namespace

int convert_llm(const Session& session, const LlmOptions& o) {
  llm::check_output(o.model, o.output);
  if (o.action == "convert" && is_gguf(o.model)) return to_folder(session, o, load_gguf(o.model));
  return to_gguf(session, o, llm::model_as_gguf(o.model), o.requantise);
}

int merge_llm(const Session& session, const LlmOptions& o) {
  llm::check_output(o.model, o.output);
  GgufModel model = llm::model_as_gguf(o.model);
  const llm::Config config = llm::read_config(model.content);
  for (const llm::LoraFile& file : lora_files(o))
    model = llm::merged(std::move(model), llm::read_lora(file.path, config), file.strength);
  return o.output.ends_with(".gguf") ? to_gguf(session, o, std::move(model), true)
                                     : to_folder(session, o, model);
}

}  // namespace weft
