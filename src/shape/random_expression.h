// Random expressions for the property tests: a plain tree that can be built through the operators
// under test, in the order written or another, and computed directly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "shape/int.h"
#include "shape/real.h"

namespace modelport::shape {

/// How many cases a property is tried with: few in every test run, as many as MODELPORT_CASES says
/// in `make fuzz`.
inline int property_cases() {
  const char* asked = std::getenv("MODELPORT_CASES");
  return asked == nullptr ? 1000 : std::atoi(asked);
}

struct RandomTree {
  enum class Op {
    number,
    symbol,
    add,
    sub,
    mul,
    floor_div,
    mod,
    ceil_div,
    min,
    max,
    select,
    floor,
    trunc,
    scaled
  };
  Op op = Op::number;
  std::int64_t number = 0;  // number; scaled: tenths
  std::string name;
  std::vector<RandomTree> operands;
};

inline const std::vector<std::string>& random_symbols() {
  static const std::vector<std::string> names{"a", "b", "c", "d"};
  return names;
}

class RandomTrees {
 public:
  explicit RandomTrees(unsigned seed) : engine_(seed) {}

  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(engine_); }
  std::int64_t between(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(engine_);
  }

  struct Options {
    bool symbolic_division = true;
    bool reals = false;
  };
  RandomTree tree(int depth, const Options& options) {
    using Op = RandomTree::Op;
    if (depth == 0 || below(6) == 0) {
      if (below(3) == 0)
        return {.op = Op::number, .number = between(-5, 9), .name = {}, .operands = {}};
      return {.op = Op::symbol, .number = 0, .name = random_symbols()[below(4)], .operands = {}};
    }
    static constexpr Op kPlain[] = {Op::add, Op::add,      Op::sub, Op::mul, Op::floor_div,
                                    Op::mod, Op::ceil_div, Op::min, Op::max, Op::select};
    static constexpr Op kReal[] = {Op::floor, Op::trunc, Op::scaled};
    const bool real = options.reals && below(5) == 0;
    RandomTree result{
        .op = real ? kReal[below(3)] : kPlain[below(10)], .number = 0, .name = {}, .operands = {}};
    const int count = result.op == Op::select ? 4 : (result.op == Op::scaled ? 1 : 2);
    for (int i = 0; i < count; ++i) result.operands.push_back(tree(depth - 1, options));
    if (result.op == Op::scaled) result.number = between(1, 30);
    const bool divides = result.op == Op::floor_div || result.op == Op::mod ||
                         result.op == Op::ceil_div || result.op == Op::floor ||
                         result.op == Op::trunc;
    if (divides && (!options.symbolic_division || below(3) != 0)) {
      const std::int64_t divisor = options.symbolic_division ? between(-4, 6) : between(1, 5);
      result.operands[1] = {
          .op = Op::number, .number = divisor == 0 ? 4 : divisor, .name = {}, .operands = {}};
    }
    return result;
  }

  Bindings bindings(std::int64_t lo, std::int64_t hi) {
    Bindings values;
    for (const std::string& name : random_symbols()) values[name] = between(lo, hi);
    return values;
  }

 private:
  std::mt19937 engine_;
};

/// With `swapped`, operands of commutative operators are built the other way round.
inline Int build(const RandomTree& x, bool swapped = false) {
  using Op = RandomTree::Op;
  std::vector<Int> operands;
  for (const RandomTree& operand : x.operands) operands.push_back(build(operand, swapped));
  const auto quotient = [&] {
    return Real::binary(Real::Op::div, Real(operands[0]), Real(operands[1]));
  };
  switch (x.op) {
    case Op::number:
      return x.number;
    case Op::symbol:
      return Int::symbol(x.name);
    case Op::add:
      return swapped ? operands[1] + operands[0] : operands[0] + operands[1];
    case Op::sub:
      return swapped ? -operands[1] + operands[0] : operands[0] - operands[1];
    case Op::mul:
      return swapped ? operands[1] * operands[0] : operands[0] * operands[1];
    case Op::floor_div:
      return floor_div(operands[0], operands[1]);
    case Op::mod:
      return mod(operands[0], operands[1]);
    case Op::ceil_div:
      return ceil_div(operands[0], operands[1]);
    case Op::min:
      return swapped ? min(operands[1], operands[0]) : min(operands[0], operands[1]);
    case Op::max:
      return swapped ? max(operands[1], operands[0]) : max(operands[0], operands[1]);
    case Op::select:
      return select(Bool::compare(Compare::lt, operands[0], operands[1]), operands[2], operands[3]);
    case Op::floor:
      return floor(quotient());
    case Op::trunc:
      return trunc(quotient());
    case Op::scaled:
      return trunc(Real::binary(Real::Op::mul, Real(operands[0]),
                                Real(static_cast<double>(x.number) / 10.0)));
  }
  __builtin_unreachable();
}

/// Nothing where it divides by zero or leaves a range in which plain arithmetic is exact.
inline std::optional<std::int64_t> compute(const RandomTree& x, const Bindings& values) {
  using Op = RandomTree::Op;
  std::vector<std::int64_t> v;
  for (const RandomTree& operand : x.operands) {
    const auto value = compute(operand, values);
    if (!value || *value > 1'000'000'000 || *value < -1'000'000'000) return std::nullopt;
    v.push_back(*value);
  }
  const auto floored = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
  };
  const bool divides = x.op == Op::floor_div || x.op == Op::mod || x.op == Op::ceil_div ||
                       x.op == Op::floor || x.op == Op::trunc;
  if (divides && v[1] == 0) return std::nullopt;
  switch (x.op) {
    case Op::number:
      return x.number;
    case Op::symbol:
      return values.find(x.name)->second;
    case Op::add:
      return v[0] + v[1];
    case Op::sub:
      return v[0] - v[1];
    case Op::mul:
      return v[0] * v[1];
    case Op::floor_div:
    case Op::floor:
      return floored(v[0], v[1]);
    case Op::mod:
      return v[0] - v[1] * floored(v[0], v[1]);
    case Op::ceil_div:
      return -floored(-v[0], v[1]);
    case Op::min:
      return std::min(v[0], v[1]);
    case Op::max:
      return std::max(v[0], v[1]);
    case Op::select:
      return v[0] < v[1] ? v[2] : v[3];
    case Op::trunc:
      return v[0] / v[1];
    case Op::scaled:
      return static_cast<std::int64_t>(
          std::trunc(static_cast<double>(v[0]) * (static_cast<double>(x.number) / 10.0)));
  }
  __builtin_unreachable();
}

}  // namespace modelport::shape
