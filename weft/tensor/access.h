// Inside the tensor room: the cell aliases share, and how operations make Tensors from nodes.
#pragma once

#include <mutex>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/graph/node_map.h"
#include "weft/run/storage.h"
#include "weft/tensor/build.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// What aliasing Tensors share: the storage, and what autograd knows about it.
struct TensorCell : Storage {
  TensorCell(Context& context, NodeRef value);
  ~TensorCell() override;

  bool requires_grad = false;
  // Backward() fills it where the loss depends on none with requires_grad; false: never a
  // parameter.
  std::optional<bool> offered;
  uint64_t leaf = 0;    // its number in the context's Leaves; 0: it is in neither way a leaf
  RootedNode former;    // a leaf's value when it became one: graphs made before its realize hold it
  RootedNode history;   // what gave the value, where reading it made it memory
  bool walked = false;  // backward() went through it: what is read later needs no history
  Tensor grad;
  const void* write_noted = nullptr;                // by whom it is in the context's PendingWrites
  TensorCell *previous = nullptr, *next = nullptr;  // in the context's LiveCells
};

/// All cells of a context: what was computed on the way to a loss is found by its value.
struct LiveCells {
  std::mutex mutex;
  TensorCell* first = nullptr;
};
/// Whether backward() fills the gradient of x, a whole tensor of floats that equals no other, where
/// the loss depends on no leaf that asked for it: Python's default.
void offer_leaf(const Tensor& x, bool on);
/// Adds the leaves that these are computed from and that have not been computed themselves, as
/// parameters that begin as random numbers: what is read again by every step is computed once.
void compute_leaves_with(Context& context, std::vector<std::shared_ptr<Storage>>& storages);
/// Before x is computed because somebody looks at it: backward() goes on behind its memory while x
/// lives. What is realized on purpose is cut off.
void remember_history(const Tensor& x);
void forget_history(TensorCell& cell);
/// A view of what nobody else has, and what has no memory yet, becomes a tensor of its own: then
/// its elements are computed in their own order, and what a captured function gives of them is
/// that memory, not a copy.
void own_elements(Tensor& x);
/// Notes what realize() is about to cut off from what it was computed from, and then its memory.
class CutOff {
 public:
  CutOff(Context& context, std::span<const Tensor> tensors);
  void done();

 private:
  Context& context_;
  SmallVector<const TensorCell*, 8> cells_;  // of the tensors, which live as long
};
/// What backward() of `loss` adds to the gradient of a leaf. The leaves are those that asked for
/// gradients; where the loss depends on none of them, those that are offered. A leaf may be there
/// twice. Empty: there is none.
struct LeafGradient {
  std::shared_ptr<TensorCell> leaf;
  Tensor gradient;
};
std::vector<LeafGradient> leaf_gradients(const Tensor& loss);
void add_gradient(TensorCell& cell, const Tensor& gradient);
/// The loss's graph was walked backwards: what is read later needs no history, and a step realizes
/// the loss.
void note_walked(const Tensor& loss);
/// Whether `root` was computed from memory that was cut off: a gradient may be missing.
bool reads_cut_off(Context& context, NodeRef root);
/// Whether backward() went by x, which is no leaf, and left nothing with it.
bool lacks_gradient(const Tensor& x);
/// What tensors that were read were computed from, at one time; within a Graph::Building scope.
class Histories {
 public:
  explicit Histories(Context& context);
  /// `root` with them in the place of the tensors' memory.
  NodeRef behind(Graph& g, NodeRef root) const;

 private:
  NodeMap<NodeRef> known_;  // by memory
};

/// Who noted something that is to be done later: no other thread takes it while this one lives,
/// which may be in the middle of what it is for.
class Noted {
 public:
  explicit Noted(std::weak_ptr<Storage> cell);
  /// Null where it is gone, or another thread's.
  std::shared_ptr<Storage> taken() const;
  bool gone() const { return cell_.expired(); }
  bool is_mine() const;
  static const void* me();

 private:
  std::weak_ptr<Storage> cell_;
  std::weak_ptr<const char> thread_;
};

/// Tensors that were written and perhaps not realized since: a capture must find state in memory.
class PendingWrites {
 public:
  void note(TensorCell& cell);
  std::vector<std::shared_ptr<Storage>> take();

 private:
  std::mutex mutex_;
  std::vector<Noted> cells_;
  size_t prune_at_ = 64;
};

/// What this thread assigns to while it lives, with the values from before, in order.
class WriteWatch {
 public:
  WriteWatch();
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  struct Write {
    std::weak_ptr<Storage> cell;
    RootedNode before;
  };
  const std::vector<Write>& writes() const { return writes_; }
  static void note(TensorCell& cell);  ///< before it is written
  static void made(const TensorCell& cell);
  /// By this thread, and since.
  bool made_here(const TensorCell& cell) const { return made_.contains(&cell); }

 private:
  WriteWatch* outer_;
  std::vector<Write> writes_;
  std::unordered_set<const TensorCell*> made_;
};

/// What backward() went through, until a step: see take_pending_losses().
class PendingLosses {
 public:
  void note(const std::shared_ptr<TensorCell>& cell);
  std::vector<std::shared_ptr<TensorCell>> take();

