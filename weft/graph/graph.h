// Graph: owns interned nodes. A context has one shared, swept graph for tensors; each kernel is
// lowered in a private one, freed whole.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/graph/node.h"

namespace weft {

/// What identifies a node besides its sources.
struct NodeSpec {
  Op op;
  DType dtype;
  std::span<const NodeRef> src;
  std::span<const int64_t> ints = {};
  std::string_view text = {};
  uint16_t lanes = 1;
};

class Graph {
 public:
  enum class Sharing : uint8_t { Private, Shared };
  explicit Graph(Sharing sharing = Sharing::Private);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Interns exactly this node, computing shape, device and bounds from the sources. Simplifies
  /// nothing.
  NodeRef intern(const NodeSpec& spec);

  /// The node `spec` means in normal form: index arithmetic is affine-normalised, integer and bool
  /// constants are folded, commutative operands are ordered. This is what builders and rewriting
  /// call.
  NodeRef make(const NodeSpec& spec);
  NodeRef make(Op op, DType dtype, std::initializer_list<NodeRef> src,
               std::initializer_list<int64_t> ints = {});

  /// `n` with other sources, through make().
  NodeRef with_sources(NodeRef n, std::span<const NodeRef> src);
  /// A node of another graph, copied into this one (iteratively).
  NodeRef import(NodeRef root) { return import_all({&root, 1})[0]; }
  std::vector<NodeRef> import_all(std::span<const NodeRef> roots);

  // ---- leaves
  NodeRef constant(Value v);
  NodeRef index(int64_t v);
  NodeRef boolean(bool v);
  NodeRef variable(std::string_view name, int64_t min, int64_t max, int64_t multiple = 1);
  NodeRef range(NodeRef size, int64_t id, Binding binding = Binding::Loop, size_t axis = 0);
  NodeRef range(int64_t size, int64_t id, Binding binding = Binding::Loop);
  NodeRef param(int64_t slot, DType dtype, std::span<const NodeRef> dims, DeviceId device = 0);
  NodeRef buffer(int64_t id, DType dtype, std::span<const NodeRef> dims, DeviceId device);
  /// The same for an id that no node has: nothing is looked for.
  NodeRef new_buffer(int64_t id, DType dtype, const Shape* shape, DeviceId device);

  // ---- elementwise: dtype and shape follow from the operands
  NodeRef alu(Op op, std::initializer_list<NodeRef> src);
  NodeRef add(NodeRef a, NodeRef b) { return alu(Op::Add, {a, b}); }
  NodeRef sub(NodeRef a, NodeRef b);
  NodeRef mul(NodeRef a, NodeRef b) { return alu(Op::Mul, {a, b}); }
  NodeRef idiv(NodeRef a, NodeRef b) { return alu(Op::IDiv, {a, b}); }
  NodeRef mod(NodeRef a, NodeRef b) { return alu(Op::Mod, {a, b}); }
  NodeRef lt(NodeRef a, NodeRef b) { return alu(Op::Lt, {a, b}); }
  NodeRef le(NodeRef a, NodeRef b) { return alu(Op::Le, {a, b}); }
  NodeRef eq(NodeRef a, NodeRef b) { return alu(Op::Eq, {a, b}); }
  NodeRef logical_and(NodeRef a, NodeRef b) { return alu(Op::And, {a, b}); }
  NodeRef where(NodeRef c, NodeRef a, NodeRef b) { return alu(Op::Where, {c, a, b}); }
  NodeRef cast(NodeRef x, DType to);

  // ---- shapes
  const Shape* shape(std::span<const NodeRef> dims);
  const Shape* scalar_shape();

  // ---- lifetime (shared graphs): a rooted node and all it reaches survive sweep()
  void retain(NodeRef n) const { n->roots.fetch_add(1, std::memory_order_relaxed); }
  void release(NodeRef n) const { n->roots.fetch_sub(1, std::memory_order_release); }
  /// What is done while other threads are in Building scopes. Who holds a lock that they may need
  /// must not wait for them.
  enum class Wait : uint8_t { UntilTheyEnd, Never };
  /// Frees every node no rooted node reaches; returns how many: 0 while the calling thread itself
  /// builds, none where another one does and is not waited for. Ids of freed Buffer nodes are
  /// appended to `freed_buffers`.
  std::optional<size_t> sweep(std::vector<int64_t>* freed_buffers = nullptr,
                              Wait wait = Wait::UntilTheyEnd);
  /// Which of `nodes` some root reaches, when the roots in `except` count only for what they hold
  /// beyond their own handle: a node of `except` is a root only if it has more handles than times
  /// it is listed. Waits for other threads' Building scopes to end.
  std::vector<bool> reachable(std::span<const NodeRef> nodes, std::span<const NodeRef> except);
  /// True when no node reads Buffer node `n` and it has at most `handles` handles: O(1), but false
  /// for as long as unswept garbage reads it, and where Wait::Never cannot tell.
  bool unread(NodeRef n, uint32_t handles, Wait wait = Wait::UntilTheyEnd) {
    return unread({&n, 1}, handles, wait);
  }
  bool unread(std::span<const NodeRef> nodes, uint32_t handles,
              Wait wait = Wait::UntilTheyEnd);  ///< of each of them
  size_t live_nodes() const;
  size_t bytes() const;

  /// While a thread builds (holds nodes that nothing roots yet), sweeps wait. Re-entrant per
  /// thread.
  class Building {
   public:
    explicit Building(Graph& g);
    ~Building();
    /// Whether this thread is in such a scope.
    static bool in_progress(const Graph& g);
    Building(const Building&) = delete;
    Building& operator=(const Building&) = delete;

   private:
    Graph& graph_;
  };

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `chain`, whose first sources lead to `from`, on `to` instead: the same view of another array.
NodeRef rebase(Graph& g, NodeRef chain, NodeRef from, NodeRef to);

/// The nodes `root` reaches, each after its sources, of a private graph that nobody else walks: the
/// nodes hold their numbers themselves, so that nothing is hashed. Another one over the same nodes
/// takes the numbers away; asking for them is then an InternalError.
class NumberedOrder {
 public:
  explicit NumberedOrder(NodeRef root);
  std::span<const NodeRef> nodes() const { return order_; }
  size_t size() const { return order_.size(); }
  bool contains(NodeRef n) const { return n->mark < order_.size() && order_[n->mark] == n; }
  /// The position of `n` in nodes().
  size_t index(NodeRef n) const {
    if (!contains(n)) not_numbered(n);
    return n->mark;
  }

 private:
  [[noreturn]] static void not_numbered(NodeRef n);

  std::vector<NodeRef> order_;
};

/// The nodes `roots` reach, each after its sources. Iterative: depth is limited by memory only.
class Toposort {
 public:
  explicit Toposort(NodeRef root) : Toposort(std::span<const NodeRef>(&root, 1)) {}
  explicit Toposort(std::span<const NodeRef> roots);
  /// Only what the roots are evaluated from: closed sources (tuple.h) are not entered.
  static Toposort evaluated(std::span<const NodeRef> roots);
  Toposort(Toposort&&) noexcept;
  ~Toposort();
  const NodeRef* begin() const;
  const NodeRef* end() const;
  size_t size() const;
  std::span<const NodeRef> nodes() const { return {begin(), size()}; }

 private:
  struct State;
  struct Spare;
  template <class SourceCount>
  Toposort(std::span<const NodeRef> roots, SourceCount count);
  std::unique_ptr<State> state_;
};

}  // namespace weft
