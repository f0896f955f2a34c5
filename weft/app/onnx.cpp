#include "weft/app/commands.h"
#include "weft/base/error.h"

namespace weft {

int run_onnx(const Session& session, const OnnxOptions& options) {
  if (options.action == "check") return check_onnx(session, options);
  if (options.action == "inspect") return inspect_onnx(session, options);
  if (options.action == "run") return run_onnx_model(session, options);
  if (options.action == "bench") return bench_onnx(session, options);
  if (options.action == "export") return export_onnx_model(session, options);
  if (options.action == "optimize") return optimize_onnx(session, options);
  internal_error("onnx", "the command {} has no function", options.action);
}

}  // namespace weft
