#include "weft/llm/trainer.h"

#include <algorithm>
#include <functional>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/llm/export_model.h"
#include "weft/llm/model.h"
#include "weft/nn/gradients.h"
#include "weft/nn/optim.h"
#include "weft/nn/schedules.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/random.h"
#include "weft/tensor/training.h"
#include "weft/tensor/transforms.h"

namespace weft::llm {

namespace {

using Part = TokenFile::Part;

constexpr int64_t kMostValidationTexts = 200;
constexpr const char* kCheckpoint = "/checkpoint.safetensors";

/// As in GPT-2 and its kin: matrices decay, vectors do not.
nn::OptimizerGroup optimizers_for(const std::vector<NamedTensor>& weights,
                                  const TrainerOptions& o) {
  std::vector<Tensor> hidden, tables, vectors;
  for (const NamedTensor& w : weights) {
    const bool of_layer = w.name.starts_with("blk.");
    (w.tensor.ndim() < 2 ? vectors : of_layer ? hidden : tables).push_back(w.tensor);
  }
  const nn::AdamOptions plain{.lr = o.lr, .beta2 = o.beta2};
  nn::AdamOptions decaying = plain;
  decaying.weight_decay = o.weight_decay;
  if (o.optimizer == "muon") {
    const nn::MuonOptions muon{
        .lr = o.lr, .weight_decay = o.weight_decay, .scale = nn::MuonOptions::Scale::LikeAdamW};
    return nn::OptimizerGroup(nn::Muon(hidden, muon), nn::adamw(tables, decaying),
                              nn::adamw(vectors, plain));
  }
  hidden.insert(hidden.end(), tables.begin(), tables.end());
  if (vectors.empty()) return nn::OptimizerGroup(nn::adamw(hidden, decaying));
  return nn::OptimizerGroup(nn::adamw(hidden, decaying), nn::adamw(vectors, plain));
}

nn::Schedule schedule_for(const TrainerOptions& o) {
  const int64_t rising = o.warmup < 0 ? std::min<int64_t>(100, o.steps / 10) : o.warmup;
  const nn::Schedule falling = nn::cosine(std::max<int64_t>(1, o.steps - rising), o.lr * o.last_lr);
  return rising > 0 ? nn::warmup(rising, falling) : falling;
}

Tensor number(uint32_t x) { return Tensor::from(std::span<const uint32_t>(&x, 1), {}); }

Tensor key_for(uint64_t seed) {
  return Tensor::from(
      std::vector<uint32_t>{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, {2});
}

std::vector<float> floats_named(const StateDict& state, const std::string& name) {
  for (const NamedTensor& t : state)
    if (t.name == name) return t.tensor.to_vector<float>();
  return {};
}

}  // namespace

struct Trainer::Learning {
  using Step = std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>;
  using Loss = std::function<Tensor(const Tensor&, const std::vector<Tensor>&)>;

  Learning(const Trained& trained, const TrainerOptions& o, TokenFile texts);
  Tensor loss_on(const Tensor& texts) const;
  std::vector<Tensor> step_on(const Tensor& texts, const Tensor& first_draw);
  Tensor texts_at(Part part, const std::vector<int64_t>& starts) const;
  Tensor next_batch();
  /// Draws of a step: dropout of embeddings, and three in each layer.
  uint32_t first_draw() const {
    return static_cast<uint32_t>(taken * options.accumulate * (3 * network.config().layers + 1));
  }
  void visit(StateVisitor& v) { v("optimizer", optimizers); }

