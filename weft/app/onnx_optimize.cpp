#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/base/json_writer.h"
#include "weft/onnx/optimise.h"
#include "weft/onnx/summary.h"
#include "weft/onnx/write.h"

namespace weft {

int optimize_onnx(const Session& session, const OnnxOptions& options) {
  const onnx::Model given = onnx::read_onnx(options.model);
  onnx::Optimisations done;
  const onnx::Model model = onnx::optimised(given, &done);
  onnx::save_onnx(options.output, model, {.external_data = options.external_data});
  const onnx::ModelSummary before = onnx::summarise(given), after = onnx::summarise(model);
  if (!session.json) {
    for (const auto& [what, count] : done) session.print("{:<40} {}\n", what, count);
    session.print("{:<40} {} to {}\n", "nodes", before.nodes, after.nodes);
    session.print("{:<40} {} to {}\n", "parameters", human_bytes(before.bytes),
                  human_bytes(after.bytes));
    return kExitOk;
  }
  JsonWriter json;
  json.begin_object().key("done").begin_object();
  for (const auto& [what, count] : done) json.field(what, count);
  json.end_object().field("nodes_before", before.nodes).field("nodes", after.nodes);
  json.field("bytes_before", before.bytes).field("bytes", after.bytes);
  session.print("{}\n", json.field("file", options.output).end_object().text());
  return kExitOk;
}

}  // namespace weft
