// Whether two graphs do the same, whatever their values are numbered.
#include <algorithm>
#include <span>

#include "ir/graph.h"
#include "ir/lexical.h"

namespace modelport::ir {

namespace {

/// Walks both programs side by side; results of nodes are paired as they are met.
class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b), partner_(a.values().size()) {}

  bool same() {
    return same_inputs() && same_nodes() && all_same(a_.outputs, b_.outputs) &&
           all_same(a_.mutations, b_.mutations) && all_same(a_.assumptions, b_.assumptions);
  }

 private:
  template <class T>
  bool all_same(const std::vector<T>& a, const std::vector<T>& b) const {
    return std::ranges::equal(a, b, [&](const T& x, const T& y) { return same(x, y); });
  }

  bool pair(ValueId a, ValueId b) {
    if (a.index >= partner_.size() || b.index >= b_.values().size()) return false;
    if (!(a_.value(a).type == b_.value(b).type)) return false;
    partner_[a.index] = b;
    return true;
  }

  bool same_inputs() {
    return std::ranges::equal(a_.inputs, b_.inputs, [&](ValueId a, ValueId b) {
      return pair(a, b) && a_.value(a).name == b_.value(b).name;
    });
  }

  bool same_nodes() {
    return std::ranges::equal(a_.nodes(), b_.nodes(), [&](const Node& a, const Node& b) {
      return a.op == b.op && all_same(a.args, b.args) &&
             std::ranges::equal(a.results, b.results,
                                [&](ValueId x, ValueId y) { return pair(x, y); });
    });
  }

  bool same(ValueId a, ValueId b) const {
    if (a.index >= partner_.size() || b.index >= b_.values().size()) return false;
    const Value& x = a_.value(a);
    if (x.origin != Origin::weight) return partner_[a.index] == b;
    const Value& y = b_.value(b);
    return y.origin == Origin::weight && x.name == y.name && x.weight_kind == y.weight_kind &&
           x.type == y.type;
  }

  bool same(const Arg& a, const Arg& b) const {
    if (const ValueId* x = a.get<ValueId>()) {
      const ValueId* y = b.get<ValueId>();
      return y != nullptr && same(*x, *y);
    }
    if (const ArgList* x = a.get<ArgList>()) {
      const ArgList* y = b.get<ArgList>();
      return y != nullptr && all_same(*x, *y);
    }
    return a == b;
  }

  bool same(const NamedArg& a, const NamedArg& b) const {
    return a.name == b.name && same(a.arg, b.arg);
  }
  bool same(const Output& a, const Output& b) const {
    return a.name == b.name && same(a.value, b.value);
  }
  bool same(const Mutation& a, const Mutation& b) const {
    return same(a.buffer, b.buffer) && same(a.value, b.value);
  }
  bool same(const Assumption& a, const Assumption& b) const {
    if (!same(a.value, b.value) || a.expected.index() != b.expected.index()) return false;
    const double* x = std::get_if<double>(&a.expected);
    return x != nullptr ? same_number(*x, std::get<double>(b.expected)) : a.expected == b.expected;
  }

  const Graph& a_;
  const Graph& b_;
  std::vector<ValueId> partner_;  // by value of a; ValueId{} until it is met
};

}  // namespace

bool same_program(const Graph& a, const Graph& b) { return Comparison(a, b).same(); }

}  // namespace modelport::ir
