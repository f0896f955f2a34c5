// How much a program does: operations and bytes, where sizes are static.
#include <algorithm>
#include <cmath>

#include "weft/base/small_vector.h"
#include "weft/lower/steps.h"

namespace weft::lower {
namespace {

double operations(NodeRef n) {
  // Per lane of the sum: products and additions of what a word holds, of tiles of each in a row.
  if (n->op == Op::TileDot2) return 4 * std::sqrt(n->lanes);
  if (n->op == Op::TileDot4 || n->op == Op::TileDot4Signed) return 8 * std::sqrt(n->lanes);
  if (n->op == Op::Dot4 || n->op == Op::DotPairs) return 8;
  if (!is_alu(n->op) || !is_float(n->dtype)) return 0;
  if (n->op == Op::Cast || n->op == Op::Bitcast || n->op == Op::Where) return 0;
  if (n->op == Op::Dot2) return 4;
  return n->op == Op::MulAcc ? 2 : 1;
}

/// Of the groups; symbolic axes of the grid count once.
double items_launched(const Launch& launch) {
  auto items = static_cast<double>(launch.items());
  for (NodeRef size : launch.grid)
    if (size && size->op == Op::Const) items *= static_cast<double>(size->vmin);
  return items;
}

struct Traffic {
  double read = 0, written = 0;
};

/// Elements touched are at most the accesses made, and at most what there is.
double distinct(double accesses, NodeRef param) {
  if (param->nsrc == 0 || param->src(0)->op != Op::Const) return accesses;
  return std::min(accesses, static_cast<double>(param->src(0)->vmin));
}

}  // namespace

void estimate_work(LinearProgram& program, std::span<const NodeRef> kernel) {
  std::vector<Traffic> traffic(program.params.size());
  SmallVector<double, 16> times{items_launched(program.launch)};
  for (NodeRef n : program.code) {
    if (n->op == Op::Range) {
      // Loops that masks skip count in full: how often is not known here.
      NodeRef size = n->src(0)->op == Op::Where ? n->src(0)->src(1) : n->src(0);
      const bool is_static = size->op == Op::Const;
      times.push_back(times.back() * (is_static ? static_cast<double>(size->vmin) : 1.0));
    } else if (n->op == Op::EndRange) {
      times.pop_back();
    } else if (n->op == Op::Load || n->op == Op::TileLoad || n->op == Op::Store) {
      if (n->src(0)->op != Op::Param) continue;
      Traffic& t = traffic[static_cast<size_t>(param_slot(n->src(0)))];
      // A load of words takes several elements for each.
      const double each = n->op == Op::Store ? 1 : bits(n->dtype) / bits(n->src(0)->dtype);
      (n->op == Op::Store ? t.written : t.read) += times.back() * n->lanes * each;
    } else {
      program.flops += operations(n) * times.back() * n->lanes;
    }
  }
  for (NodeRef n : kernel) {
    if (n->op != Op::Param) continue;
    const Traffic& t = traffic[static_cast<size_t>(param_slot(n))];
    const double bytes = bits(n->dtype) / 8.0;
    program.bytes += bytes * (distinct(t.read, n) + distinct(t.written, n));
  }
}

}  // namespace weft::lower