 private:
  std::mutex mutex_;
  std::vector<Noted> cells_;
};

/// One public operation: the user's call site, and a promise to the graph that nodes not rooted yet
/// are in use.
class OpScope {
 public:
  OpScope(Context& c, CallSite at);
  OpScope(const Tensor& x, CallSite at);
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  Tensor result(NodeRef value) const;

 private:
  CallSiteScope site_;

 public:
  Context& context;
  Graph& g;

 private:
  Graph::Building building_;
};

/// x's elements as a tensor of its own, for functions that have nothing to compute but give no
/// view: writing to one leaves the other alone. Before that nothing is copied.
Tensor unshared(const Tensor& x);

struct TensorAccess {
  static Tensor make(Context& context, NodeRef value);
  static CellRef ref(std::shared_ptr<TensorCell> cell);
  static const std::shared_ptr<TensorCell>& shared(const Tensor& x);
  static Tensor whole(std::shared_ptr<TensorCell> cell) {
    return {ref(std::move(cell)), RootedNode()};
  }
  static Tensor seen(const CellRef& cell, const RootedNode& chain) { return {cell, chain}; }
  /// The movement chain of x over a placeholder for its storage's value.
  static NodeRef chain(Graph& g, const Tensor& x);
  /// What stands for a storage's value of that dtype and shape.
  static NodeRef placeholder(Graph& g, DType dtype, std::span<const NodeRef> dims);
  /// x's storage seen through another chain.
  static Tensor view(const Tensor& x, NodeRef chain);
  /// `chain` with its placeholder replaced.
  static NodeRef apply(Graph& g, NodeRef chain, NodeRef value);
  static NodeRef chain_or_null(const Tensor& x) { return x.chain_.get(); }
  /// `old` with `seen` written to what the chain shows of it; an Error where several of the
  /// elements that it shows are one.
  static NodeRef written(Graph& g, NodeRef chain, NodeRef old, NodeRef seen);
  /// Whether gradients stop at x because it was made by detach().
  static bool is_detached(const Tensor& x);
  /// x, or the whole tensor that it is a detached alias of.
  static Tensor attached(const Tensor& x);
};

/// An axis in [0, rank), or an error: "[sum] axis 3 is out of range for ... (2, 3): use -2 to 1".
int64_t checked_axis(const char* tag, int64_t axis, const Tensor& x);
int64_t checked_axis(const char* tag, int64_t axis, size_t rank, const std::string& shape);
/// The same of an axis whose size has to be a number.
int64_t sized_axis(const char* tag, int64_t axis, const Tensor& x);
/// Distinct axes in ascending order; all of them when none is given.
build::AxisList checked_axes(const char* tag, const Axes& axes, const Tensor& x);
build::Extents nodes_of(const Dims& dims);
/// An error naming a size below 0.
void require_sizes(const char* tag, const Dims& shape);
Dims dims_of(NodeRef n);
std::string shape_text(NodeRef n);
/// NumPy's broadcast of shapes; an error names two that do not fit.
build::Extents broadcast(const char* tag, std::span<const NodeRef> operands);
/// One number for every spatial axis, or as many as there are.
Ints per_axis(const char* tag, const char* what, const Ints& given, size_t count);
/// x moved by one place towards the end of axis, `value` in front.
Tensor delayed(const Tensor& x, int64_t axis, double value);
/// Places that are known to be in [0, n), with bounds that say so: nothing tests them again.
Tensor bounded(const Tensor& places, const Dim& n);
/// gather() at such places.
Tensor gather_inside(const Tensor& x, int64_t axis, const Tensor& places);
/// scatter() of values to places that are all different, or outside [0, n): in any order.
Tensor scatter_distinct(const Tensor& base, int64_t axis, const Tensor& places, const Tensor& src);
/// x with its elements at other places along axis, each of which gets one.
Tensor permuted(const Tensor& x, int64_t axis, const Tensor& places);
/// argsort() along the last axis by comparing all pairs, however many: in few kernels.
Tensor order_by_pairs(const Tensor& x);
/// Where along the last axis the element is that argsort() puts at `rank`, which is (..., 1).
Tensor place_of_rank(const Tensor& x, const Tensor& rank);
/// (..., bins): the sums of x, of the shape of places or one number, by its place along the last
/// axis, in order; places outside are left out.
Tensor added_at(const Tensor& places, int64_t bins, const Tensor& x);
/// Into how many parts rows are cut that are counted side by side, each with counts of its own: by
/// sizes alone, so that every machine adds up the same.
int64_t counting_blocks(const Tensor& places, int64_t bins);
/// (bins) i32: how often each place is met in a 1-D tensor.
Tensor counts_in_blocks(const Tensor& places, int64_t bins);
/// first[.., index[i], ..] and how many elements before i along axis have the same index.
Tensor cumcount(const Tensor& first, int64_t axis, const Tensor& index);
void require_float(const char* tag, const Tensor& x);
/// Itself, or the default float for integers and bools: what functions of real numbers give.
inline DType float_or_default(DType d) { return is_float(d) ? d : kDefaultFloat; }
/// f32 for f16 and bf16, i32 for small integers: where sums run.
DType sum_dtype(DType d);

}  // namespace weft
