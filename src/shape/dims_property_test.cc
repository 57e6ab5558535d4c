// Random sequences of guards against enumeration of all small sizes.
#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.h"
#include "shape/dims.h"
#include "shape/random_expression.h"

namespace modelport::shape {
namespace {

constexpr std::int64_t kMost = 6;

struct Setup {
  Dims dims;
  std::vector<Values> all;  // every binding within the declared ranges
};

Setup random_setup(RandomTrees& random) {
  Setup setup;
  std::vector<Range> ranges;
  for (const std::string& name : random_symbols()) {
    const std::int64_t lo = random.below(2);
    const bool open = random.below(3) != 0;
    const Range range{lo, open ? Range::kUnbounded : random.between(lo + 1, kMost)};
    const std::int64_t hint = random.between(lo, open ? kMost : range.hi);
    setup.dims.declare(name, hint, range);
    ranges.push_back({range.lo, open ? kMost : range.hi});
  }
  Values values;
  const auto fill = [&](auto& self, std::size_t at) -> void {
    if (at == ranges.size()) {
      setup.all.push_back(values);
      return;
    }
    for (std::int64_t v = ranges[at].lo; v <= ranges[at].hi; ++v) {
      values.ints[random_symbols()[at]] = v;
      self(self, at + 1);
    }
  };
  fill(fill, 0);
  return setup;
}

Bool random_condition(RandomTrees& random) {
  static constexpr Compare kOps[] = {Compare::eq, Compare::eq, Compare::ne,
                                     Compare::lt, Compare::le, Compare::ge};
  const RandomTrees::Options options{.symbolic_division = false, .reals = false};
  const Int left = build(random.tree(random.below(3), options));
  const Int right = build(random.tree(random.below(2), options));
  const Bool one = Bool::compare(kOps[random.below(6)], left, right);
  const int shape = random.below(8);
  if (shape > 1) return one;
  const Bool other = Bool::compare(kOps[random.below(6)], right, build(random.tree(1, options)));
  return shape == 0 ? one && other : one || other;
}

bool admitted_by_guards(const Dims& dims, const Values& values) {
  return std::ranges::all_of(dims.guards(),
                             [&](const Guard& guard) { return evaluate(guard.condition, values); });
}

/// What a program knows after capture: ranges, replacements, and the guards it has to test.
bool admitted_by_effects(const Dims& dims, const Values& values) {
  for (const Dim& dim : dims.all()) {
    const std::int64_t value = values.ints.find(dim.name)->second;
    if (value < dim.range.lo || value > dim.range.hi) return false;
  }
  for (const auto& [name, replacement] : dims.replacements()) {
    if (values.ints.find(name)->second != evaluate(replacement, values)) return false;
  }
  return std::ranges::all_of(dims.guards(), [&](const Guard& guard) {
    return guard.effect != Guard::Effect::kept || evaluate(guard.condition, values);
  });
}

TEST_CASE("guards hold in the example, and their effects say the same as they do") {
  RandomTrees random(11);
  for (int i = 0; i < property_cases() / 20; ++i) {
    Setup setup = random_setup(random);
    Dims& dims = setup.dims;
    std::string story;
    const int steps = 1 + random.below(5);
    for (int k = 0; k < steps; ++k) {
      const Bool condition = random_condition(random);
      story += print(condition) + "; ";
      const bool expected = evaluate(condition, dims.values());
      REQUIRE(dims.settle(condition, {}) == expected);
      // What was settled is known from then on.
      CAPTURE(story);
      CAPTURE(i);
      REQUIRE(dims.hint(condition) == expected);
      REQUIRE(dims.decide(condition).value_or(expected) == expected);
    }
    std::string guards;
    for (const Guard& guard : dims.guards()) {
      guards += print(guard.condition) + (guard.effect == Guard::Effect::kept ? " (kept); " : "; ");
    }
    CAPTURE(story);
    CAPTURE(guards);
    REQUIRE(admitted_by_guards(dims, dims.values()));
    REQUIRE(admitted_by_effects(dims, dims.values()));
    const auto agree = [&](const Values& values) {
      return admitted_by_guards(dims, values) == admitted_by_effects(dims, values);
    };
    REQUIRE(std::ranges::all_of(setup.all, agree));
  }
}

TEST_CASE("what is simplified or decided is so for all sizes that the guards admit") {
  RandomTrees random(12);
  int decided = 0;
  for (int i = 0; i < property_cases() / 20; ++i) {
    Setup setup = random_setup(random);
    Dims& dims = setup.dims;
    for (int k = random.below(4); k > 0; --k) dims.settle(random_condition(random), {});
    std::vector<Values> admitted;
    for (const Values& values : setup.all) {
      if (admitted_by_guards(dims, values)) admitted.push_back(values);
    }
    for (int k = 0; k < 6; ++k) {
      const Int x = build(random.tree(3, {.symbolic_division = false, .reals = true}));
      const Int simple = dims.simplify(x);
      const Bool condition = random_condition(random);
      const auto known = dims.decide(condition);
      decided += known.has_value();
      CAPTURE(print(x));
      CAPTURE(print(simple));
      CAPTURE(print(condition));
      REQUIRE(std::ranges::all_of(admitted, [&](const Values& values) {
        return evaluate(simple, values) == evaluate(x, values);
      }));
      REQUIRE(std::ranges::all_of(admitted, [&](const Values& values) {
        return !known || evaluate(condition, values) == *known;
      }));
    }
  }
  CHECK(decided > property_cases() / 30);
}

TEST_CASE("a condition that was settled is decided afterwards") {
  RandomTrees random(13);
  int undecided = 0;
  for (int i = 0; i < property_cases() / 6; ++i) {
    Setup setup = random_setup(random);
    const Bool condition = random_condition(random);
    const bool truth = setup.dims.settle(condition, {});
    const auto known = setup.dims.decide(condition);
    if (known) {
      REQUIRE(*known == truth);
    } else {
      ++undecided;
      MESSAGE(print(condition));
    }
  }
  CHECK(undecided == 0);
}

}  // namespace
}  // namespace modelport::shape
