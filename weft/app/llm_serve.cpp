#include "weft/app/llm_serve.h"

#include "weft/llm/model.h"

#ifdef WEFT_NO_SERVE
#include "weft/base/error.h"

int weft::serve_generator(const Session&, llm::Generator&, const LlmServeOptions&) {
  fail("serve", "this weft was built without its server; build it with -DWEFT_SERVE=ON");
}

#else

#include "weft/app/app.h"
#include "weft/app/interrupt.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/serve/server.h"

namespace weft {

namespace {

std::string key_of(const LlmServeOptions& options) {
  if (options.api_key_file.empty()) return options.api_key;
  if (!options.api_key.empty())
    fail("serve.key", "both --api-key and --api-key-file {} are given; give one",
         options.api_key_file);
  const MappedFile file(options.api_key_file);
  std::string key(file.text().substr(0, file.text().find('\n')));
  if (key.ends_with('\r')) key.pop_back();
  if (key.empty())
    fail("serve.key", "the first line of {} is empty; it has to be the key", options.api_key_file);
  return key;
}

serve::ServeOptions serve_options(const LlmServeOptions& options) {
  serve::ServeOptions o{.host = options.host,
                        .port = static_cast<uint16_t>(options.port),
                        .api_key = key_of(options),
                        .model_name = options.alias,
                        .allowed_hosts = options.allow_hosts,
                        .allowed_origins = options.allow_origins,
                        .page = !options.no_page};
  o.limits.body_bytes = static_cast<size_t>(options.max_body_mb) << 20;
  o.limits.connections = static_cast<size_t>(options.max_connections);
  return o;
}

void announce(const Session& session, const serve::Server& server, const std::string& model) {
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("address", server.address()).field("model", model).end_object();
    session.print("{}\n", json.text());
  } else {
    session.print("{} at {}; the API at {}/v1; Ctrl-C stops\n", model,
                  session.bold(server.address()), server.address());
  }
  std::fflush(session.out);
}

}  // namespace

int serve_generator(const Session& session, llm::Generator& generator,
                    const LlmServeOptions& options) {
  serve::Server server(generator, serve_options(options));
  announce(session, server, options.alias.empty() ? generator.model_name() : options.alias);
  const InterruptScope interrupt;
  server.run([] { return InterruptScope::requested(); });
  return kExitOk;
}

}  // namespace weft

#endif

int weft::serve_llm(const Session& session, const LlmOptions& options) {
  llm::Model model = load_model(session, options);
  return serve_generator(session, model, options.serve);
}
