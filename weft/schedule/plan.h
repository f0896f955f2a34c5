// The plan: which values become buffers, which kernel computes what, and by which accesses each
// value is used.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "weft/graph/node_map.h"
#include "weft/graph/tuple.h"
#include "weft/graph/words.h"
#include "weft/schedule/constants.h"
#include "weft/schedule/estimate.h"
#include "weft/schedule/index_map.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

/// A value wanted by one kernel at one access. Its sources' uses say how it is computed there.
struct Use {
  int kernel;
  Access access;
  /// Ranges around it: the kernel's output ranges, then enclosing reduce ranges.
  std::vector<NodeRef> scope = {};
  int linear_in = -1;  ///< Fold of the enclosing reduce when only movement lies between, else -1
  bool load = false;   ///< read from the node's buffer instead of computed
  NodeRef packed = nullptr;  ///< a copy in another memory order, whose buffer is read instead
  int packed_use = -1;       ///< where the copy has other uses too: the use of `packed` that is
                             ///< read instead
  /// Per source of the node: index into that source's uses, -1 = none.
  std::vector<int> source = {};
  std::vector<NodeRef> reduced = {};  ///< Reduce, Scan, Loop: the ranges it runs over
  NodeRef placeholder = nullptr;      ///< Gather: variable that stands for the looked-up index
  NodeRef found = nullptr;            ///< Gather: bool that stands for "the index is in range"
};

/// Something a kernel writes to a buffer.
struct KernelOutput {
  NodeRef node;  ///< tensor node
  int use;       ///< which of its uses is stored
};

struct KernelPlan {
  NodeRef root;
  std::vector<NodeRef>
      ranges;  ///< per axis of what it iterates: a Range, or the constant 0 where the extent is 1
  /// A chain of subsets of its ranges, each outside of all others: what reductions computed outside
  /// inner loops depend on, and what lies around a running fold, which has one state for each.
  std::vector<std::vector<NodeRef>> hoisted;
  std::vector<KernelOutput> outputs;
  std::vector<NodeRef> reads;     ///< materialised nodes it loads
  std::vector<int> after;         ///< kernels that must have run
  std::vector<uint64_t> origins;  ///< ScheduleStep::origins
  std::vector<NodeRef> parts;     ///< flat places of the parts it writes, where it writes several
  bool reduces = false;           ///< they begin with a reduction
  bool sums_bytes = false;  ///< scaled, along words in memory: operands keep the order they have
  double crowding = 0;      ///< of the products that it sums for its results
  std::vector<NodeRef> streams = {};  ///< that these sums read from end to end
  double behind = 0;  ///< bytes of the buffers that kernels after it use, or it itself
  int next_range = 0, next_loop = 0;
  int64_t buffers =
      0;         ///< it writes, reads or may come to read: of values that are not decided yet
  int size = 0;  ///< of the code for the values wanted so far: about its number of instructions
};

/// A buffer and how its elements lie in memory.
struct BufferPlan {
  NodeRef node;
  int input = -1;  ///< input slot, for inputs
  bool row_major =
      false;  ///< inputs, outputs and buffers written in parts keep the standard layout
  std::vector<size_t> order;  ///< axes from outermost to innermost; empty = row-major
  /// Of the innermost axis, this many elements lie together and the rest of it is outermost: what
  /// one vector after the other reads is then one run. 0: the whole axis.
  int64_t block = 0;
  /// Elements behind each row that hold nothing, so that rows a power of two long do not share few
  /// places of a cache.
  int64_t gap = 0;

  size_t innermost() const { return order.empty() ? node->rank() - 1 : order.back(); }
};

/// What the graph says of values before anything is decided.
struct Demands {
  NodeMap<bool> whole = {};      ///< something takes their buffer, not elements
  NodeMap<NodeRef> update = {};  ///< of a base: the Assign, Scatter or CumCount that overwrites it
  NodeMap<bool> read = {};       ///< more than assigned to; none where nothing is assigned
};
Demands find_demands(std::span<const NodeRef> order, std::span<const NodeRef> outputs);

class Planner {
 public:
  Planner(Graph& g, std::vector<ScheduleOutput> outputs, NodeMap<uint64_t> origins,
          std::vector<NodeRef> given_steps, const Target& target, const ScheduleOptions& options);

