#include "weft/tensor/einsum.h"

#include <algorithm>
#include <cctype>

#include "weft/tensor/access.h"

namespace weft {

namespace {

/// A tensor whose axes have names. Those of an ellipsis are named '0', '1', ... from the last.
struct Named {
  Tensor x;
  std::string axes;
};

bool has(const std::string& axes, char name) { return axes.find(name) != std::string::npos; }

/// One operand's or the result's letters, "..." as '.', spaces dropped.
std::string letters(std::string_view term, std::string_view formula) {
  std::string out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term.substr(i, 3) == "...") {
      i += 2;
      out += '.';
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      out += term[i];
    } else {
      fail("einsum", "'{}' in \"{}\" is no axis: use letters, ',', '->' and '...'", term[i],
           formula);
    }
  }
  if (std::count(out.begin(), out.end(), '.') > 1)
    fail("einsum", "\"{}\" has more than one ellipsis in a term", formula);
  return out;
}

std::vector<std::string> terms(std::string_view text, std::string_view formula) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(letters(text.substr(begin, end - begin), formula));
    begin = end + 1;
  }
  return out;
}

/// `term` with its ellipsis written out as `count` numbered axes.
std::string with_ellipsis(const std::string& term, size_t count) {
  std::string out;
  for (const char c : term) {
    if (c != '.') {
      out += c;
      continue;
    }
    for (size_t i = count; i-- > 0;) out += static_cast<char>('0' + i);
  }
  return out;
}

/// x with each name once: repeated names take the diagonal.
Named without_repeats(Named n, std::string_view formula) {
  for (size_t i = 0; i < n.axes.size(); ++i) {
    const size_t again = n.axes.find(n.axes[i], i + 1);
    if (again == std::string::npos) continue;
    const auto a = static_cast<int64_t>(i), b = static_cast<int64_t>(again);
    if (!(n.x.dim(a) == n.x.dim(b)))
      fail("einsum", "axis {} of \"{}\" has sizes {} and {} in one operand: they must be equal",
           n.axes[i], formula, n.x.dim(a).text(), n.x.dim(b).text());
    n.x = n.x.diagonal(0, a, b);
    n.axes = n.axes.substr(0, i) + n.axes.substr(i + 1, again - i - 1) + n.axes.substr(again + 1) +
             n.axes[i];
    --i;
  }
  return n;
}

Named operand(const Tensor& x, const std::string& term, std::string_view formula) {
  const size_t named = term.size() - (has(term, '.') ? 1 : 0);
  if (named > x.ndim() || (named < x.ndim() && !has(term, '.')))
    fail("einsum", "\"{}\" names {} axes of an operand of shape {}", formula, named,
         x.dims().text());
  return without_repeats({x, with_ellipsis(term, x.ndim() - named)}, formula);
}

/// The axes in this order, 1 where x has none of that name.
Tensor aligned(const Named& n, const std::string& order) {
  Ints present;
  Dims shape;
  for (const char c : order) {
    const size_t at = n.axes.find(c);
    if (at != std::string::npos) present.push_back(static_cast<int64_t>(at));
    shape.push_back(at == std::string::npos ? Dim(1) : n.x.dim(static_cast<int64_t>(at)));
  }
  return n.x.permute(present).reshape(shape);
}

/// Sums over axes that are in none of the terms that are left.
Named summed(const Named& n, const std::string& needed) {
  Axes gone;
  std::string kept;
  for (size_t i = 0; i < n.axes.size(); ++i) {
    if (has(needed, n.axes[i]))
      kept += n.axes[i];
    else
      gone.push_back(static_cast<int64_t>(i));
  }
  return gone.empty() ? n : Named{n.x.sum(gone, false, n.x.dtype()), kept};
}

Named product(const Named& a, const Named& b, std::string_view formula) {
  std::string all = a.axes;
  for (const char c : b.axes)
    if (!has(all, c)) all += c;
  for (const char c : a.axes) {
    if (!has(b.axes, c)) continue;
    const Dim m = a.x.dim(static_cast<int64_t>(a.axes.find(c)));
    const Dim n = b.x.dim(static_cast<int64_t>(b.axes.find(c)));
    if (!(m == n) && !(m == Dim(1)) && !(n == Dim(1)))
      fail("einsum",
           "axis {} of \"{}\" has sizes {} and {} in different operands: they must be "
           "equal or 1",
           c, formula, m.text(), n.text());
  }
  return {aligned(a, all) * aligned(b, all), all};
}

