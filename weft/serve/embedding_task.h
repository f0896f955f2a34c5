// EmbeddingTask: one request for the embeddings of texts.
#pragma once

#include <memory>

#include "weft/serve/requests.h"
#include "weft/serve/service.h"

namespace weft::serve {

class EmbeddingTask final : public Task, public std::enable_shared_from_this<EmbeddingTask> {
 public:
  /// Throws Refusal and Error before it answers anything.
  static void start(Service& service, const EmbeddingRequest& request,
                    const std::shared_ptr<Exchange>& exchange);
  EmbeddingTask(Service& service, const EmbeddingRequest& request,
                const std::shared_ptr<Exchange>& exchange);

  void on_outcome(Outcome& outcome) override;
  void fail(const Refusal& refusal) override;

 private:
  void leave();

  Service& service_;
  std::shared_ptr<Exchange> exchange_;
  const bool base64_;
  const int64_t dimensions_;
  size_t tokens_ = 0;
  Ticket ticket_ = 0;
};

/// RFC 4648's base64, with padding.
std::string base64(std::string_view bytes);

}  // namespace weft::serve