  /// Takes all decisions: afterwards every use is a load or has its sources.
  void run();

  int buffer_index(NodeRef n) const { return *buffer_of.find(n); }
  /// Elements along an axis that its buffer has room for: as many in every round.
  NodeRef room_along(NodeRef n, size_t axis);
  /// Number of elements its buffer has room for, as an expression.
  NodeRef size_of(NodeRef n);
  /// The buffer of `n` in a kernel; its slot is the buffer's index.
  NodeRef param_of(NodeRef n);
  /// Kernel `kernel` must run after `on`, or is it.
  bool depends(int kernel, int on) const;
  /// 0 where it has none.
  uint64_t origin(NodeRef n) const {
    const uint64_t* found = origins.find(n);
    return found ? *found : 0;
  }
  bool in_reduce(const Use& d) const;
  /// Gives `copy`, a Contiguous or Pad of something with a buffer or a part of it, a kernel and a
  /// buffer of its own. Only the first `sizes` along its axes are written, all where there are
  /// none.
  void stage_copy(NodeRef copy, uint64_t origin, const char* reason,
                  std::span<const NodeRef> sizes = {});
  /// Kernel `kernel` reads the buffer of `n`.
  void read(int kernel, NodeRef n);
  /// Forgets that it does, once copies are read instead by all its loads.
  void stop_reading(int kernel, NodeRef n);

  Graph& g;
  std::vector<ScheduleOutput> outputs;
  NodeMap<uint64_t> origins;         ///< structural hash of what each computing node was when given
  std::vector<NodeRef> given_steps;  ///< the Repeats and Customs, as given, by number_of_step()
  const Target& target;
  const ScheduleOptions& options;
  ConstantValues constants;    ///< their values cost nothing in a run
  std::vector<NodeRef> order;  ///< all tensor nodes, sources first
  NodeMap<std::vector<Use>> uses;
  NodeMap<int> buffer_of;    ///< materialised nodes and inputs
  NodeMap<int> producer_of;  ///< kernel that makes a materialised node what it is
  std::vector<KernelPlan> kernels;
  std::vector<BufferPlan> buffers;
  std::vector<Decision> decisions;

 private:
  struct Verdict {
    bool stage;
    const char* reason;
  };
  /// Whether an axis lies innermost, in rows that none but kernels see.
  bool is_row(NodeRef n, size_t axis) const;
  bool merging_pays(NodeRef inner, double evaluated) const;
  bool merging_keeps_digits(NodeRef inner, const Use& d) const;
  double crowding(NodeRef reduce) const;
  std::vector<NodeRef> streams_of(NodeRef reduce) const;
  bool streams_apart(NodeRef reduce, const KernelPlan& k) const;
  bool crowds(NodeRef reduce, const Use& d) const;
  bool stays_in_l3(NodeRef n, const std::vector<Use>& wanted) const;
  void visit(NodeRef n);
  Verdict decide(NodeRef n, std::vector<Use>& wanted);
  bool worth_padding(NodeRef n, const std::vector<Use>& wanted) const;
  bool is_read_to_its_border(NodeRef n, const std::vector<Use>& wanted) const;
  bool finishes_reduction(NodeRef n) const;
  bool worth_thinning(NodeRef n, const std::vector<Use>& wanted) const;
  bool is_far(NodeRef n, const std::vector<Use>& wanted);
  size_t size_of_access(const Access& access);
  uint32_t tree_size(NodeRef index);
  bool binds_few() const { return target.most_buffers < INT64_MAX; }
  bool has_room(NodeRef n, int kernel) const;
  void leave_buffer(NodeRef n, const std::vector<Use>& wanted);
  bool reads_words(NodeRef n, const std::vector<Use>& wanted);
  void note_coded(NodeRef n, const std::vector<Use>& wanted);
  bool is_decoded_in_registers(NodeRef n, const std::vector<Use>& wanted, double total);
  bool widens_singly(NodeRef n, const std::vector<Use>& wanted, double total) const;
  bool gathers_halves(NodeRef n, const std::vector<Use>& wanted, double total) const;
  bool is_widened(NodeRef n, const std::vector<Use>& wanted, double total) const;
  bool is_taken_apart(NodeRef n, double total) const;
  Verdict decide_elementwise(NodeRef n, const std::vector<Use>& wanted);
  Verdict decide_reduce(NodeRef n, const std::vector<Use>& wanted);
  struct Surroundings {
    std::vector<NodeRef> ranges;
    NodeRef valid;  ///< null: everything is
  };
  Surroundings surroundings(NodeRef reduce, const Use& d) const;
  bool is_small_beside(NodeRef reduce, const Use& d) const;
  bool can_hoist(NodeRef reduce, const Use& d, std::vector<NodeRef>& used) const;
  bool try_hoist(NodeRef reduce, const Use& d);
  void run_innermost(KernelPlan& k, std::span<const NodeRef> own);
  void stage(NodeRef n, std::vector<Use>& wanted, std::span<const NodeRef> sizes = {});
  bool overwrites(NodeRef assign) const;
  NodeRef counted_places(NodeRef scatter) const;
  Access placed_access(NodeRef scatter, const KernelPlan& kernel);
  bool counts_on_the_way(NodeRef counted, const std::vector<Use>& wanted) const;
  bool can_host(NodeRef n, const std::vector<Use>& wanted, size_t host) const;
  int new_kernel(NodeRef root, std::span<const NodeRef> dims);
  int kernel_for(NodeRef n, std::span<const NodeRef> sizes);
  bool joins_parts(NodeRef assign, const KernelPlan& kernel) const;
  int kernel_for_part(NodeRef assign);
  NodeRef place_of_part(NodeRef assign, const KernelPlan& kernel) const;
  void place_buffer(NodeRef n);
  Access first_access(NodeRef n);
  double evaluations(const Use& d) const;