/// NumPy's result without "->": broadcast axes, then the letters that occur once.
std::string implied_result(const std::vector<std::string>& inputs) {
  std::string all, once;
  for (const std::string& t : inputs) all += t;
  std::sort(all.begin(), all.end());
  for (const char c : all)
    if (c != '.' && std::count(all.begin(), all.end(), c) == 1) once += c;
  return (has(all, '.') ? "." : "") + once;
}

DType common_dtype(const std::vector<Tensor>& operands) {
  DType met = operands[0].dtype();
  for (const Tensor& x : operands) met = promote(met, x.dtype());
  return met;
}

}  // namespace

Tensor einsum(std::string_view formula, const std::vector<Tensor>& operands, DType dtype,
              CallSite at) {
  const CallSiteScope site(at);
  const size_t arrow = formula.find("->");
  const std::vector<std::string> inputs = terms(formula.substr(0, arrow), formula);
  if (inputs.size() != operands.size() || operands.empty())
    fail("einsum", "\"{}\" has {} terms for {} operands", formula, inputs.size(), operands.size());
  std::string result = arrow == std::string_view::npos
                           ? implied_result(inputs)
                           : letters(formula.substr(arrow + 2), formula);
  const DType out = dtype == DType::Void ? common_dtype(operands) : dtype;
  std::vector<Named> named;
  size_t broadcast_axes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    named.push_back(operand(operands[i].cast(sum_dtype(out)), inputs[i], formula));
    if (has(inputs[i], '.'))
      broadcast_axes = std::max(broadcast_axes, operands[i].ndim() + 1 - inputs[i].size());
  }
  result = with_ellipsis(result, broadcast_axes);
  // What the operands from i on, and the result, need.
  std::vector<std::string> needed(named.size() + 1, result);
  for (size_t i = named.size(); i-- > 0;) needed[i] = needed[i + 1] + named[i].axes;
  Named total = summed(named[0], needed[1]);
  for (size_t i = 1; i < named.size(); ++i)
    total = summed(product(total, summed(named[i], total.axes + needed[i + 1]), formula),
                   needed[i + 1]);
  for (size_t i = 0; i < result.size(); ++i)
    if (!has(total.axes, result[i]) || result.find(result[i], i + 1) != std::string::npos)
      fail("einsum",
           "axis {} of the result of \"{}\" must be in an operand, and once in the result",
           result[i], formula);
  return aligned(total, result).cast(out);
}

// ---- rearrange

namespace {

using Group = std::vector<std::string>;  // axes that are merged into one

std::vector<Group> groups_of(std::string_view side, std::string_view formula) {
  std::vector<Group> out;
  bool open = false;
  for (size_t i = 0; i < side.size();) {
    const char c = side[i];
    size_t length = 1;
    if (c == '(' || c == ')') {
      if (open == (c == '(')) fail("rearrange", "parentheses of \"{}\" do not match", formula);
      open = c == '(';
      if (open) out.emplace_back();
    } else if (c != ' ') {
      while (i + length < side.size() &&
             std::string_view(" ()").find(side[i + length]) == std::string_view::npos)
        ++length;
      if (!open) out.emplace_back();
      out.back().emplace_back(side.substr(i, length));
    }
    i += length;
  }
  if (open) fail("rearrange", "parentheses of \"{}\" do not match", formula);
  return out;
}

/// Sizes by name, in the order that they were found. Axes of an ellipsis are named "...0" and so
/// on.
struct Axis {
  std::string name;
  Dim size;
};

int64_t given_size(const std::string& name, const AxisSizes& sizes) {
  if (name == "1") return 1;
  for (const auto& [known, size] : sizes)
    if (known == name) return size;
  return -1;
}

/// A size of an axis that is not there is a slip.
void require_sizes_of(const std::vector<Group>& left, const AxisSizes& sizes,
                      std::string_view formula) {
  for (const auto& [name, size] : sizes) {
    const auto has = [&](const Group& g) { return std::ranges::find(g, name) != g.end(); };
    if (std::ranges::none_of(left, has))
      fail("rearrange", "a size {} is given for axis {}, which is not on the left of \"{}\"", size,
           name, formula);
  }
}

/// The axes that one axis of size `whole` is split into; at most one size is not given.
void split_group(const Group& group, const Dim& whole, const AxisSizes& sizes,
                 std::string_view formula, std::vector<Axis>& out) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < group.size(); ++i) {
    const int64_t size = given_size(group[i], sizes);
    if (size < 0 && open >= 0)
      fail("rearrange", "sizes of {} and {} in \"{}\" are not known: give one of them",
           group[static_cast<size_t>(open)], group[i], formula);
    if (size < 0)
      open = static_cast<int64_t>(i);
    else
      known *= size;
  }
  const bool fits = open >= 0 ? known > 0 && whole % known == Dim(0) : whole == Dim(known);
  if (!fits)
    fail("rearrange", "an axis of size {} cannot be split as \"{}\" says: the sizes given make {}",
         whole.text(), formula, known);
  for (size_t i = 0; i < group.size(); ++i) {
    const bool computed = static_cast<int64_t>(i) == open;
    out.push_back({group[i], computed ? whole / known : Dim(given_size(group[i], sizes))});
  }
}

