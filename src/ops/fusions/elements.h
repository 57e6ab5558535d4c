// What one element of a value is computed from, as an expression over elements of inputs, weights
// and results that are not looked into. Indices are symbolic, so that one expression stands for all
// elements; two values whose elements are the same expression are equal, however the model wrote
// them. Masks and rotations are recognised by this.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace modelport::ops::fusions {

struct TermId {
  std::uint32_t index = UINT32_MAX;
  auto operator<=>(const TermId&) const = default;
};
using Index = std::vector<shape::Int>;

struct Term {
  enum class Kind {
    number,   // an integer that indices and sizes give
    real,     // a plain number
    element,  // of a value that is not looked into
    call,     // add, sub, mul, neg, ... of parts; and, at_least_zero, nonzero, where for truths
  };
  Kind kind = Kind::real;
  shape::Int number = 0;
  double real = 0;
  ir::ValueId value = {};
  Index index = {};
  std::string op = {};
  std::vector<TermId> parts = {};
  bool operator==(const Term&) const = default;
  bool is(std::string_view call) const { return kind == Kind::call && op == call; }
};

/// Weights without axes whose number is known, by name.
using KnownNumbers = std::map<std::string, double, std::less<>>;

class Elements {
 public:
  /// `leaf` is not looked into.
  Elements(const ir::Graph& graph, const KnownNumbers& known, ir::ValueId leaf = {})
      : graph_(graph), known_(known), leaf_(leaf) {}

  TermId at(ir::ValueId value, Index index);
  const Term& operator[](TermId id) const { return terms_[id.index]; }
  /// Whether elements of `leaf` have a part in it.
  bool has_leaf(TermId id) const { return has_leaf_[id.index]; }

 private:
  struct Place;  // a result of a node, and the index in it
  using Rule = TermId (Elements::*)(const Place& place);
  static const std::unordered_map<std::string_view, Rule>& rules();

  // Rules for operators that move elements.
  TermId same(const Place& p);
  TermId expanded(const Place& p);
  TermId unsqueezed(const Place& p);
  TermId squeezed(const Place& p);
  TermId transposed(const Place& p);
  TermId permuted(const Place& p);
  TermId sliced(const Place& p);
  TermId selected(const Place& p);
  TermId joined(const Place& p);
  TermId stacked(const Place& p);
  TermId cut(const Place& p);
  TermId reshaped(const Place& p);
  TermId repeated(const Place& p);
  TermId padded(const Place& p);
  TermId indexed(const Place& p);
  // Rules for operators that compute.
  TermId counted(const Place& p);
  TermId ones(const Place& p);
  TermId cast(const Place& p);
  TermId sum(const Place& p);
  TermId product(const Place& p);
  TermId negated(const Place& p);
  TermId unary(const Place& p);
  TermId compared(const Place& p);
  TermId both(const Place& p);
  TermId chosen(const Place& p);

  /// An operand at the place that the result's index broadcasts from; numbers are terms as well.
  TermId operand(const Place& p, std::string_view name);
  TermId stop(const Place& p);
  TermId element(ir::ValueId value, Index index);
  TermId call(std::string op, std::vector<TermId> parts);
  TermId number(const shape::Int& x);
  TermId real(double x);
  TermId intern(Term term);
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }

  const ir::Graph& graph_;
  const KnownNumbers& known_;
  ir::ValueId leaf_;
  std::vector<Term> terms_;
  std::vector<bool> has_leaf_;
  std::unordered_multimap<std::size_t, TermId> by_hash_;
};

}  // namespace modelport::ops::fusions
