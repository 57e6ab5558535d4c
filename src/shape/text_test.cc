// Printing and parsing.
#include <doctest/doctest.h>

#include "base/error.h"
#include "shape/int.h"
#include "shape/real.h"
#include "shape/tree.h"

namespace modelport::shape {
namespace {

std::string int_text(std::string_view text) { return print(parse_int(text)); }
std::string real_text(std::string_view text) { return print(parse_real(text)); }
std::string bool_text(std::string_view text) { return print(parse_bool(text)); }

TEST_CASE("integers print as people would write them") {
  CHECK(int_text("2*batch*seq + seq//2 - 1") == "2*batch*seq + seq//2 - 1");
  CHECK(int_text("seq - past") == "seq - past");
  CHECK(int_text("3 - x") == "3 - x");
  CHECK(int_text("-x") == "-x");
  CHECK(int_text("0 - seq//2") == "-(seq//2)");
  CHECK(int_text("x - seq//2") == "x - seq//2");
  CHECK(int_text("2*(seq//2)") == "2*(seq//2)");
  CHECK(int_text("(x + y)//(a + b)") == "(x + y)//(a + b)");
  CHECK(int_text("seq%4") == "seq%4");
  CHECK(int_text("2*(seq%4) + x + 3") == "x + 2*(seq%4) + 3");
  CHECK(int_text("x % y") == "x%y");
  CHECK(int_text("min(seq, 512)") == "min(seq, 512)");
  CHECK(int_text("max(3, a, b*b)") == "max(b**2, a, 3)");
  CHECK(int_text("select(seq > 1, a, b)") == "select(seq >= 2, a, b)");
  CHECK(int_text("x**3") == "x**3");
  CHECK(int_text("7") == "7");
  CHECK(int_text("-9223372036854775808") == "-9223372036854775808");
  CHECK(int_text("past_key_values.0 + 1") == "past_key_values.0 + 1");
  CHECK(int_text("`a name` * `and`") == "`a name`*`and`");
}

TEST_CASE("rounded reals print inside integers") {
  CHECK(int_text("trunc(seq*0.5)") == "trunc(seq*0.5)");
  CHECK(int_text("floor(seq/2)") == "seq//2");
  CHECK(int_text("ceil(seq/2)") == "(seq + 1)//2");
  CHECK(int_text("trunc(seq/2)") == "seq//2");
  CHECK(int_text("trunc((seq - past)/2)") == "trunc((seq - past)/2.0)");
  CHECK(int_text("floor(float(seq))") == "seq");
  CHECK(int_text("trunc(seq*1.0)") == "seq");
  CHECK(int_text("round(sqrt(seq))") == "round(sqrt(seq))");
}

TEST_CASE("reals print so that they parse back") {
  CHECK(real_text("(seq/2.0)**-0.5") == "(seq/2.0)**-0.5");
  CHECK(real_text("seq") == "float(seq)");
  CHECK(real_text("seq/2") == "seq/2.0");
  CHECK(real_text("float(a) + b") == "float(a) + b");
  CHECK(real_text("a/b/c") == "a/b/c");
  CHECK(real_text("a/(b/c)") == "a/(b/c)");
  CHECK(real_text("0.1*(a + b)") == "0.1*(a + b)");
  CHECK(real_text("-(real(f0)*2.0)") == "-(real(f0)*2.0)");
  CHECK(real_text("-real(f0)**2.0") == "-real(f0)**2.0");
  CHECK(real_text("min(float(a), b)") == "min(float(a), b)");
  CHECK(real_text("select(a > 1, 0.5, log2(a))") == "select(a >= 2, 0.5, log2(a))");
  CHECK(real_text("1e300*1e10") == "inf");
  CHECK(real_text("-inf + real(f0)") == "-inf + real(f0)");
  CHECK(real_text("0.1") == "0.1");
  CHECK(real_text("2") == "2.0");
  CHECK(real_text("-0.0") == "-0.0");
}

TEST_CASE("conditions print solved") {
  CHECK(bool_text("seq > 1") == "seq >= 2");
  CHECK(bool_text("1 < seq") == "seq >= 2");
  CHECK(bool_text("seq < 5") == "seq <= 4");
  CHECK(bool_text("total - past == seq") == "total == past + seq");
  CHECK(bool_text("past + seq >= 2") == "past + seq >= 2");
  CHECK(bool_text("x + 3 >= y") == "x + 3 >= y");
  CHECK(bool_text("x >= -3") == "x >= -3");
  CHECK(bool_text("2*a == 2*b") == "a == b");
  CHECK(bool_text("2*a == 3") == "false");
  CHECK(bool_text("2*a >= 3") == "a >= 2");
  CHECK(bool_text("seq % 4 == 0") == "seq%4 == 0");
  CHECK(bool_text("seq//2 >= 3") == "seq >= 6");
  CHECK(bool_text("seq//2 < 3") == "seq <= 5");
  CHECK(bool_text("a != 0 and (b > 0 or not bool(b0))") == "a != 0 and (b >= 1 or not bool(b0))");
  CHECK(bool_text("not (a == 1 or b == 2)") == "a != 1 and b != 2");
  CHECK(bool_text("float(seq) > 1.5") == "seq >= 2");
  CHECK(bool_text("seq*0.5 > 1.5") == "seq*0.5 > 1.5");
  CHECK(bool_text("not seq*0.5 > 1.5") == "not (seq*0.5 > 1.5)");
  CHECK(bool_text("a == a") == "true");
  CHECK(bool_text("a >= 1 and not a >= 1") == "false");
  CHECK(bool_text("x <= 9223372036854775806") == "x <= 9223372036854775806");
  CHECK(bool_text("x <= 9223372036854775807") == "true");
}

TEST_CASE("text that is no expression is an error with a column") {
  for (const char* text : {"",
                           "x +",
                           "(x",
                           "x y",
                           "2x",
                           "min()",
                           "min(x",
                           "foo(x)",
                           "x // 0",
                           "x % 0",
                           "99999999999999999999",
                           "x ? y",
                           "`x",
                           "``",
                           "and",
                           "1e999",
                           "1e",
                           "x == y == z",
                           "true",
                           "x and y",
                           "0.5",
                           "select(x, 1, 2)",
                           "floor(true)",
                           "9223372036854775807 + 1",
                           "x // 0.5",
                           "1/0",
                           "not",
                           "x\n",
                           "real(2)"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_int(text), ExportError);
  }
  try {
    parse_int("seq + )");
    FAIL("parsed");
  } catch (const ExportError& error) {
    CHECK(error.diagnostics()[0].code == Code::bad_text);
    CHECK(error.diagnostics()[0].what == "column 7 of 'seq + )': unexpected ')'");
  }
  CHECK_THROWS_AS(parse_int(std::string(100'000, '(')), ExportError);
  CHECK_THROWS_AS(parse_bool(std::string(100'000, '(')), ExportError);
  std::string signs(100'000, '-');
  signs += 'x';
  CHECK(parse_int(signs) == Int::symbol("x"));
  CHECK_THROWS_AS(Int::symbol(""), ExportError);
  CHECK_THROWS_AS(Int::symbol("a`b"), ExportError);
}

TEST_CASE("a tree shows the structure") {
  const Tree sum = tree(parse_int("2*a - b%3"));
  REQUIRE(sum.op == Tree::Op::add);
  CHECK(sum.operands.size() == 3);  // a subtracted remainder shows its quotient
  const Tree remainder = tree(parse_int("b%3"));
  CHECK(remainder.op == Tree::Op::mod);
  CHECK(remainder.operands[0].name == "b");
  CHECK(remainder.operands[1].number == 3);
}

}  // namespace
}  // namespace modelport::shape