std::vector<Axis> split_axes(const Tensor& x, const std::vector<Group>& left,
                             const AxisSizes& sizes, std::string_view formula) {
  const auto is_rest = [](const Group& g) { return g.size() == 1 && g[0] == "..."; };
  const auto rest = std::count_if(left.begin(), left.end(), is_rest);
  const size_t named = left.size() - static_cast<size_t>(rest);
  if (rest > 1 || named > x.ndim() || (rest == 0 && named < x.ndim()))
    fail("rearrange", "\"{}\" does not have the {} axes of shape {} on its left", formula, x.ndim(),
         x.dims().text());
  std::vector<Axis> out;
  int64_t axis = 0;
  for (const Group& g : left) {
    if (!is_rest(g)) {
      split_group(g, x.dim(axis++), sizes, formula, out);
      continue;
    }
    for (size_t i = 0; i < x.ndim() - named; ++i)
      out.push_back({"..." + std::to_string(i), x.dim(axis++)});
  }
  return out;
}

/// The right side: which axes come in which order, and the sizes after merging.
class Arrangement {
 public:
  Arrangement(const std::vector<Axis>& axes, std::string_view formula)
      : axes_(axes), formula_(formula) {}

  void add(const Group& group) {
    Dim size = 1;
    for (const std::string& name : group) {
      if (name == "...")
        size = size * place_rest(group.size() == 1);
      else if (name != "1")
        size = size * place(name);
    }
    if (group.size() != 1 || group[0] != "...") merged.push_back(size);
  }

  /// Axes of size 1 that the right does not name disappear.
  void finish() {
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (is_placed(i)) continue;
      if (axes_[i].name != "1")
        fail("rearrange", "axis {} of \"{}\" is not on its right", axes_[i].name, formula_);
      order.push_back(static_cast<int64_t>(i));
    }
  }

  Ints order;
  Dims merged;

 private:
  bool is_placed(size_t axis) const {
    return std::find(order.begin(), order.end(), static_cast<int64_t>(axis)) != order.end();
  }

  Dim place(const std::string& name) {
    for (size_t i = 0; i < axes_.size(); ++i) {
      if (axes_[i].name != name || is_placed(i)) continue;
      order.push_back(static_cast<int64_t>(i));
      return axes_[i].size;
    }
    fail("rearrange", "axis {} on the right of \"{}\" is not on its left, or twice on the right",
         name, formula_);
  }

  /// The axes of the ellipsis, merged unless they stand alone.
  Dim place_rest(bool alone) {
    Dim size = 1;
    for (const Axis& a : axes_) {
      if (a.name.substr(0, 3) != "...") continue;
      const Dim d = place(a.name);
      if (alone) merged.push_back(d);
      size = size * d;
    }
    return size;
  }

  const std::vector<Axis>& axes_;
  std::string_view formula_;
};

}  // namespace

Tensor rearrange(const Tensor& x, std::string_view formula, const AxisSizes& sizes, CallSite at) {
  const CallSiteScope site(at);
  const size_t arrow = formula.find("->");
  if (arrow == std::string_view::npos)
    fail("rearrange", "\"{}\" has no '->' between what is and what shall be", formula);
  const std::vector<Group> left = groups_of(formula.substr(0, arrow), formula);
  require_sizes_of(left, sizes, formula);
  const std::vector<Axis> axes = split_axes(x, left, sizes, formula);
  Arrangement right(axes, formula);
  for (const Group& g : groups_of(formula.substr(arrow + 2), formula)) right.add(g);
  right.finish();
  Dims split;
  for (const Axis& a : axes) split.push_back(a.size);
  return x.reshape(split).permute(right.order).reshape(right.merged);
}

}  // namespace weft
