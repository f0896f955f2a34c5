#include <algorithm>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "weft/app/command_line.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/llm/request_options.h"
#include "weft/llm/training_options.h"

namespace weft {

namespace {

constexpr int kAnyNumber = CLI::detail::expected_max_vector_size;  // of values

CLI::Option* add_lora(CLI::App* sub, LlmOptions& o) {
  CLI::Option* lora = sub->add_option(
      "--lora", o.lora, "an adapter: a GGUF file, or a folder of PEFT's; several add up");
  lora->allow_extra_args(false);  // what follows is the model
  sub->add_option("--lora-scale", o.lora_scales, "how much each of them counts")
      ->allow_extra_args(false)
      ->needs(lora);
  return lora;
}

CLI::App* llm_command(CLI::App& llm, CommandLine& line, const char* name, const char* what) {
  CLI::App* sub = subcommand(llm, line, name, what);
  LlmOptions& o = line.llm;
  sub->add_option("model", o.model, "a GGUF file, or a folder with config.json and safetensors")
      ->required();
  sub->add_option("--context", o.context, "tokens of a text; 0: as many as the model can")
      ->check(in_range<int64_t>(0))
      ->capture_default_str();
  sub->add_option("--cache", o.cache, "numbers that keys and values are kept in")
      ->check(CLI::IsMember({"f16", "f32", "q8"}))
      ->capture_default_str();
  sub->add_option(
         "--factors", o.factors,
         "what factors of products with weights are rounded to; auto: to 8 bits (q8) where "
         "the machine multiplies bytes")
      ->check(CLI::IsMember({"auto", "f32", "bf16", "q8"}))
      ->capture_default_str();
  add_lora(sub, o);
  add_machine_options(sub, line);
  return sub;
}

void add_drafts(CLI::App* sub, LlmOptions& o) {
  CLI::Option* draft = sub->add_option("--draft", o.draft,
                                       "a smaller model with the same tokens, whose guesses are "
                                       "checked several at once; answers stay the same");
  sub->add_flag("--lookup", o.lookup, "likewise guess what followed in the text so far")
      ->excludes(draft);
  sub->add_option("--draft-tokens", o.draft_tokens, "guesses for a step, at most")
      ->check(in_range<int64_t>(1, 5))
      ->capture_default_str();
}

/// Names besides an option's own.
std::string other_names(std::string_view name) {
  if (name == "max_tokens") return "-n,--tokens,";
  return name == "temperature" ? "--temp," : "";
}

/// A grammar and a schema may stand in a file; neither begins with an @.
std::vector<std::string> read_files(const llm::RequestOption& o, std::vector<std::string> texts) {
  if (o.name != "grammar" && o.name != "json_schema") return texts;
  for (std::string& text : texts)
    if (text.starts_with('@')) text = MappedFile(text.substr(1)).text();
  return texts;
}

void set_option(const llm::RequestOption& o, const std::vector<std::string>& typed) {
  const std::vector<std::string> texts = read_files(o, typed);
  try {
    o.set(texts);
  } catch (const Error& error) {
    throw CLI::ValidationError(error.message());
  }
}

/// A flag says what is not so by default.
void add_flag(CLI::App* sub, const std::string& name, const llm::RequestOption& o, bool* place) {
  if (*place)
    sub->add_flag("--no-" + name + "{false}", *place, "not: " + std::string(o.what));
  else
    sub->add_flag("--" + name, *place, std::string(o.what));
}

/// The list that all faces have.
void add_request_options(CLI::App* sub, llm::RequestPlan& plan) {
  for (const llm::RequestOption& o : request_options(plan)) {
    std::string name(o.name);
    std::ranges::replace(name, '_', '-');
    if (const auto* flag = std::get_if<bool*>(&o.place)) {
      add_flag(sub, name, o, *flag);
      continue;
    }
    const bool file = o.name == "grammar" || o.name == "json_schema";
    const auto set = [o](const std::vector<std::string>& texts) {
      return set_option(o, texts), true;
    };
    CLI::Option* option = sub->add_option(other_names(o.name) + "--" + name, set,
                                          std::string(o.what) + (file ? "; @FILE: in a file" : ""));
    option->type_name(o.type_name())->default_str(o.text());
    if (o.several()) option->expected(1, kAnyNumber)->allow_extra_args(false);
  }
}

void add_llm_serve(CLI::App* sub, LlmOptions& o) {
  LlmServeOptions& s = o.serve;
  sub->add_option("--slots", o.slots, "requests that are answered at once; others wait")
      ->check(in_range<int64_t>(1, 256))
      ->capture_default_str();
  sub->add_option("--host", s.host, "an address; other than this machine's own: needs a key")
      ->capture_default_str();
  sub->add_option("--port", s.port, "0: any that is free")
      ->check(in_range<int64_t>(0, 65535))
      ->capture_default_str();
  sub->add_option("--api-key", s.api_key, "that clients have to send");
  sub->add_option("--api-key-file", s.api_key_file, "a file whose first line is the key");
  sub->add_option("--alias", s.alias, "what the model is called");
  sub->add_option("--allow-host", s.allow_hosts, "a name by which the server is reached")
      ->allow_extra_args(false);
  sub->add_option("--allow-origin", s.allow_origins, "of pages elsewhere that may ask")
      ->allow_extra_args(false);
  sub->add_flag("--no-page", s.no_page, "the API only");
  sub->add_option("--max-body-mb", s.max_body_mb, "of a request")
      ->check(in_range<int64_t>(1, 1024))
      ->capture_default_str();
  sub->add_option("--max-connections", s.max_connections, "at once")
      ->check(in_range<int64_t>(1, 65536))
      ->capture_default_str();
}

std::vector<std::string> words_of(std::string_view choices) {
  std::vector<std::string> words;
  for (const auto word : std::views::split(choices, '|'))
    words.emplace_back(word.begin(), word.end());
  return words;
}

/// The options that all faces have: a value in the list is where the option's goes.
void add_training_options(CLI::App* sub, std::span<const llm::TrainingOption> options) {
  for (const llm::TrainingOption& o : options) {
    std::string name = "--" + std::string(o.name);
    std::ranges::replace(name, '_', '-');
    const auto add = [&](auto* value) {
      using T = std::decay_t<decltype(*value)>;
      CLI::Option* option = sub->add_option(name, *value, std::string(o.what));
      if constexpr (std::is_arithmetic_v<T>)
        option->check(in_range<T>(static_cast<T>(o.least), static_cast<T>(o.most)));
      if (!o.choices.empty()) option->check(CLI::IsMember(words_of(o.choices)));
      if (o.name == "data") return void(option->expected(1, -1));
      if constexpr (std::is_same_v<T, std::vector<std::string>>) option->delimiter(',');
      option->capture_default_str();
    };
    std::visit(add, o.place);
  }
}

/// What comes out, and what is seen in between.
void add_training_course(CLI::App* sub, CommandLine& line) {
  LlmTrainOptions& t = line.llm.train;
  sub->add_option("-o,--out", line.llm.output, "the folder for all that is made")->required();
  sub->add_option("--every", t.every, "steps between validations, samples and checkpoints")
      ->check(in_range<int64_t>(1))
      ->capture_default_str();
  sub->add_option("--prompt", t.prompt, "what samples go on from");
  sub->add_option("--sample", t.sample_tokens, "tokens of a sample; 0: none")
      ->check(in_range<int64_t>(0))
      ->capture_default_str();
  sub->add_option("--tensorboard", t.tensorboard,
                  "write losses and speed to this folder, for `tensorboard --logdir`")
      ->type_name("DIR");
  sub->add_flag("--resume", t.resume, "go on from the folder's checkpoint, with equal options");
  add_machine_options(sub, line);
}

void add_llm_finetune(CLI::App* sub, CommandLine& line) {
  sub->add_option("model", line.llm.model, "a GGUF file, packed or not, or a folder")->required();
  add_training_options(sub, finetuning_options(line.llm.train.plan));
  add_training_course(sub, line);
}

void add_llm_train(CLI::App* sub, CommandLine& line) {
  LlmTrainOptions& t = line.llm.train;
  add_training_options(sub, training_options(t.plan));
  add_training_course(sub, line);
  sub->add_flag("--export", t.export_only, "only write the checkpoint's model, as it is")
      ->excludes("--resume");
}

}  // namespace

void add_llm(CLI::App& app, CommandLine& line) {
  CLI::App* llm = app.add_subcommand("llm", "run, train, time and look at language models");
  llm->require_subcommand(1);
  LlmOptions& o = line.llm;
  CLI::App* run = llm_command(*llm, line, "run", "go on with a text");
  CLI::Option* prompt =
      run->add_option("-p,--prompt", o.prompt, "the text; -: from standard input");
  CLI::Option* file = run->add_option("-f,--file", o.file, "a file with the text");
  file->type_name("FILE")->excludes(prompt);
  run->callback([=] {
    if (prompt->empty() && file->empty()) throw CLI::RequiredError("--prompt or --file");
  });
  add_request_options(run, o.answer);
  add_drafts(run, o);
  CLI::App* serve = llm_command(*llm, line, "serve", "answer as OpenAI's API does; a chat page");
  add_llm_serve(serve, o);
  add_drafts(serve, o);
  CLI::App* chat = llm_command(*llm, line, "chat", "talk with a model");
  chat->add_option("--system", o.system, "what the model is told about its part");
  add_request_options(chat, o.answer);
  add_drafts(chat, o);
  CLI::App* bench = llm_command(*llm, line, "bench", "tokens per second, memory, first token");
  bench->add_option("-n,--tokens", o.tokens, "that are generated for a measurement")
      ->check(in_range<int64_t>(1))
      ->capture_default_str();
  bench->add_option("--slots", o.slots, "measure 1, 2, 4, ... requests at once, up to this")
      ->check(in_range<int64_t>(1, 256))
      ->capture_default_str();
  bench->add_option("--repeats", o.repeats, "measurements; the median counts")
      ->check(in_range<int64_t>(1, 1000))
      ->capture_default_str();
  bench->add_option("--against", o.against, "a peer measured in turns with weft")
      ->check(CLI::IsMember({"llama.cpp"}));
  bench->add_option("--python", o.python, "the Python that has llama-cpp-python")
      ->capture_default_str();
  llm_command(*llm, line, "inspect", "what a model is: family, sizes, formats, memory");
  CLI::App* perplexity = llm_command(*llm, line, "perplexity", "how well a model knows a text");
  perplexity->add_option("file", o.file, "a text file")->required();
  CLI::App* convert =
      subcommand(*llm, line, "convert", "a folder of Hugging Face's to a GGUF file, or back");
  convert->add_option("model", o.model, "a folder with config.json and safetensors, or a GGUF file")
      ->required();
  convert->add_option(
      "--type", o.type,
      "of matrices: a mix of formats, as llama.cpp calls them (F16, BF16, F32, "
      "Q8_0, Q4_K_M, ...); of a folder F32, F16 or BF16; else they stay as they are");
  convert->add_option("-o,--out", o.output, "the GGUF file or the folder to write")->required();
  CLI::App* merge = subcommand(*llm, line, "merge", "put adapters into a model's weights");
  merge->add_option("model", o.model, "a GGUF file, or a folder of Hugging Face's")->required();
  add_lora(merge, o)->required();
  merge->add_option("--type", o.type, "as of quantize; else each matrix keeps its format");
  merge->add_option("-o,--out", o.output, "a GGUF file to write; without .gguf: a folder")
      ->required();
  CLI::App* quantise = subcommand(*llm, line, "quantize", "write a GGUF file with fewer bits");
  quantise->add_option("model", o.model, "a GGUF file, or a folder of Hugging Face's")->required();
  quantise->add_option("--type", o.type, "a mix of formats, as llama.cpp calls them: Q4_K_M, ...")
      ->required();
  quantise->add_flag("--requantize", o.requantise, "matrices that are packed already, too");
  quantise->add_option("-o,--out", o.output, "the GGUF file to write")->required();
  add_llm_train(subcommand(*llm, line, "train", "a model of your own, from texts"), line);
  add_llm_finetune(
      subcommand(*llm, line, "finetune", "an adapter beside a model's weights, from texts"), line);
  CLI::App* random = subcommand(*llm, line, "random", "write a model of random weights");
  random->add_option("--shape", o.shape, "which sizes")->capture_default_str();
  random->add_option("--type", o.type, "block format of matrices")->default_str("Q4_K");
  random->add_option("--seed", o.seed, "the same gives the same file")
      ->check(in_range<int64_t>(0))
      ->capture_default_str();
  random->add_option("-o,--out", o.output, "the GGUF file to write")->required();
}

}  // namespace weft