  void push_sources(NodeRef n, size_t use);
  void push_reduced(NodeRef n, size_t use);
  void push_gather(NodeRef n, size_t use);
  void push_update(NodeRef n, size_t use);
  void push_inputs(NodeRef step, size_t use);
  int want(NodeRef n, const Use& from, Access access, int linear_in,
           std::span<const NodeRef> extra = {});
  int find_use(NodeRef n, int kernel, const Access& access);

  /// Of a node with many uses: the last by each kernel, counted from 1, and of each use the
  /// one before by the same kernel.
  struct UseIndex {
    FlatMap<int64_t, int> last;
    std::vector<int> before;
  };
  NodeMap<UseIndex> use_index_;
  Demands demands_;
  NodeMap<bool> pieces_;   // of words that are read where they lie
  NodeMap<bool> decoded_;  // by a product, for all of its rows
  NodeMap<bool> coded_;    // what scaled sums of bytes are made of
  Estimates estimates_;
  NodeMap<int> loop_kernel_;
  NodeMap<uint32_t> index_size_;  ///< of index expressions, counted as trees
  int placeholders_ = 0;
  double placed_ = 0;  // bytes of all buffers so far
};

/// True for a Copy to another device than its source's: a step of its own, not a kernel.
inline bool crosses_devices(NodeRef n) {
  return n->op == Op::Copy && n->device != n->src(0)->device;
}

/// True for values that are steps of their own, over whole buffers: repeated bodies and the user's
/// kernels. In the plan's graph only dtypes and shapes stand for their bodies.
inline bool is_step(NodeRef n) { return n->op == Op::Repeat || n->op == Op::Custom; }
inline bool is_step_result(NodeRef n) { return n->op == Op::Get && is_step(n->src(0)); }
inline size_t number_of_step(NodeRef n) { return static_cast<size_t>(n->ints().back()); }

/// Of Repeats that no user has written: their rounds do not depend on each other, and what each
/// makes is little. They run side by side. Above all levels that bodies of users come to.
constexpr int64_t kBlocksSlot = kInnerSlotsEnd - kSlotsPerLevel;
constexpr int64_t kBlocksLevel = (kBlocksSlot - kInnerSlots) / kSlotsPerLevel;
/// Of Repeats within such a round, one of whose rounds carries what the one before has made.
constexpr int64_t kInnerBlocksLevel = kBlocksLevel - 1;
constexpr int64_t kInnerBlocksSlot = kBlocksSlot - kSlotsPerLevel;

/// The variable that says which round of a Repeat of this level a step of its body belongs to.
std::string place_name(int64_t level);
/// Whether a size differs between rounds of these.
bool is_size_of_round(NodeRef size);

