// Declaring symbols, and expressions with what is known of them built in.
#include "shape/dims.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "shape/expression.h"
#include "shape/names.h"
#include "shape/program_dims.h"

template class std::vector<modelport::shape::Dim>;
template class std::vector<modelport::shape::Guard>;

namespace modelport::shape {

using namespace detail;

namespace {

[[noreturn]] void throw_bad_dimension(std::string what, std::string way_out) {
  throw ExportError(Diagnostic{
      .code = Code::bad_dynamic_shapes, .what = std::move(what), .ways_out = {std::move(way_out)}});
}

}  // namespace

Int Dims::declare(std::string_view name, std::int64_t hint, Range range) {
  if (hint < range.lo || hint > range.hi) {
    throw_bad_dimension(fmt::format("dimension '{}' is {} in the example but is said to be in {}",
                                    name, hint, print(range)),
                        "give example inputs of an admissible size, or widen the range");
  }
  if (const auto known = index_.find(name); known != index_.end()) {
    Dim& dim = dims_[known->second];
    if (dim.hint != hint) {
      throw_bad_dimension(
          fmt::format("dimension '{}' is {} at one place of the example and {} at another", name,
                      dim.hint, hint),
          "give the two axes different names");
    }
    dim.declared = intersect(dim.declared, range);
    set_range(name, intersect(dim.range, range));
    return Int::symbol(name);
  }
  Int symbol = Int::symbol(name);
  index_.emplace(name, dims_.size());
  dims_.push_back({.name = std::string(name), .range = range, .declared = range, .hint = hint});
  ranges_.insert_or_assign(std::string(name), range);
  values_.ints.insert_or_assign(std::string(name), hint);
  return symbol;
}

Int Dims::fresh(std::string_view stem, std::int64_t hint, Range range) {
  std::string name;
  do {
    name = fmt::format("{}{}", stem, fresh_count_++);
  } while (index_.contains(name));
  Int symbol = declare(name, hint, range);
  dims_.back().from_data = true;
  return symbol;
}

Real Dims::fresh_real(double hint) {
  std::string name = fmt::format("f{}", fresh_count_++);
  values_.reals.insert_or_assign(name, hint);
  return Real::data(name);
}

Bool Dims::fresh_bool(bool hint) {
  std::string name = fmt::format("b{}", fresh_count_++);
  values_.bools.insert_or_assign(name, hint);
  return Bool::data(name);
}

namespace {

template <class T>
T simplified(const T& x, const Extent& extent, std::uint64_t replaced_bits,
             const Substitution& replacements, const Ranges& ranges) {
  if (!extent.choices) {
    return (extent.symbols & replaced_bits) == 0 ? x : substitute(x, replacements);
  }
  return resolve(x, replacements, [&](const Bool& condition) -> std::optional<bool> {
    const Bool::Node& node = condition.node();
    if (node.op == Bool::Op::constant) return node.value;
    if (node.op != Bool::Op::compare_int) return std::nullopt;
    const Range range = bounds(node.difference, ranges);
    if (node.compare == Compare::ge) {
      if (range.lo >= 0) return true;
      if (range.hi < 0) return false;
    } else if (range.lo > 0 || range.hi < 0) {
      return node.compare == Compare::ne;
    }
    return std::nullopt;
  });
}

}  // namespace

Int Dims::simplify(const Int& x) const {
  return simplified(x, extent_of(x), replaced_bits_, replacements_, ranges_);
}
Real Dims::simplify(const Real& x) const {
  return simplified(x, x.node().extent, replaced_bits_, replacements_, ranges_);
}
Bool Dims::simplify(const Bool& x) const {
  return simplified(x, x.node().extent, replaced_bits_, replacements_, ranges_);
}

std::int64_t Dims::pin(const Int& x, const Place& place) {
  const std::int64_t value = hint(x);
  settle_equal(x, value, place);
  return value;
}

Ranges ranges_of(const std::vector<Dim>& dims) {
  Ranges ranges;
  for (const Dim& dim : dims) ranges[dim.name] = dim.range;
  return ranges;
}

const Dim* Dims::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &dims_[found->second];
}

bool Dims::depends_on_data(const Bool& condition) const {
  return shape::depends_on_data(simplify(condition), dims_);
}

void Dims::set_range(std::string_view name, const Range& range) {
  dims_[index_.find(name)->second].range = range;
  ranges_.find(name)->second = range;
}

}  // namespace modelport::shape