  const TrainerOptions& options;
  int64_t context;
  Network network;
  nn::OptimizerGroup optimizers;
  std::vector<Tensor> parameters;
  nn::Schedule schedule;
  TokenFile tokens;
  WindowOrder order;
  int64_t taken = 0;
  Tensor key;  // of dropout's draws
  Jit<Step> captured_step;
  Jit<Loss> captured_loss;
};

Trainer::Learning::Learning(const Trained& trained, const TrainerOptions& o, TokenFile texts)
    : options(o),
      context(trained.context),
      network(trained.config, trained.weights, trained.context, Factors::F32, o.dtype == "bf16"),
      optimizers(optimizers_for(trained.parameters, o)),
      parameters(optimizers.params()),
      schedule(schedule_for(o)),
      tokens(std::move(texts)),
      order(tokens.size(Part::Training), context, o.seed),
      key(key_for(o.seed).realize()),
      captured_step([this](const Tensor& x, const Tensor& draw) { return step_on(x, draw); },
                    "train step"),
      captured_loss(
          [this](const Tensor& x, const std::vector<Tensor>&) { return loss_on(x).realize(); },
          "validation step") {
  if (tokens.size(Part::Validation) <= context)
    fail_runtime("train.data",
                 "there are {} tokens for validation, and a text has {}: give more text, a larger "
                 "share of it, or a model with a shorter context",
                 tokens.size(Part::Validation), context + 1);
}

/// Of every token but the first, from those before it: (rows, context + 1) to one number.
Tensor Trainer::Learning::loss_on(const Tensor& texts) const {
  const Tensor given = texts.index({Slice(), Slice(0, context)});
  const Tensor wanted = texts.index({Slice(), Slice(1, context + 1)}).flatten();
  const Tensor hidden = network.hidden(given, options.dropout).flatten(0, 1);
  return network.logits(hidden).sparse_categorical_crossentropy(wanted);
}

std::vector<Tensor> Trainer::Learning::step_on(const Tensor& texts, const Tensor& first_draw) {
  const TrainingScope training;
  const DrawScope draws(key, first_draw);
  optimizers.zero_grad();
  Tensor loss;
  if (options.accumulate > 1) {
    loss = accumulate_gradients([this](const Tensors& x) { return loss_on(x[0]); }, {texts},
                                options.accumulate);
  } else {
    loss = loss_on(texts);
    loss.backward();
  }
  const Tensor norm = options.clip > 0 ? nn::clip_gradient_norm(parameters, options.clip)
                                       : nn::gradient_norm(parameters);
  std::vector<Tensor> changed = optimizers.schedule_step();
  optimizers.zero_grad();  // what still has a name would be computed for its own sake
  changed.insert(changed.end(), {loss, norm});
  realize(changed);
  return {loss, norm};
}

Tensor Trainer::Learning::texts_at(Part part, const std::vector<int64_t>& starts) const {
  const auto length = static_cast<size_t>(context + 1);
  std::vector<int32_t> all(starts.size() * length);
  for (size_t i = 0; i < starts.size(); ++i)
    tokens.read(part, starts[i], std::span(all).subspan(i * length, length));
  return Tensor::from(all, {starts.size(), length});
}

Tensor Trainer::Learning::next_batch() {
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < options.batch; ++i)
    starts.push_back(order.start(taken * options.batch + i));
  return texts_at(Part::Training, starts);
}

namespace {

Trained new_training(const std::string& folder, uint64_t seed) {
  const std::string path = folder + "/config.json";
  const NewModel model = read_new_model(MappedFile(path).text(), path);
  const std::vector<NamedTensor> weights = new_weights(model, seed);
  return {model.config, Weights(weights), weights, model.config.context};
}

}  // namespace

Trainer::Trainer(std::string folder, const TrainerOptions& options, bool resume_it)
    : Trainer(folder, options, new_training(folder, options.seed), resume_it) {}

Trainer::Trainer(std::string folder, const TrainerOptions& options, Trained trained, bool resume_it)
    : folder_(std::move(folder)),
      tokenizer_json_(MappedFile(folder_ + "/tokenizer.json").text()),
      options_(options),
      trained_(std::move(trained)) {
  check();
  learning_ = std::make_unique<Learning>(
      trained_, options_, TokenFile(folder_ + "/tokens.safetensors", trained_.config.vocabulary));
  if (resume_it) resume();
}

Trainer::~Trainer() = default;

void Trainer::check() const {
  TrainerOptions o = options_;
  check_options(options_of(o));
  if (o.batch % o.accumulate != 0)
    fail("train.options", "a batch of {} cannot be cut into {} equal micro-batches", o.batch,
         o.accumulate);
  if (o.warmup >= o.steps)
    fail("train.options", "warmup is {} of {} steps: it is a part of them", o.warmup, o.steps);
}

int64_t Trainer::steps() const { return learning_->taken; }

int64_t Trainer::parameters() const {
  int64_t all = 0;
  for (const NamedTensor& w : trained_.parameters) all += w.tensor.numel();
  return all;
}

double Trainer::learning_rate() const { return learning_->schedule(options_.lr, steps() + 1); }

float Trainer::step() {
  Learning& l = *learning_;
  const double rate = learning_rate();
  for (size_t i = 0; i < l.optimizers.size(); ++i) l.optimizers[i].set_lr(rate);
  const std::vector<Tensor> made = l.captured_step(l.next_batch(), number(l.first_draw()));
  ++l.taken;
  history_.loss.push_back(made[0].item<float>());
  history_.gradient_norm.push_back(made[1].item<float>());
  return history_.loss.back();
}

double Trainer::validate() {
  Learning& l = *learning_;
  const int64_t context = trained_.context;
  const int64_t windows = (l.tokens.size(Part::Validation) - 1) / context;
  const int64_t rows = std::min(options_.batch / options_.accumulate, windows);
  const int64_t calls = std::max<int64_t>(1, std::min(windows, kMostValidationTexts) / rows);
  double sum = 0;
  for (int64_t call = 0; call < calls; ++call) {
    std::vector<int64_t> starts;
    for (int64_t i = call * rows; i < (call + 1) * rows; ++i)
      starts.push_back(i * windows / (calls * rows) * context);
    // Parameters are arguments: what is made of constants would be kept from the second call on,
    // and the first of a training that goes on be rounded in another way.
    sum += l.captured_loss(l.texts_at(Part::Validation, starts), l.parameters).item<double>();
  }
  history_.validated_at.push_back(static_cast<float>(steps()));
  history_.validation_loss.push_back(static_cast<float>(sum / static_cast<double>(calls)));
  return sum / static_cast<double>(calls);
}

std::string Trainer::sample(std::string_view prompt, int64_t tokens, uint64_t seed) const {
  ModelOptions options;
  options.context = trained_.context;
  options.cache = DType::F32;
  // Made anew each time: what its cache holds is of the weights as they were.
  Model model({trained_.config, trained_.weights}, text::Tokenizer::from_json(tokenizer_json_),
              options);
  Request request;
  request.prompt = model.tokenizer().encode(prompt);
  if (request.prompt.empty())
    request.prompt.push_back(trained_.config.end_tokens.empty() ? 0
                                                                : trained_.config.end_tokens[0]);
  request.max_tokens = tokens;
  request.sampling.seed = seed;
  std::string text(prompt);
  model.submit(std::move(request));
  while (!model.idle())
    for (const Progress& p : model.step()) {
      if (p.finish == Finish::Failed) fail_runtime("llm.step", "{}", p.error);
      text += p.text;
    }
  return text;
}

// ---- files

namespace {

/// What the course of a training depends on, as texts.
Metadata described(TrainerOptions course, uint64_t fingerprint) {
  Metadata all{{"tokens", std::to_string(fingerprint)}};
  for (const TrainingOption& o : options_of(course)) all.emplace(o.name, o.text());
  return all;
}

}  // namespace

void Trainer::save() const {
  StateDict all;
  for (const NamedTensor& w : trained_.parameters) all.push_back({"model." + w.name, w.tensor});
  for (const NamedTensor& t : state_dict(*learning_)) all.push_back(t);
  const auto curve = [&](const char* name, const std::vector<float>& values) {
    all.push_back({std::string("history.") + name, Tensor::from(values)});
  };
  curve("loss", history_.loss);
  curve("gradient_norm", history_.gradient_norm);
  curve("validated_at", history_.validated_at);
  curve("validation_loss", history_.validation_loss);
  save_tensors(folder_ + kCheckpoint, all, described(options_, learning_->tokens.fingerprint()));
  atomic_write_file(folder_ + "/log.jsonl", log());
}

void Trainer::resume() {
  const std::string path = folder_ + kCheckpoint;
  const LoadedTensors saved = load_tensors(path);
  for (const auto& [key, now] : described(options_, learning_->tokens.fingerprint())) {
    const auto then = saved.metadata.find(key);
    if (then == saved.metadata.end())
      fail_runtime("resume.metadata", "{}: it does not say its {}; it is no checkpoint of this",
                   path, key);
    if (then->second != now)
      fail("resume.options",
           "{}: was trained with {} = {}, this run has {}; the rest would be another training. Use "
           "the same, or begin in another folder",
           path, key, then->second, now);
  }
  load_state_dict(trained_.parameters, with_prefix(saved.tensors, "model."));
  load_state_dict(with_prefix(state_dict(*learning_), "optimizer."),
                  with_prefix(saved.tensors, "optimizer."));
  history_ = {floats_named(saved.tensors, "history.loss"),
              floats_named(saved.tensors, "history.gradient_norm"),
              floats_named(saved.tensors, "history.validated_at"),
              floats_named(saved.tensors, "history.validation_loss")};
  learning_->taken = static_cast<int64_t>(history_.loss.size());
}

std::string Trainer::log() const {
  const TrainingHistory& h = history_;
  std::string all;
  size_t validated = 0;
  for (size_t i = 0; i < h.loss.size(); ++i) {
    JsonWriter json;
    json.begin_object().field("step", i + 1).field("loss", h.loss[i]);
    json.field("gradient_norm", h.gradient_norm[i]);
    json.field("lr", learning_->schedule(options_.lr, static_cast<int64_t>(i) + 1));
    for (; validated < h.validated_at.size() &&
           h.validated_at[validated] <= static_cast<float>(i + 1);
         ++validated)
      json.field("validation_loss", h.validation_loss[validated]);
    all += json.end_object().take() + "\n";
  }
  return all;
}

void Trainer::export_model() const {
  llm::export_model(folder_, trained_.config, trained_.parameters);
}

void export_checkpoint(const std::string& folder) {
  const std::string config = folder + "/config.json";
  const NewModel model = read_new_model(MappedFile(config).text(), config);
  const StateDict weights = with_prefix(load_tensors(folder + kCheckpoint).tensors, "model.");
  const Network whole(model.config, Weights(weights), model.config.context);  // or says what lacks
  export_model(folder, model.config, weights);
}

}  // namespace weft::llm
