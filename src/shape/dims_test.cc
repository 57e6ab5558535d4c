#include "shape/dims.h"

#include <doctest/doctest.h>

namespace modelport::shape {
namespace {

constexpr Range kSize{1, Range::kUnbounded};
constexpr Range kMaybeNone{0, Range::kUnbounded};

struct Decoder {
  Dims dims;
  Int batch = dims.declare("batch", 2, kSize);
  Int seq = dims.declare("seq", 5, kSize);
  Int total = dims.declare("total", 8, kSize);
  Int past = dims.declare("past", 3, kMaybeNone);
  Dims::Place place{{"modeling_qwen3.py", 391, "Qwen3Model.forward"}, "model"};

  bool settle(std::string_view condition) { return dims.settle(parse_bool(condition), place); }
  std::optional<bool> decide(std::string_view condition) const {
    return dims.decide(parse_bool(condition));
  }
  std::string simplified(std::string_view text) const {
    return print(dims.simplify(parse_int(text)));
  }
  std::string last_guard() const { return print(dims.guards().back().condition); }
  Guard::Effect last_effect() const { return dims.guards().back().effect; }
};

TEST_CASE("a sum of two sizes replaces the third") {
  Decoder d;
  CHECK(d.settle("total == past + seq"));
  CHECK(d.last_guard() == "total == past + seq");
  CHECK(d.last_effect() == Guard::Effect::unified);
  CHECK(d.dims.guards()[0].where.line == 391);
  CHECK(d.dims.guards()[0].module_path == "model");
  CHECK(d.simplified("total - seq") == "past");
  CHECK(d.dims.guards().size() == 1);
  CHECK(d.settle("total - past == seq"));
  CHECK(d.settle("total >= seq"));
  CHECK(d.dims.guards().size() == 1);
}

TEST_CASE("a range that the replacement does not have by itself is kept as a guard") {
  Decoder d;
  CHECK(d.settle("total >= 2"));
  CHECK(d.settle("total == past + seq"));
  CHECK(d.last_guard() == "past + seq >= 2");
  CHECK(d.last_effect() == Guard::Effect::kept);
  CHECK(d.decide("past + seq >= 2") == true);
  CHECK(d.decide("past + seq >= 1") == true);
  CHECK(d.decide("past + seq < 2") == false);
  CHECK_FALSE(d.decide("past + seq >= 3"));
  CHECK(d.decide("total != 1") == true);
}

TEST_CASE("no size is beyond the end") {
  Decoder d;
  CHECK(d.decide("seq <= 9223372036854775807") == true);
  CHECK(d.decide("past + seq <= 9223372036854775807") == true);
  CHECK(d.decide("past + seq > 9223372036854775807") == false);
  CHECK_FALSE(d.decide("past + seq <= 9223372036854775806"));
}

TEST_CASE("bounds narrow ranges") {
  Decoder d;
  CHECK(d.settle("seq > 1"));
  CHECK(d.dims.find("seq")->range == Range{2, Range::kUnbounded});
  CHECK(d.dims.find("seq")->declared == kSize);
  CHECK(d.last_effect() == Guard::Effect::bounded);
  CHECK(d.last_guard() == "seq >= 2");
  CHECK(d.settle("2*past - 6 >= 0"));
  CHECK(d.dims.find("past")->range.lo == 3);
  CHECK_FALSE(d.settle("past > 4096"));
  CHECK(d.dims.find("past")->range == Range{3, 4096});
  CHECK(d.dims.guards().size() == 3);
  CHECK(d.settle("past >= 2"));
  CHECK_FALSE(d.settle("past == 0"));
  CHECK(d.settle("seq//2 >= 1"));
  CHECK(d.dims.guards().size() == 3);
}

TEST_CASE("an inequality at the edge of a range narrows it, elsewhere it is kept") {
  Decoder d;
  CHECK_FALSE(d.settle("seq == 1"));
  CHECK(d.dims.find("seq")->range.lo == 2);
  CHECK(d.last_guard() == "seq >= 2");
  CHECK_FALSE(d.settle("seq == 4"));
  CHECK(d.last_effect() == Guard::Effect::kept);
  CHECK(d.last_guard() == "seq != 4");
  CHECK(d.decide("seq == 4") == false);
  CHECK(d.settle("seq >= 4"));
  CHECK(d.dims.find("seq")->range.lo == 5);
  CHECK(d.dims.guards()[1].effect == Guard::Effect::bounded);
  CHECK_FALSE(d.settle("past == 0"));
  CHECK(d.dims.find("past")->range.lo == 1);
}

TEST_CASE("the smaller of two that is the constant one is a bound of the other") {
  Decoder d;
  CHECK(d.settle("min(seq, 3) == 3"));
  CHECK(d.dims.find("seq")->range == Range{3, Range::kUnbounded});
  CHECK(d.last_effect() == Guard::Effect::bounded);
  CHECK(d.settle("max(seq, 9) == 9"));
  CHECK(d.dims.find("seq")->range == Range{3, 9});
}

TEST_CASE("a number pins") {
  Decoder d;
  CHECK(d.settle("batch == 2"));
  CHECK(d.last_effect() == Guard::Effect::pinned);
  CHECK(d.simplified("batch*seq") == "2*seq");
  CHECK(d.dims.find("batch")->range == Range{2, 2});
  CHECK(d.dims.pin(parse_int("seq + 1"), d.place) == 6);
  CHECK(d.simplified("seq") == "5");
  CHECK(d.dims.guards().size() == 2);
}

TEST_CASE("a range of one number pins") {
  Decoder d;
  CHECK(d.settle("batch >= 2"));
  CHECK_FALSE(d.settle("batch > 2"));
  CHECK(d.last_effect() == Guard::Effect::pinned);
  CHECK(d.simplified("batch") == "2");
}

TEST_CASE("what shares a factor is divided by it") {
  Decoder d;
  const Int other = d.dims.declare("other", 5, kSize);
  CHECK(d.settle("2*seq == 2*other"));
  CHECK(d.last_guard() == "other == seq");
  CHECK(d.simplified("other") == "seq");
  Decoder e;
  e.dims.declare("other", 5, kSize);
  CHECK(e.settle("batch*seq == batch*other"));
  CHECK(e.last_guard() == "other == seq");
  CHECK(e.simplified("other - seq") == "0");
}

TEST_CASE("symbols that may be zero are no factors to divide by") {
  Decoder d;
  d.dims.declare("other", 5, kSize);
  CHECK(d.settle("past*seq == past*other"));
  CHECK(d.last_effect() == Guard::Effect::kept);
  CHECK(d.decide("past*seq == past*other") == true);
  CHECK(d.decide("4*past*seq == 4*past*other") == true);
  CHECK_FALSE(d.decide("seq == other"));
  CHECK(d.settle("past >= 1"));
  CHECK(d.decide("seq == other") == true);
  CHECK(d.dims.guards()[0].effect == Guard::Effect::unified);
}

TEST_CASE("symbols from data are the first to be replaced, and never by later ones") {
  Decoder d;
  const Int count = d.dims.fresh("u", 2, kMaybeNone);
  CHECK(print(count) == "u0");
  CHECK(d.dims.find("u0")->from_data);
  CHECK(d.dims.settle_equal(count, d.batch, d.place));
  CHECK(d.simplified("u0 + 1") == "batch + 1");
  const Int first = d.dims.fresh("u", 6, kMaybeNone);
  const Int second = d.dims.fresh("u", 3, kMaybeNone);
  CHECK(d.dims.settle_equal(first, second + 3, d.place));
  CHECK(d.simplified("u2") == "u1 - 3");
  CHECK(d.dims.find("u1")->range.lo == 3);
  CHECK(d.dims.settle_equal(d.seq * 2, first + 4, d.place));
  CHECK(d.simplified("u1") == "2*seq - 4");
  CHECK(d.simplified("u2") == "2*seq - 7");
  CHECK(d.dims.find("seq")->range.lo == 4);
}

TEST_CASE("an input is not replaced by what the data decides") {
  Decoder d;
  const Int a = d.dims.fresh("u", 2, kMaybeNone);
  const Int b = d.dims.fresh("u", 4, kMaybeNone);
  CHECK(d.dims.settle_equal(d.total, a * b, d.place));
  CHECK(d.last_effect() == Guard::Effect::kept);
  CHECK(d.simplified("total") == "total");
  CHECK(d.decide("u0*u1 == total") == true);
  CHECK(d.decide("2*u0*u1 - total == total") == true);
}

TEST_CASE("conjunctions split and disjunctions take the part that is true") {
  Decoder d;
  CHECK(d.settle("seq >= 2 and past >= 1"));
  CHECK(d.dims.guards().size() == 2);
  CHECK_FALSE(d.settle("seq == 2 or past == 1"));
  CHECK(d.dims.find("seq")->range.lo == 3);
  CHECK(d.dims.find("past")->range.lo == 2);
  CHECK(d.settle("batch >= 9 or batch <= 4"));
  CHECK(d.dims.find("batch")->range == Range{1, 4});
}

TEST_CASE("an empty tensor that is not empty says so of each size") {
  Decoder d;
  CHECK_FALSE(d.settle("batch*past*64 == 0"));
  CHECK(d.dims.find("past")->range.lo == 1);
  CHECK(d.last_guard() == "past >= 1");
}

TEST_CASE("remainders are remembered") {
  Decoder d;
  CHECK(d.settle("total % 4 == 0"));
  CHECK(d.last_guard() == "total%4 == 0");
  CHECK(d.last_effect() == Guard::Effect::kept);
  CHECK(d.decide("total % 4 == 0") == true);
  CHECK(d.decide("total % 4 != 0") == false);
  CHECK(d.decide("batch*total*64 == batch*(total//4)*4*64") == true);
}

TEST_CASE("conditions that follow from ranges and form need no guard") {
  Decoder d;
  CHECK(d.decide("seq >= 1") == true);
  CHECK(d.decide("seq < 0") == false);
  CHECK(d.decide("seq + batch != 1") == true);
  CHECK(d.decide("batch*seq >= seq") == true);
  CHECK(d.decide("batch*seq < seq") == false);
  CHECK(d.decide("min(seq, 7) <= seq") == true);
  CHECK(d.decide("max(seq, past) >= past") == true);
  CHECK(d.decide("seq//2 <= seq") == true);
  CHECK(d.decide("(seq + 1)//2 >= 1") == true);
  CHECK(d.decide("2*(seq//2) <= seq") == true);
  CHECK(d.decide("seq % 4 < 4") == true);
  CHECK(d.decide("seq*0.5 > 0.0") == true);
  CHECK(d.decide("seq <= 9223372036854775807") == true);
  CHECK_FALSE(d.decide("seq*0.5 > 1.0"));
  CHECK_FALSE(d.decide("seq > 1"));
  CHECK_FALSE(d.decide("seq == past"));
  CHECK_FALSE(d.decide("bool(b0)"));
}

TEST_CASE("choices are resolved by ranges") {
  Decoder d;
  CHECK(d.simplified("max(seq, 0)") == "seq");
  CHECK(d.simplified("min(seq, 0)") == "0");
  CHECK(d.simplified("max(seq - 4, 0)") == "max(seq - 4, 0)");
  CHECK(d.settle("seq >= 4"));
  CHECK(d.simplified("max(seq - 4, 0)") == "seq - 4");
  CHECK(d.simplified("select(seq >= 2, past, 7)") == "past");
}

TEST_CASE("floats and bools from data are kept as they are") {
  Decoder d;
  const Real scale = d.dims.fresh_real(0.5);
  const Bool flag = d.dims.fresh_bool(true);
  CHECK(d.dims.hint(scale) == 0.5);
  CHECK(d.dims.settle(flag, d.place));
  CHECK(d.last_effect() == Guard::Effect::kept);
  CHECK(d.dims.decide(flag) == true);
  CHECK(d.dims.decide(!flag) == false);
  CHECK(d.dims.settle(Bool::compare(Compare::lt, scale, Real(1.0)), d.place));
  CHECK(d.dims.guards().size() == 2);
  CHECK(d.dims.settle(Bool::compare(Compare::lt, scale, Real(1.0)), d.place));
  CHECK(d.dims.guards().size() == 2);
}

TEST_CASE("declarations that contradict the example are errors") {
  Decoder d;
  CHECK_THROWS_AS(d.dims.declare("long", 9, Range{1, 8}), ExportError);
  CHECK_THROWS_AS(d.dims.declare("batch", 3, kSize), ExportError);
  CHECK(d.dims.declare("batch", 2, Range{2, 8}) == d.batch);
  CHECK(d.dims.find("batch")->range == Range{2, 8});
  CHECK(d.dims.all().size() == 4);
  CHECK(d.dims.find("nothing") == nullptr);
}

}  // namespace
}  // namespace modelport::shape