/// True for a buffer that holds nothing before all of it is written in parts.
inline bool is_unwritten(NodeRef n) { return n->op == Op::Contiguous && is_inner_param(n->src(0)); }

/// Whether a kernel that wants `n` may come to read a buffer for it.
inline bool may_be_read(NodeRef n) {
  return n->op == Op::Param || (n->nsrc > 0 && n->dtype != DType::Index && n->op != Op::Iota);
}
inline bool is_wanted_by(std::span<const Use> uses, int kernel) {
  return std::ranges::any_of(uses, [kernel](const Use& d) { return d.kernel == kernel; });
}

/// True for the variable that stands for a looked-up index while a kernel is planned.
inline bool is_lookup(NodeRef n) { return n->op == Op::Variable && n->text().starts_with('%'); }

/// Chooses the memory order of intermediates so that most kernels run along contiguous elements.
void choose_layouts(Planner& plan);

/// A load from a node's buffer: one of its uses.
struct ProductOperand {
  NodeRef node;
  size_t use;
};
/// By kernel, what it loads inside of reductions.
std::vector<std::vector<ProductOperand>> reduced_operands(const Planner& plan);

/// How an access moves with a range: not at all, to the next element in memory, or elsewhere.
enum class Step : uint8_t { None, Unit, Far };
/// Of what reads, or writes, the buffer of `n` at this access.
Step step_along(const Planner& plan, NodeRef n, const Access& access, NodeRef range);
/// Bytes that a step of `range` goes through what an operand reads, whose axes lie in this order,
/// from the outermost to the innermost.
double step_bytes(const Planner& plan, const ProductOperand& o, std::span<const size_t> order,
                  NodeRef range);
/// Whether the index changes with this range.
bool depends_on(NodeRef n, NodeRef range);
/// The axis whose index moves by one element when `range` does, and no other axis moves; -1: none.
int moving_axis(Graph& g, const Access& access, NodeRef range);

/// Whether `n` are halves of memory as f32.
bool widens_half(NodeRef n);

/// Whether the product that reads `n` like this can have vectors along an output axis in which `n`
/// does not vary: the others lie along it, or are read so often that they will be moved.
bool is_broadcast_along(const Planner& plan, NodeRef n, const Use& use, NodeRef range,
                        std::span<const ProductOperand> operands, double reads_to_move = HUGE_VAL);
/// What it costs, in moves of an element, that vectors along `range` widen halves one by one, which
/// all lanes take: 8 rows of f16 by 2048 x 2048 transposed took 1570 us with lanes along the rows,
/// and take 290 with lanes along the sum.
double cost_of_widening(const Planner& plan, std::span<const ProductOperand> operands,
                        NodeRef range);
/// Of a vector's lanes, the share that a loop of this size fills.
double filled_lanes(int64_t size, const Target& target);
/// Iterations of this range of a product's outputs and of those around it that all operands and
/// results walk as one loop: of all places of an image, where nothing slides over it.
int64_t walked_as_one(const Planner& plan, const KernelPlan& kernel,
                      std::span<const ProductOperand> operands, NodeRef range);

/// A copy of `elements`, read `reads` times without a mask, costs less than the masks would.
bool pays_padding(double reads, double elements);

/// Copies operands of masked products with zeros around them.
void pad_operands(Planner& plan);

/// Copies operands of products whose elements lie along no axis that vectors could run along, or
/// whose rows push each other out of caches.
void pack_operands(Planner& plan);

/// Builds every kernel from the plan and puts them in a safe order.
Schedule build_schedule(Planner& plan, std::shared_ptr<Graph> graph);

/// The ranges that `index`, or a mask, depends on, among `scope`.
std::vector<NodeRef> used_ranges(std::span<const NodeRef> index, std::span<const NodeRef> scope);

/// The largest c for which the positions depend on r only by r / c, where that is plain to see: a
/// value at them stays the same for c steps (of blocks with one scale: the elements of a block). 1
/// where it is not.
int64_t steady_steps(std::span<const NodeRef> index, NodeRef r);

/// Behind the last value of an index that rises by steps of ranges; null where it is none.
NodeRef end_of_index(Graph& g, NodeRef index);

