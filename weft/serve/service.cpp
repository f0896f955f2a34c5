#include "weft/serve/service.h"

#include <ctime>
#include <new>

#include "weft/base/format.h"
#include "weft/base/json_writer.h"
#include "weft/base/percent.h"
#include "weft/http/gate.h"
#include "weft/serve/completion_task.h"
#include "weft/serve/embedding_task.h"
#include "weft/serve/page.h"
#include "weft/serve/requests.h"

namespace weft::serve {

/// One request, on its way through the service.
struct Service::Call {
  const HttpRequest& request;
  const std::shared_ptr<Exchange>& exchange;
  std::string_view route;  // as metrics call it
};

struct Service::Route {
  std::string_view method, path;
  void (Service::*answer)(Call&);
  bool open = false;    // without a key
  bool prefix = false;  // the path goes on
};

const std::vector<Service::Route>& Service::routes() {
  static const std::vector<Route> kRoutes = {
      {"GET", "/health", &Service::health, true},
      {"GET", "/metrics", &Service::write_metrics},
      {"GET", "/v1/models", &Service::models},
      {"GET", "/v1/models/", &Service::one_model, false, true},
      {"POST", "/v1/chat/completions", &Service::chat},
      {"POST", "/v1/completions", &Service::completions},
      {"POST", "/v1/responses", &Service::responses},
      {"POST", "/v1/embeddings", &Service::embeddings},
      {"POST", "/tokenize", &Service::tokenize},
      {"POST", "/detokenize", &Service::detokenize},
      {"GET", "/", &Service::page, true, true},
  };
  return kRoutes;
}

namespace {

bool is_json(std::string_view content_type) {
  return equal_ignoring_case(content_type.substr(0, content_type.find(';')), "application/json");
}

}  // namespace

Service::Service(const ServeOptions& options, ModelFacts model, GeneratorLoop& loop)
    : options_(options),
      gate_{options.api_key, options.allowed_hosts, options.allowed_origins,
            ", or start it with --allow-host",
            "; start the server with --allow-origin if they are to"},
      model_(std::move(model)),
      loop_(loop),
      random_(std::random_device()()),
      created_(static_cast<int64_t>(std::time(nullptr))) {
  try {
    template_.emplace(model_.tokenizer);
  } catch (const Error& error) {
    template_error_ = error.message();
  }
}

void Service::handle(HttpRequest request, const std::shared_ptr<Exchange>& exchange) {
  Call call{request, exchange, "other"};
  exchange->add_field("X-Request-Id", new_id("req-"));
  for (auto& [name, value] : http::cross_origin_fields(request, gate_))
    exchange->add_field(name, value);
  Refusal refusal;
  try {
    return dispatch(call);
  } catch (const Refusal& refused) {
    refusal = refused;
  } catch (const Error& error) {
    refusal = refusal_of(error);
  } catch (const std::bad_alloc&) {
    refusal = refusal_of("memory", "the system has no more memory to give");
  }
  count(call.route, refusal.status);
  exchange->respond(error_response(refusal));
}

void Service::preflight(Call& call) {
  HttpResponse response{204, "", ""};
  response.fields = {{"Access-Control-Allow-Methods", "GET, POST"},
                     {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
                     {"Access-Control-Max-Age", "600"}};
  count("preflight", 204);
  call.exchange->respond(response);
}

void Service::dispatch(Call& call) {
  const std::string_view path = call.request.path();
  const std::string method = call.request.method == "HEAD" ? "GET" : call.request.method;
  const Route* route = nullptr;
  for (const Route& row : routes())
    if (route == nullptr && (row.prefix ? path.starts_with(row.path) : path == row.path))
      route = &row;
  const bool asks_first = method == "OPTIONS";
  const bool open = asks_first || (route != nullptr && route->open);
  if (auto refused = http::refused_at_gate(call.request, gate_, open)) {
    count(call.route, refused->status);
    return call.exchange->respond(*refused);
  }
  if (route == nullptr)
    throw Refusal{400, "invalid_target", "",
                  strformat("the target '{}' is no path", valid_start(call.request.target))};
  call.route = route->path;
  if (asks_first && call.request.count("Access-Control-Request-Method") != 0)
    return preflight(call);
  if (method != route->method) {
    call.exchange->add_field("Allow", route->method == "GET" ? "GET, HEAD" : "POST");
    throw Refusal{405, "method_not_allowed", "",
                  strformat("{} takes {}, not {}", route->path, route->method,
                            valid_start(call.request.method))};
  }
  if (method == "POST" && !is_json(call.request.field("Content-Type")))
    throw Refusal{415, "unsupported_media_type", "",
                  strformat("the Content-Type is '{}'; it has to be application/json",
                            valid_start(call.request.field("Content-Type")))};
  const std::string_view encoding = call.request.field("Content-Encoding");
  if (method == "POST" && !encoding.empty() && encoding != "identity")
    throw Refusal{415, "unsupported_media_type", "",
                  strformat("the Content-Encoding is '{}'; bodies are read as they are: send it "
                            "without",
                            valid_start(encoding))};
  if (method == "POST" && stopping_) throw Refusal{503, "overloaded", "", "the server is stopping"};
  (this->*route->answer)(call);
}

void Service::deliver(std::vector<Outcome> outcomes) {
  for (Outcome& outcome : outcomes) {
    const auto found = tasks_.find(outcome.ticket);
    if (found == tasks_.end()) continue;  // its client has gone
    const std::shared_ptr<Task> task = found->second.task;
    task->on_outcome(outcome);
  }
}

void Service::check_time(Time now) {
  const std::chrono::duration<double> most(options_.limits.answer_seconds);
  std::vector<std::shared_ptr<Task>> late;
  for (const auto& [ticket, entry] : tasks_)
    if (now - entry.since > most && (late.empty() || late.back() != entry.task))
      late.push_back(entry.task);
  for (const auto& task : late)
    task->fail({504, "timeout", "",
                strformat("the answer took longer than {} s", options_.limits.answer_seconds)});
}

void Service::fail_all(const Refusal& refusal) {
  while (!tasks_.empty()) {
    const std::shared_ptr<Task> task = tasks_.begin()->second.task;
    task->fail(refusal);
  }
}

void Service::require_room(size_t tickets) const {
  if (tasks_.size() + tickets <= options_.limits.choices_at_once) return;
  throw Refusal{429, "overloaded", "",
                strformat("{} answers are being given and {} more are asked for; at most {} are "
                          "at once",
                          tasks_.size(), tickets, options_.limits.choices_at_once)};
}

Ticket Service::open(std::shared_ptr<Task> task) {
  const Ticket ticket = ++last_ticket_;
  tasks_[ticket] = {std::move(task), std::chrono::steady_clock::now()};
  return ticket;
}

void Service::require_model(const std::string& name) const {
  if (name.empty() || name == model_.name) return;
  throw Refusal{
      404, "model_not_found", "model",
      strformat("model is '{}'; the one that is served is '{}'", valid_start(name), model_.name)};
}

std::vector<PromptPiece> Service::prompt_of(const CompletionRequest& request) const {
  if (!template_error_.empty()) throw Refusal{501, "no_chat_template", "", template_error_};
  return prompt_pieces(request, *template_, model_.tokenizer);
}

std::string Service::new_id(std::string_view prefix) {
  return strformat("{}{:016x}", prefix, random_());
}

void Service::health(Call& call) {
  const int status = stopping_ ? 503 : 200;
  count(call.route, status);
  call.exchange->respond({status, stopping_ ? R"({"status":"stopping"})" : R"({"status":"ok"})"});
}

void Service::write_metrics(Call& call) {
  count(call.route, 200);
  call.exchange->respond(
      {200, metrics_.text(loop_.counters()), "text/plain; version=0.0.4; charset=utf-8"});
}

namespace {

void write_model(JsonWriter& json, const ModelFacts& model, int64_t created) {
  json.begin_object().field("id", model.name).field("object", "model").field("created", created);
  json.field("owned_by", "weft").field("context_length", model.context_length).end_object();
}

}  // namespace

void Service::models(Call& call) {
  JsonWriter json;
  json.begin_object().field("object", "list").key("data").begin_array();
  write_model(json, model_, created_);
  count(call.route, 200);
  call.exchange->respond({200, json.end_array().end_object().take()});
}

void Service::one_model(Call& call) {
  const std::string name = percent_decoded(call.request.path().substr(call.route.size()));
  if (name.empty()) throw Refusal{404, "model_not_found", "model", "the path names no model"};
  require_model(name);
  JsonWriter json;
  write_model(json, model_, created_);
  count(call.route, 200);
  call.exchange->respond({200, json.take()});
}

void Service::chat(Call& call) {
  CompletionTask::start(*this, parse_chat_request(call.request.body, options_.limits),
                        call.exchange);
}

void Service::completions(Call& call) {
  CompletionTask::start(*this, parse_text_request(call.request.body, options_.limits),
                        call.exchange);
}

void Service::responses(Call& call) {
  CompletionTask::start(*this, parse_response_request(call.request.body, options_.limits),
                        call.exchange);
}

void Service::embeddings(Call& call) {
  EmbeddingTask::start(*this, parse_embedding_request(call.request.body, options_.limits),
                       call.exchange);
}

void Service::tokenize(Call& call) {
  const TokenizeRequest request = parse_tokenize_request(call.request.body);
  const auto ids = model_.tokenizer.encode(request.text, {.add_special_tokens = request.add_special,
                                                          .parse_special = request.parse_special});
  JsonWriter json;
  json.begin_object().field("count", ids.size()).field("max_model_len", model_.context_length);
  json.key("tokens").begin_array();
  for (const llm::TokenId id : ids) {
    if (!request.with_pieces) {
      json.value(id);
      continue;
    }
    json.begin_object().field("id", id);
    json.field("piece", model_.tokenizer.decode({{id}}, false)).end_object();
  }
  count(call.route, 200);
  call.exchange->respond({200, json.end_array().end_object().take()});
}

void Service::detokenize(Call& call) {
  const std::string text =
      model_.tokenizer.decode(parse_detokenize_request(call.request.body), false);
  JsonWriter json;
  json.begin_object().field("content", text).field("prompt", text).end_object();
  count(call.route, 200);
  call.exchange->respond({200, json.take()});
}

void Service::page(Call& call) {
  const auto file =
      options_.page ? http::find_page_file(page_files(), call.request.path()) : std::nullopt;
  if (!file)
    throw Refusal{404, "not_found", "",
                  strformat("there is nothing at '{}'", valid_start(call.request.path()))};
  count(call.route, 200);
  call.exchange->respond(
      {200, std::string(file->content), std::string(file->content_type), http::page_fields()});
}

}  // namespace weft::serve
