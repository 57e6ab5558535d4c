#include "shape/int.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "shape/real.h"

namespace modelport::shape {
namespace {

const Int x = Int::symbol("x");
const Int y = Int::symbol("y");
const Int seq = Int::symbol("seq");
const Int past = Int::symbol("past");
const Int batch = Int::symbol("batch");

TEST_CASE("constants fold without becoming expressions") {
  CHECK(Int(3) + Int(4) == Int(7));
  CHECK((Int(3) * Int(4)).constant() == 12);
  CHECK((x - x).constant() == 0);
  CHECK(floor_div(-7, 2) == Int(-4));
  CHECK(mod(-7, 2) == Int(1));
  CHECK(mod(7, -2) == Int(-1));
  CHECK(ceil_div(7, 2) == Int(4));
  CHECK(min(3, 4) == Int(3));
  CHECK(max(3, 4) == Int(4));
  CHECK(pow(3, 4) == Int(81));
}

TEST_CASE("expressions that are equal as polynomials are equal") {
  CHECK(past + seq == seq + past);
  CHECK((x + y) * (x - y) == x * x - y * y);
  CHECK(pow(x + 1, 2) == x * x + 2 * x + 1);
  CHECK(batch * (past + seq) == seq * batch + batch * past);
  CHECK((x + y).hash() == (y + x).hash());
  CHECK_FALSE(x == y);
  CHECK(Int::symbol("x") == x);
  CHECK(product({batch, seq, 64}) == 64 * seq * batch);
}

TEST_CASE("a lone symbol knows its name") {
  CHECK(seq.as_symbol() == "seq");
  CHECK_FALSE((seq + 1).as_symbol());
  CHECK_FALSE((2 * seq).as_symbol());
  CHECK_FALSE((seq * seq).as_symbol());
  CHECK_FALSE(Int(3).as_symbol());
}

TEST_CASE("division takes out what divides") {
  CHECK(floor_div(4 * x, 4) == x);
  CHECK(floor_div(4 * x + 3, 4) == x);
  CHECK(floor_div(x * y, y) == x);
  CHECK(floor_div(x + 8, 4) == 2 + floor_div(x, 4));
  CHECK(floor_div(5 * x, 4) == x + floor_div(x, 4));
  CHECK(floor_div(2 * x + 1, 4) == floor_div(x, 2));
  CHECK(floor_div(floor_div(x, 2), 3) == floor_div(x, 6));
  CHECK(floor_div(floor_div(x + 1, 2) + 1, 2) == floor_div(x + 3, 4));
  CHECK(floor_div(x, -2) == floor_div(-x, 2));
  CHECK(floor_div(x + 3 * y, y) == 3 + floor_div(x, y));
  CHECK(floor_div(x * y + seq, y) == x + floor_div(seq, y));
  CHECK(floor_div(2 * x * y, 2 * seq * y) == floor_div(x, seq));
  CHECK(floor_div(x * x - y * y, x + y) == x - y);
  CHECK(floor_div(0, x) == Int(0));
  CHECK_THROWS_AS(floor_div(x, 0), ExportError);
  CHECK_THROWS_AS(mod(x, 0), ExportError);
  CHECK_THROWS_AS(floor_div(INT64_MIN, -1), ExportError);
}

TEST_CASE("rounding up has one form") {
  CHECK(ceil_div(x, 4) == -floor_div(-x, 4));
  CHECK(ceil_div(x, 4) == floor_div(x + 3, 4));
  CHECK(ceil_div(x, 2) == floor_div(x - 1, 2) + 1);
  CHECK(ceil_div(x, y) == -floor_div(-x, y));
}

TEST_CASE("remainders vanish where they must") {
  CHECK(mod(4 * x, 4) == Int(0));
  CHECK(mod(4 * x + 3, 4) == Int(3));
  CHECK(mod(x * y, y) == Int(0));
  CHECK(mod(x + 4, 4) == mod(x, 4));
  CHECK(mod(mod(x, 4), 4) == mod(x, 4));
  CHECK(floor_div(mod(x, 4), 4) == Int(0));
  CHECK(4 * floor_div(x, 4) + mod(x, 4) == x);
}

TEST_CASE("padding to a multiple is a multiple") {
  const Int pad = mod(-seq, 4);
  CHECK(mod(seq + pad, 4) == Int(0));
  CHECK(floor_div(seq + pad, 4) == ceil_div(seq, 4));
  const Int pad_in_two_steps = mod(4 - mod(seq, 4), 4);
  CHECK(pad == pad_in_two_steps);
}

TEST_CASE("min and max drop what can never be chosen") {
  CHECK(min(x, x + 3) == x);
  CHECK(max(x, x + 3) == x + 3);
  CHECK(min(x, x) == x);
  CHECK(min(x, min(y, 3)) == min(min(3, y), x));
  CHECK(min(min(x, 3), 5) == min(x, 3));
  CHECK(max(max(x, 3), 5) == max(5, x));
  CHECK(min(x, INT64_MAX) == x);
  // A slice of a slice: the inner bound says nothing that the outer does not.
  CHECK(max(x - 6 - min(x - 4, 0), 0) == max(x - 6, 0));
  CHECK(min(x - 2 * max(y, 3), x - 6) == min(x - 2 * y, x - 6));
  CHECK(print(max(x - min(y, 0), 0)) == "max(x - min(y, 0), 0)");
}

TEST_CASE("select folds") {
  const Bool longer = Bool::compare(Compare::gt, seq, 1);
  CHECK(select(true, x, y) == x);
  CHECK(select(false, x, y) == y);
  CHECK(select(longer, x, x) == x);
  CHECK(select(!Bool::compare(Compare::eq, seq, 1), x, y) ==
        select(Bool::compare(Compare::eq, seq, 1), y, x));
}

TEST_CASE("exact quotients are seen by form") {
  CHECK(exact_quotient(batch * seq * 64, seq) == 64 * batch);
  CHECK(exact_quotient(batch * past + batch * seq, past + seq) == batch);
  CHECK(exact_quotient(6 * x + 4, 2) == 3 * x + 2);
  CHECK_FALSE(exact_quotient(6 * x + 3, 2));
  CHECK_FALSE(exact_quotient(x + 1, x));
  CHECK_FALSE(exact_quotient(x, 0));
  CHECK(exact_quotient(0, x) == Int(0));
  CHECK(common_divisor(6 * x + 4) == 2);
  CHECK(common_divisor(Int(0)) == 0);
}

TEST_CASE("equations are solved for a symbol that stands alone") {
  const Int total = Int::symbol("total");
  CHECK(solve_for(total - past - seq, "total") == past + seq);
  CHECK(solve_for(total - past - seq, "seq") == total - past);
  CHECK_FALSE(solve_for(2 * x - y, "x"));
  CHECK(solve_for(2 * x - y, "y") == 2 * x);
  CHECK_FALSE(solve_for(x + floor_div(x, 2) - y, "x"));
  CHECK_FALSE(solve_for(x * y - 3, "x"));
  CHECK(has_only_positive_terms(past + seq));
  CHECK_FALSE(has_only_positive_terms(past - seq));
  CHECK_FALSE(has_only_positive_terms(past - 1));
}

TEST_CASE("substitution reaches into every atom") {
  const Substitution four{{"x", 4}};
  CHECK(substitute(floor_div(x + y, 2), four) == 2 + floor_div(y, 2));
  CHECK(substitute(min(x, y), {{"y", x + 1}}) == x);
  CHECK(substitute(x * x + y, {{"x", y + 1}}) == y * y + 3 * y + 1);
  CHECK(substitute(select(Bool::compare(Compare::gt, x, 3), y, 7), four) == y);
  CHECK(substitute(floor(Real::binary(Real::Op::mul, Real(x), Real(0.7))), four) == Int(2));
  CHECK(mentions(floor_div(min(x, 3), 2), "x"));
  CHECK_FALSE(mentions(floor_div(min(x, 3), 2), "y"));
  std::set<std::string, std::less<>> names;
  collect_symbols(floor_div(x, y) + seq, names);
  CHECK(names == std::set<std::string, std::less<>>{"seq", "x", "y"});
}

TEST_CASE("what does not fit in 64 bits is an error") {
  CHECK_THROWS_AS(Int(INT64_MAX) + 1, ExportError);
  CHECK_THROWS_AS(x * INT64_MAX * 2, ExportError);
  CHECK_THROWS_AS(-Int(INT64_MIN), ExportError);
  CHECK_THROWS_AS(pow(10, 20), ExportError);
  CHECK_THROWS_AS(evaluate(x * x, {{"x", INT64_MAX}}), ExportError);
  CHECK(evaluate(x * x - x * x + x, {{"x", INT64_MAX}}) == INT64_MAX);
  CHECK(evaluate(x * x - (x - 1) * (x + 1), {{"x", INT64_MAX}}) == 1);
  CHECK_THROWS_AS(evaluate(x, Bindings{}), ExportError);
  CHECK_THROWS_AS(evaluate(floor_div(x, y), {{"x", 1}, {"y", 0}}), ExportError);
}

TEST_CASE("expressions that would grow beyond all measure are refused") {
  Int big = 1;
  const auto grow = [&] {
    for (int i = 0; i < 40; ++i) big = big * (Int::symbol("a" + std::to_string(i)) + 1);
  };
  CHECK_THROWS_AS(grow(), ExportError);
  Int deep = x;
  const auto nest = [&] {
    for (int i = 0; i < 100'000; ++i) deep = min(y, max(deep, seq) + 1);
  };
  CHECK_THROWS_AS(nest(), ExportError);
  CHECK_THROWS_AS(pow(x, 1'000'000), ExportError);
}

TEST_CASE("bounds follow ranges") {
  const Ranges ranges{{"batch", {1, 8}}, {"seq", {1, Range::kUnbounded}}, {"past", {0, 10}}};
  CHECK(bounds(batch * seq, ranges) == Range{1, Range::kUnbounded});
  CHECK(bounds(past - batch, ranges) == Range{-8, 9});
  CHECK(bounds(floor_div(past, 3), ranges) == Range{0, 3});
  CHECK(bounds(mod(seq, 4), ranges) == Range{0, 3});
  CHECK(bounds(mod(-seq, 4), ranges) == Range{0, 3});
  CHECK(bounds(mod(seq, batch), ranges) == Range{0, 7});
  CHECK(bounds(min(seq, 5), ranges) == Range{1, 5});
  CHECK(bounds(max(past, 5), ranges) == Range{5, 10});
  CHECK(bounds(pow(past - 5, 2), ranges).lo <= 0);
  CHECK(bounds(Int(7), ranges) == Range{7, 7});
  CHECK(bounds(trunc(Real::binary(Real::Op::mul, Real(past), Real(0.5))), ranges) == Range{0, 5});
  CHECK(bounds(x, ranges) == Range{});
  CHECK(print(Range{1, Range::kUnbounded}) == "1..");
  CHECK(print(Range{2, 64}) == "2..64");
  CHECK(print(Range{Range::kUnboundedBelow, 7}) == "..7");
  CHECK(intersect({1, 5}, {3, 9}) == Range{3, 5});
}

}  // namespace
}  // namespace modelport::shape
