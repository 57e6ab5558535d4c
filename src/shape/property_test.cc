// Random expressions against plain integer arithmetic.
#include <doctest/doctest.h>

#include "base/error.h"
#include "shape/random_expression.h"

namespace modelport::shape {
namespace {

const int kCases = property_cases();

/// Nothing where the expression is too large or divides by zero: an ExportError, which is what it
/// should be.
std::optional<Int> try_build(const RandomTree& tree, bool swapped = false) {
  try {
    return build(tree, swapped);
  } catch (const ExportError&) {
    return std::nullopt;
  }
}

TEST_CASE("expressions have the value that plain arithmetic gives") {
  RandomTrees random(1);
  int compared = 0;
  for (int i = 0; i < kCases; ++i) {
    const bool reals = i % 3 == 0;
    const RandomTree tree = random.tree(1 + i % 5, {.symbolic_division = true, .reals = reals});
    const auto x = try_build(tree);
    if (!x) continue;
    CAPTURE(print(*x));
    for (int k = 0; k < 8; ++k) {
      // Truncation takes symbols to be sizes.
      const Bindings values = random.bindings(reals ? 0 : -7, 12);
      const auto expected = compute(tree, values);
      if (!expected) continue;
      CAPTURE(i);
      REQUIRE(evaluate(*x, values) == *expected);
      ++compared;
    }
  }
  CHECK(compared > kCases * 3);
}

TEST_CASE("the order of construction does not matter") {
  RandomTrees random(2);
  for (int i = 0; i < kCases; ++i) {
    const RandomTree tree =
        random.tree(1 + i % 5, {.symbolic_division = true, .reals = i % 4 == 0});
    const auto x = try_build(tree);
    const auto y = try_build(tree, true);
    if (!x || !y) continue;
    CAPTURE(print(*x));
    CAPTURE(print(*y));
    REQUIRE(*x == *y);
    REQUIRE(x->hash() == y->hash());
  }
}

TEST_CASE("what is printed parses back to the same expression") {
  RandomTrees random(3);
  for (int i = 0; i < kCases; ++i) {
    const auto x =
        try_build(random.tree(1 + i % 5, {.symbolic_division = true, .reals = i % 2 == 0}));
    if (!x) continue;
    const std::string text = print(*x);
    CAPTURE(text);
    const Int again = parse_int(text);
    REQUIRE(again == *x);
    REQUIRE(print(again) == text);
    const auto y = try_build(random.tree(2, {.symbolic_division = true, .reals = false}));
    if (!y) continue;
    for (const Compare op : {Compare::eq, Compare::ne, Compare::ge, Compare::lt}) {
      const Bool condition = Bool::compare(op, *x, *y);
      CAPTURE(print(condition));
      REQUIRE(parse_bool(print(condition)) == condition);
      REQUIRE(!!condition == condition);
    }
  }
}

TEST_CASE("comparisons are true where they are") {
  RandomTrees random(4);
  for (int i = 0; i < kCases; ++i) {
    const RandomTree left = random.tree(1 + i % 3, {});
    const RandomTree right = random.tree(1 + i % 2, {});
    const auto x = try_build(left);
    const auto y = try_build(right);
    if (!x || !y) continue;
    for (int k = 0; k < 4; ++k) {
      Values values;
      values.ints = random.bindings(-7, 12);
      const auto a = compute(left, values.ints);
      const auto b = compute(right, values.ints);
      if (!a || !b) continue;
      CAPTURE(print(*x));
      CAPTURE(print(*y));
      REQUIRE(evaluate(Bool::compare(Compare::eq, *x, *y), values) == (*a == *b));
      REQUIRE(evaluate(Bool::compare(Compare::ne, *x, *y), values) == (*a != *b));
      REQUIRE(evaluate(Bool::compare(Compare::lt, *x, *y), values) == (*a < *b));
      REQUIRE(evaluate(Bool::compare(Compare::le, *x, *y), values) == (*a <= *b));
      REQUIRE(evaluate(Bool::compare(Compare::gt, *x, *y), values) == (*a > *b));
      REQUIRE(evaluate(Bool::compare(Compare::ge, *x, *y), values) == (*a >= *b));
      const Bool either =
          Bool::compare(Compare::lt, *x, *y) || Bool::compare(Compare::eq, *x, *y + 1);
      REQUIRE(evaluate(either, values) == (*a < *b || *a == *b + 1));
      REQUIRE(evaluate(!either, values) == !(*a < *b || *a == *b + 1));
    }
  }
}

TEST_CASE("bounds hold every value") {
  RandomTrees random(5);
  for (int i = 0; i < kCases; ++i) {
    const RandomTree tree =
        random.tree(1 + i % 4, {.symbolic_division = true, .reals = i % 3 == 0});
    const auto x = try_build(tree);
    if (!x) continue;
    Ranges ranges;
    for (const std::string& name : random_symbols()) {
      const std::int64_t lo = random.between(i % 3 == 0 ? 0 : -4, 5);
      ranges[name] = {lo, random.below(3) == 0 ? Range::kUnbounded : lo + random.below(9)};
    }
    const Range range = bounds(*x, ranges);
    CAPTURE(print(*x));
    CAPTURE(print(range));
    for (int k = 0; k < 8; ++k) {
      Bindings values;
      for (const auto& [name, r] : ranges) {
        values[name] = random.between(r.lo, r.hi == Range::kUnbounded ? r.lo + 30 : r.hi);
      }
      const auto value = compute(tree, values);
      if (!value) continue;
      REQUIRE(range.lo <= *value);
      REQUIRE(*value <= range.hi);
    }
  }
}

TEST_CASE("substituting and evaluating commute") {
  RandomTrees random(6);
  for (int i = 0; i < kCases; ++i) {
    const bool reals = i % 3 == 0;
    const RandomTree tree = random.tree(1 + i % 4, {.symbolic_division = true, .reals = reals});
    const RandomTree part = random.tree(1 + i % 2, {.symbolic_division = false, .reals = false});
    const auto x = try_build(tree);
    const auto y = try_build(part);
    if (!x || !y) continue;
    std::optional<Int> composed;
    try {
      composed = substitute(*x, {{"a", *y}});
    } catch (const ExportError&) {
      continue;
    }
    for (int k = 0; k < 4; ++k) {
      Bindings values = random.bindings(0, 9);
      const auto inner = compute(part, values);
      if (!inner || (reals && *inner < 0)) continue;
      Bindings replaced = values;
      replaced["a"] = *inner;
      const auto expected = compute(tree, replaced);
      if (!expected) continue;
      CAPTURE(print(*x));
      CAPTURE(print(*y));
      REQUIRE(evaluate(*composed, values) == *expected);
    }
  }
}

TEST_CASE("exact quotients multiply back") {
  RandomTrees random(7);
  for (int i = 0; i < kCases; ++i) {
    const auto x = try_build(random.tree(1 + i % 3, {}));
    const auto y = try_build(random.tree(1 + i % 2, {}));
    if (!x || !y || *y == Int(0)) continue;
    CAPTURE(print(*x));
    CAPTURE(print(*y));
    const auto quotient = exact_quotient(*x * *y, *y);
    REQUIRE(quotient.has_value());
    REQUIRE(*quotient == *x);
  }
}

}  // namespace
}  // namespace modelport::shape
