// Symbolic floats and bools, as far as arithmetic on sizes needs them: `seq ** -0.5`, `seq / 2`,
// `seq > 1`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shape/int.h"

namespace modelport::shape {

/// An expression tree over integers and numbers; folded where it is constant, otherwise kept as
/// written.
class Real {
 public:
  enum class Op {
    number,
    integer,
    add,
    sub,
    mul,
    div,
    pow,
    min,
    max,
    neg,
    abs,
    sqrt,
    exp,
    log,
    log2,
    sin,
    cos,
    tan,
    tanh,
    select,
    data
  };
  Real(double value = 0);  // NOLINT: numbers are expressions
  explicit Real(const Int& value);
  /// A float read out of a tensor (`t.item()`), known by name.
  static Real data(std::string_view name);
  static Real binary(Op op, const Real& a, const Real& b);
  static Real unary(Op op, const Real& a);
  static Real select(const Bool& when, const Real& a, const Real& b);

  std::optional<double> constant() const;
  struct Node;
  const Node& node() const { return *node_; }
  friend bool operator==(const Real& a, const Real& b);  // same tree

 private:
  explicit Real(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

enum class Compare { eq, ne, lt, le, gt, ge };

/// A comparison of integers or reals, or and/or/not of such. Integer comparisons are canonical:
/// `seq > 1` and `seq >= 2` and `1 < seq` are the same condition.
class Bool {
 public:
  enum class Op { constant, compare_int, compare_real, logical_and, logical_or, logical_not, data };
  Bool(bool value = false);  // NOLINT: truth values are expressions
  static Bool compare(Compare op, const Int& a, const Int& b);
  static Bool compare(Compare op, const Real& a, const Real& b);
  /// A bool read out of a tensor, known by name.
  static Bool data(std::string_view name);
  friend Bool operator&&(const Bool& a, const Bool& b);
  friend Bool operator||(const Bool& a, const Bool& b);
  friend Bool operator!(const Bool& a);
  friend bool operator==(const Bool& a, const Bool& b);

  std::optional<bool> constant() const;
  struct Node;
  const Node& node() const { return *node_; }

 private:
  explicit Bool(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;
};

struct Real::Node {
  Op op;
  double number = 0;                 // number
  Int integer;                       // integer
  std::string name;                  // data
  std::vector<Real> operands;        // of every other operator; select: the two choices
  std::shared_ptr<const Bool> when;  // select
  detail::Extent extent;
};

/// compare_int is kept as `difference op 0` with op one of eq, ne, ge.
struct Bool::Node {
  Op op;
  bool value = false;  // constant
  Compare compare = Compare::eq;
  Int difference;              // compare_int
  std::vector<Real> reals;     // compare_real: both sides
  std::vector<Bool> operands;  // and, or, not
  std::string name;            // data
  detail::Extent extent;
};

/// Values of symbols: integers, and floats and bools read from data.
struct Values {
  Bindings ints;
  std::map<std::string, double, std::less<>> reals;
  std::map<std::string, bool, std::less<>> bools;
};
std::int64_t evaluate(const Int& x, const Values& values);
double evaluate(const Real& x, const Values& values);
bool evaluate(const Bool& x, const Values& values);

Real substitute(const Real& x, const Substitution& replacements);
Bool substitute(const Bool& x, const Substitution& replacements);
void collect_symbols(const Real& x, std::set<std::string, std::less<>>& into);
void collect_symbols(const Bool& x, std::set<std::string, std::less<>>& into);

/// Reals print so that they parse back exactly ("(seq/2.0)**-0.5"); a real that is a plain integer
/// expression prints as float(seq). Integer comparisons print solved where they can be: "seq >= 2",
/// "total == past + seq".
std::string print(const Real& x);
std::string print(const Bool& x);
Real parse_real(std::string_view text);
Bool parse_bool(std::string_view text);

}  // namespace modelport::shape
