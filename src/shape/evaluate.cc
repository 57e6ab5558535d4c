// Values of expressions for given values of their symbols, exact or an error.
#include <fmt/format.h>

#include <cmath>

#include "shape/expression.h"
#include "shape/python_arithmetic.h"

namespace modelport::shape {

using namespace detail;

namespace {

using Wide = __int128;

constexpr Wide kWidest = Wide{1} << 126;

class Evaluator {
 public:
  explicit Evaluator(const Bindings& ints) : ints_(ints) {}
  explicit Evaluator(const Values& values) : ints_(values.ints), values_(&values) {}

  std::int64_t of(const Int& x) const {
    if (const auto number = x.constant()) return *number;
    const Wide total = wide(x);
    if (total > INT64_MAX || total < INT64_MIN) throw_overflow();
    return static_cast<std::int64_t>(total);
  }

  double of(const Real& x) const {
    using Op = Real::Op;
    const Real::Node& node = x.node();
    switch (node.op) {
      case Op::number:
        return node.number;
      case Op::integer:
        return static_cast<double>(of(node.integer));
      case Op::data:
        return lookup(values_ == nullptr ? nullptr : &values_->reals, node.name);
      case Op::select:
        return of(*node.when) ? of(node.operands[0]) : of(node.operands[1]);
      default:
        break;
    }
    if (node.operands.size() == 1) return python_unary(node.op, of(node.operands[0]));
    return python_binary(node.op, of(node.operands[0]), of(node.operands[1]));
  }

  bool of(const Bool& x) const {
    using Op = Bool::Op;
    const Bool::Node& node = x.node();
    switch (node.op) {
      case Op::constant:
        return node.value;
      case Op::compare_int: {
        const Wide difference = wide(node.difference);
        if (node.compare == Compare::ge) return difference >= 0;
        return (difference == 0) == (node.compare == Compare::eq);
      }
      case Op::compare_real:
        return python_compare(node.compare, of(node.reals[0]), of(node.reals[1]));
      case Op::logical_and:
        for (const Bool& operand : node.operands) {
          if (!of(operand)) return false;
        }
        return true;
      case Op::logical_or:
        for (const Bool& operand : node.operands) {
          if (of(operand)) return true;
        }
        return false;
      case Op::logical_not:
        return !of(node.operands[0]);
      case Op::data:
        return lookup(values_ == nullptr ? nullptr : &values_->bools, node.name);
    }
    __builtin_unreachable();
  }

 private:
  /// Parts of a sum, and the difference of two sizes, may exceed 64 bits where what is wanted does
  /// not.
  Wide wide(const Int& x) const {
    Wide total = constant_of(x);
    for (const Term& term : terms_of(x)) {
      Wide value = term.coefficient;
      for (const Factor& factor : term.monomial->factors) {
        const Wide base = of(*factor.atom);
        for (std::int32_t i = 0; i < factor.power; ++i) {
          if (!multiply_wide(value, base, kWidest, value)) throw_overflow();
        }
      }
      if (__builtin_add_overflow(total, value, &total)) throw_overflow();
    }
    return total;
  }

  std::int64_t of(const Atom& atom) const {
    using Kind = Atom::Kind;
    switch (atom.kind) {
      case Kind::symbol:
        return lookup(&ints_, atom.name);
      case Kind::floor_div: {
        const std::int64_t over = of(atom.operands[0]);
        const std::int64_t under = of(atom.operands[1]);
        if (under == 0) throw_arithmetic("division by zero: " + print(atom.operands[1]) + " is 0");
        return checked_floor_div(over, under);
      }
      case Kind::min:
      case Kind::max: {
        std::int64_t best = of(atom.operands[0]);
        for (const Int& operand : atom.operands) {
          const std::int64_t value = of(operand);
          if (atom.kind == Kind::min ? value < best : value > best) best = value;
        }
        return best;
      }
      case Kind::select:
        return of(*atom.when) ? of(atom.operands[0]) : of(atom.operands[1]);
      case Kind::floor:
        return to_integer(std::floor(of(*atom.real)));
      case Kind::ceil:
        return to_integer(std::ceil(of(*atom.real)));
      case Kind::trunc:
        return to_integer(std::trunc(of(*atom.real)));
      case Kind::round:
        return to_integer(std::nearbyint(of(*atom.real)));
    }
    __builtin_unreachable();
  }

  template <class T>
  static T lookup(const std::map<std::string, T, std::less<>>* values, const std::string& name) {
    if (values != nullptr) {
      if (const auto found = values->find(name); found != values->end()) return found->second;
    }
    throw_arithmetic(fmt::format("no value is known for '{}'", name));
  }

  const Bindings& ints_;
  const Values* values_ = nullptr;
};

}  // namespace

std::int64_t evaluate(const Int& x, const Bindings& values) { return Evaluator(values).of(x); }
std::int64_t evaluate(const Int& x, const Values& values) { return Evaluator(values).of(x); }
double evaluate(const Real& x, const Values& values) { return Evaluator(values).of(x); }
bool evaluate(const Bool& x, const Values& values) { return Evaluator(values).of(x); }

}  // namespace modelport::shape