/// How often a loop nest over `ranges` runs its body, with symbolic sizes at their largest.
double iterations(std::span<const NodeRef> ranges);

/// `reduce`, or what it repeats along axes of its result: one of size 1 in their place.
NodeRef reduced_once(Graph& g, NodeRef reduce);
/// The sum as one of each large product of matrices that it adds up; none where it is another.
std::vector<NodeRef> sums_of_products(Graph& g, NodeRef sum);

/// exp2(x) / sum of exp2(x) along rows, whose operands became `src`, as a product with one
/// reciprocal for each sum; null where `quotient` is something else.
NodeRef exponentials_by_reciprocal(Graph& g, NodeRef quotient, std::span<const NodeRef> src);

/// Elements from which on a sum of floats has chunks: one accumulator would lose what it adds.
constexpr int64_t kLongSum = 1 << 18;

/// `reduce`, or the same reduction in two steps where one would leave most of the machine idle, or
/// lose digits.
NodeRef split_large_reduction(Graph& g, NodeRef reduce, const Target& target,
                              const ConstantValues& constants);
/// What multiplies words of two bf16, and sums in f32; null where there is no such thing.
const MatrixUnit* unit_of_pairs(const Target& target);
/// `sum` by an operation of the target that multiplies several narrow numbers at once; null where
/// there is none for it, or it does not pay.
NodeRef by_matrix_unit(Graph& g, NodeRef sum, const Target& target,
                       const ConstantValues& constants);
/// `sum`, or the same with the windows of an image written side by side, where that costs less than
/// putting weights in another order.
NodeRef by_spread_windows(Graph& g, NodeRef sum, const Target& target,
                          const ConstantValues& constants);
/// The convolution `sum` by a way that takes less time than its sum over windows; null where it is
/// something else, or has none.
NodeRef fast_convolution(Graph& g, NodeRef sum, const Target& target,
                         const ConstantValues& constants);
/// The same of the gradient of an image, or of the part of it that a Shrink leaves; `copies`: what
/// values are by now.
NodeRef fast_gradient_of_image(Graph& g, NodeRef n, const Target& target,
                               const ConstantValues& constants, const NodeMap<NodeRef>& copies);
/// The Param whose memory holds the words that `n` puts together, as they are put together; null
/// where there is none.
Element word_in_memory(Graph& g, NodeRef n);
/// Whether words are the columns of a product of matrices by a unit's tiles: they vary along the
/// last axis of the result.
bool is_column_of_tiles(const Planner& plan, NodeRef words, const Use& use);
/// `scan`, or the same running sum block by block where one would lose digits.
NodeRef split_long_scan(Graph& g, NodeRef scan);

/// Whether parts of `numel` elements together are better written to where they belong, a kernel for
/// each, than computed under a mask at every element. `wide_masks`: parts meet in a vector,
/// or lanes are rows.
bool pays_writing(size_t parts, double numel, bool wide_masks);

/// Whether joined parts are few and small: then select_parts(), else write_parts(), to a buffer
/// that is_unwritten().
bool is_better_selected(NodeRef cat, const Target& target);
NodeRef select_parts(Graph& g, NodeRef cat, std::span<const NodeRef> parts);
NodeRef write_parts(Graph& g, NodeRef cat, std::span<const NodeRef> parts, NodeRef unwritten);

/// About how many instructions an op becomes.
int code_size(Op op);

/// Whether some kernel wants a value at more accesses than it should be computed at.
bool is_wanted_all_over(std::span<const Use> wanted);

/// Whether parts of one buffer with these values are written by one kernel, which then computes
/// what they have in common once: they are few, alike, and nothing in them is a reduction.
bool share_a_kernel(std::span<const NodeRef> values);
/// Whether the parts that `assign` is one of fill memory that held nothing, with copies, by which
/// rows are written from end to end, or with what is made of few values in memory.
bool fills_by_copies(NodeRef assign, std::span<const NodeRef> values);

/// The sum of these Pads as parts written into one buffer, `unwritten` where they fill it; null
/// where parts meet, or adding them up costs less. `stored`: the sum is in memory anyway.
NodeRef write_disjoint(Graph& g, std::span<const NodeRef> pads, NodeRef unwritten, bool stored);

}  // namespace weft
