// How messages of ONNX files are read; model.h is what users see.
#pragma once

#include "weft/onnx/external_data.h"
#include "weft/onnx/model.h"
#include "weft/onnx/wire.h"

namespace weft::onnx {

/// Where the bytes are from.
struct Source {
  std::string_view what;              // in errors
  std::shared_ptr<const void> owner;  // of the bytes
  ExternalData external;
};

ConstantData read_tensor(WireReader message, Source& source);
SparseData read_sparse(WireReader message, Source& source);
DeclaredType read_type(WireReader message);

/// Puts nodes in an order in which everything is made before it is used and lists what is from
/// around them. `names`: those that are there before. An Error (code "onnx.graph") for cycles and
/// for names that are made twice.
std::vector<std::string> order_nodes(std::vector<Node>& nodes, std::vector<std::string_view> names,
                                     std::string_view what);
/// The same of a graph, into its captures.
void order_graph(Graph& graph, std::string_view what);
/// An Error where something is read that nothing makes.
void require_closed(const std::vector<Node>& nodes, const std::vector<std::string>& captures,
                    std::string_view what);

}  // namespace weft::onnx
