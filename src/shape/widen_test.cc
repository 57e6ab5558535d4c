// What a trial at another size adds to the sizes that a capture stands for.
#include "shape/widen.h"

#include <doctest/doctest.h>

namespace modelport::shape {
namespace {

const Dims::Place kLine{{"model.py", 3, "forward"}, ""};

Bool at_most(const char* symbol, std::int64_t bound) {
  return Bool::compare(Compare::le, Int::symbol(symbol), Int(bound));
}

/// A capture at n = 7 (and m = 5) that asked `n > 8`, and a trial at 9.
struct Example {
  Dims first;
  Dims trial;
  std::vector<Dim> dims;
  std::vector<Guard> guards;

  Example() {
    for (auto [own, size] : {std::pair(&first, 7), std::pair(&trial, 9)}) {
      own->declare("n", size, {1, Range::kUnbounded});
      own->declare("m", 5, {1, Range::kUnbounded});
    }
    trial.set_trial(true);
    first.settle(!at_most("n", 8), kLine);
    trial.settle(!at_most("n", 8), kLine);
  }

  Dim widened() {
    dims = first.all();
    widen({dims, guards}, {trial, {"n"}, first.met(), first.values()});
    return dims[0];
  }
};

}  // namespace

TEST_CASE("a range is widened without end where the trial met no further bound") {
  Example example;
  CHECK(example.first.all()[0].range.hi == 8);
  CHECK(example.widened().range == Range{1, Range::kUnbounded});
}

TEST_CASE("a range is widened to the next bound that the trial met, with its line") {
  Example example;
  example.trial.settle(!at_most("n", 32), {{"model.py", 4, "forward"}, ""});
  const Dim n = example.widened();
  CHECK(n.range.hi == 32);
  CHECK(n.hi_where.line == 4);
}

TEST_CASE("what the trial asked of another size for the first time is a limit") {
  Example example;
  example.trial.settle(!at_most("m", 20), kLine);
  example.widened();
  CHECK(example.dims[1].range.hi == 20);
}

TEST_CASE("what the first capture asked as well is no limit anew") {
  Example example;
  example.first.settle(!at_most("m", 20), kLine);
  example.trial.settle(!at_most("m", 20), kLine);
  example.dims = example.first.all();
  example.dims[1].range.hi = Range::kUnbounded;  // it was tried and makes no difference
  widen({example.dims, example.guards},
        {example.trial, {"n"}, example.first.met(), example.first.values()});
  CHECK(example.dims[1].range.hi == Range::kUnbounded);
}

TEST_CASE("a condition on two sizes that holds in both captures is kept") {
  Example example;
  const Bool small = Bool::compare(Compare::le, Int::symbol("n") * Int::symbol("m"), Int(100));
  example.trial.settle(small, kLine);
  example.widened();
  REQUIRE(example.guards.size() == 1);
  CHECK(example.guards[0].condition == small);
}

TEST_CASE("an equality that the first capture had no need to ask is kept") {
  Example example;
  const Bool equal = Bool::compare(Compare::eq, mod(Int::symbol("n"), 2), Int(1));
  example.trial.settle(equal, kLine);
  example.widened();
  REQUIRE(example.guards.size() == 1);
  CHECK(example.guards[0].condition == equal);
}

TEST_CASE("a trial that asks what the first capture did not come to ask widens nothing") {
  Example example;  // n > 8 and n % 2 == 0: at 7 the second question is not asked
  example.trial.settle(Bool::compare(Compare::eq, mod(Int::symbol("n"), 2), Int(0)), kLine);
  example.dims = example.first.all();
  const bool odd_at_first = example.first.hint(mod(Int::symbol("n"), 2)) == 1;
  CHECK(odd_at_first);  // as at 9: what the trial asked holds in both
  CHECK(widen({example.dims, example.guards},
              {example.trial, {"n"}, example.first.met(), example.first.values()}));
  CHECK(example.guards.size() == 1);

  Example other;
  other.trial.settle(Bool::compare(Compare::eq, mod(Int::symbol("n"), 3), Int(0)), kLine);
  other.dims = other.first.all();
  CHECK(!widen({other.dims, other.guards},
               {other.trial, {"n"}, other.first.met(), other.first.values()}));
  CHECK(other.dims[0].range.hi == 8);
}

TEST_CASE("a trial records conditions on data, which belong to its graph") {
  Dims trial;
  trial.declare("n", 9, {1, Range::kUnbounded});
  const Int count = trial.fresh("u", 3, {});
  trial.set_trial(true);
  trial.settle(!at_most("n", 8), kLine);
  CHECK(trial.guards().empty());
  trial.settle(Bool::compare(Compare::le, count, Int::symbol("n")), kLine);
  CHECK(trial.guards().size() == 1);
}

}  // namespace modelport::shape
