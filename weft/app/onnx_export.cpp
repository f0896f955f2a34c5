#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/functions.h"
#include "weft/onnx/export.h"

namespace weft {

int export_onnx_model(const Session& session, const OnnxOptions& options) {
  const MappedFile file(options.model);
  const CapturedFunction f = parse_function(file.bytes(), options.model);
  onnx::ExportOptions how;
  how.opset = options.opset;
  const onnx::Model model = onnx::export_onnx(f, how);
  onnx::save_onnx(options.output, model, {.external_data = options.external_data});
  const auto nodes = static_cast<int64_t>(model.graph.nodes.size());
  if (!session.json) {
    session.print("{} nodes, {} initialisers in {}\n", nodes, model.graph.initialisers.size(),
                  options.output);
    return kExitOk;
  }
  JsonWriter json;
  json.begin_object().field("file", options.output).field("nodes", nodes);
  session.print("{}\n", json.end_object().text());
  return kExitOk;
}

}  // namespace weft
