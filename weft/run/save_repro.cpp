#include "weft/run/save_repro.h"

#include "weft/base/context.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/base/version.h"
#include "weft/device/device.h"
#include "weft/graph/binary.h"
#include "weft/graph/index_value.h"
#include "weft/target/cpu_features.h"

namespace weft {
namespace {

ReproData data_of(NodeRef input, Buffer& buffer) {
  ReproData data{input->dtype, {}, {}};
  for (NodeRef d : input->shape->span()) data.shape.push_back(bound_value(d));
  data.bytes.resize(
      static_cast<size_t>(bytes_for(input->dtype, bound_numel(input->shape->span()))));
  buffer.device().copy_out(data.bytes, {&buffer, 0});
  return data;
}

/// All but the graph and the data.
Repro circumstances(Context& context, std::span<const BoundVariable> variables,
                    std::string_view failed) {
  Repro repro;
  repro.failed = failed;
  repro.build = strformat("{:016x}", build_id());
  repro.isa = CpuFeatures::of(context).newest_level();
  repro.options = repro_options(context.options());
  for (const BoundVariable& v : variables) repro.variables[v.name] = v.value;
  return repro;
}

}  // namespace

Repro repro_of(Context& context, const NormalForm& form,
               std::span<const std::shared_ptr<Buffer>> inputs, std::string_view failed) {
  Repro repro = circumstances(context, form.variables, failed);
  // With calls: written out, they are many times as long.
  repro.roots.assign(form.values.begin(), form.values.end());
  if (context.options().repro_data)
    for (size_t slot = 0; slot < inputs.size(); ++slot)
      repro.data[static_cast<int64_t>(slot)] = data_of(form.inputs[slot], *inputs[slot]);
  return repro;
}

Repro repro_of(Context& context, std::span<const std::byte> graph,
               std::span<const BoundVariable> variables, std::string_view failed) {
  Repro repro = circumstances(context, variables, failed);
  repro.roots = read_graph(*repro.graph, graph, "a captured graph");
  return repro;
}

std::string save_repro(Context& context, const Repro& repro) {
  const std::string& folder = context.options().repro;
  const std::string text = print_repro(repro);
  make_directories(folder);
  const std::string path = strformat("{}/weft-{:016x}.repro", folder, hash_text(text));
  if (!file_exists(path)) atomic_write_file(path, text);
  return path;
}

}  // namespace weft
