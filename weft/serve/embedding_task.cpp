#include "weft/serve/embedding_task.h"

#include <cmath>

#include "weft/base/format.h"
#include "weft/base/json_writer.h"

namespace weft::serve {

namespace {

constexpr std::string_view kRoute = "/v1/embeddings";

// The first so many numbers, of unit length again (Matryoshka embeddings, Kusupati et al. 2022).
void shorten(std::vector<float>& vector, int64_t dimensions) {
  if (dimensions == 0) return;
  if (static_cast<size_t>(dimensions) > vector.size())
    throw Refusal{
        400, "invalid_parameter", "dimensions",
        strformat("dimensions is {}; the model's embeddings have {}", dimensions, vector.size())};
  vector.resize(static_cast<size_t>(dimensions));
  double square = 0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) * scale);
}

void write_embedding(JsonWriter& json, const std::vector<float>& vector, bool as_base64) {
  if (as_base64) {
    json.value(
        base64({reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)}));
    return;
  }
  json.begin_array();
  // As a float prints: as a double it would have digits that mean nothing.
  for (const float x : vector) std::isfinite(x) ? json.raw(strformat("{}", x)) : json.null();
  json.end_array();
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += kDigits[group >> 18];
    out += kDigits[group >> 12 & 63];
    out += i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
  return out;
}

void EmbeddingTask::start(Service& service, const EmbeddingRequest& request,
                          const std::shared_ptr<Exchange>& exchange) {
  service.require_model(request.model);
  service.require_room(1);
  std::vector<std::vector<llm::TokenId>> texts;
  for (const Prompt& input : request.inputs)
    texts.push_back(input.is_text ? service.model().tokenizer.encode(input.text) : input.tokens);
  const auto task = std::make_shared<EmbeddingTask>(service, request, exchange);
  for (const auto& tokens : texts) task->tokens_ += tokens.size();
  task->ticket_ = service.open(task);
  service.loop().embed(task->ticket_, std::move(texts));
  exchange->when_abandoned([weak = std::weak_ptr(task)] {
    if (const auto self = weak.lock()) self->leave();
  });
}

EmbeddingTask::EmbeddingTask(Service& service, const EmbeddingRequest& request,
                             const std::shared_ptr<Exchange>& exchange)
    : service_(service),
      exchange_(exchange),
      base64_(request.base64),
      dimensions_(request.dimensions) {}

void EmbeddingTask::leave() {
  service_.loop().cancel(ticket_);
  service_.close(ticket_);
}

void EmbeddingTask::on_outcome(Outcome& outcome) {
  if (outcome.kind == Outcome::Kind::Refused) return fail(refusal_of(outcome.code, outcome.error));
  JsonWriter json;
  json.begin_object().field("object", "list").key("data").begin_array();
  try {
    for (size_t i = 0; i < outcome.embeddings.size(); ++i) {
      shorten(outcome.embeddings[i], dimensions_);
      json.begin_object().field("object", "embedding").field("index", i).key("embedding");
      write_embedding(json, outcome.embeddings[i], base64_);
      json.end_object();
    }
  } catch (const Refusal& refusal) {
    return fail(refusal);
  }
  json.end_array().field("model", service_.model().name).key("usage").begin_object();
  json.field("prompt_tokens", tokens_).field("total_tokens", tokens_).end_object().end_object();
  service_.close(ticket_);
  service_.count(kRoute, 200);
  exchange_->respond({200, json.take()});
}

void EmbeddingTask::fail(const Refusal& refusal) {
  leave();
  service_.count(kRoute, refusal.status);
  exchange_->respond(error_response(refusal));
}

}  // namespace weft::serve
