#include "tests/support/graph_forms.h"

#include "weft/base/error.h"
#include "weft/graph/binary.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

/// Every node may take this many bytes of the graph per byte of input, and the tables some more.
void check_memory(const Graph& graph, size_t input) {
  if (graph.bytes() > (size_t{1} << 20) + 2048 * input)
    internal_error("fuzz", "{} bytes of input became {} of graph", input, graph.bytes());
}

void check_accepted(Graph& graph, const std::vector<NodeRef>& roots) {
  (void)find_tensor_problem(roots);
  for (NodeRef n : roots) (void)find_kernel_problem(n);
  if (parse_graph(graph, print_graph(roots)) != roots)
    internal_error("fuzz", "the text form does not round-trip");
  if (read_graph(graph, write_graph(roots)) != roots)
    internal_error("fuzz", "the binary form does not round-trip");
}

template <class Read>
bool attempt(size_t input, Read read) {
  Graph graph;
  std::vector<NodeRef> roots;
  try {
    roots = read(graph);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
    check_memory(graph, input);
    return false;
  }
  check_memory(graph, input);
  check_accepted(graph, roots);
  return true;
}

}  // namespace

bool try_graph_file(std::span<const std::byte> data) {
  return attempt(data.size(), [data](Graph& g) { return read_graph(g, data, "input"); });
}

bool try_graph_text(std::string_view text) {
  return attempt(text.size(), [text](Graph& g) { return parse_graph(g, text, "input"); });
}

}  // namespace weft
