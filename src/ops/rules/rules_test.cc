#include "ops/rules/rules.h"

#include <doctest/doctest.h>

#include "ops/table/sample.h"

namespace modelport::ops {
namespace {

const OpDef kOp{.name = "test.op",
                .schema = "(Tensor self, Tensor other, int dim=-1, int[]? dims=None) -> Tensor",
                .infer = nullptr,
                .samples = ""};

/// A call whose symbols have the sizes given, with whatever operands a test needs.
struct Scene {
  explicit Scene(std::string_view sample, shape::Bindings sizes = {})
      : op(kOp), read(make(op, sample, sizes)), call(op, read.args, {read.graph, read.dims, {}}) {}
  static Sample make(OpDef& op, std::string_view sample, const shape::Bindings& sizes) {
    op.samples = sample;
    return samples_of(op, sizes)[0];
  }
  OpDef op;
  Sample read;
  Call call;
};

Int symbol(std::string_view name) { return Int::symbol(name); }

TEST_CASE("broadcasting lets ones give way without a guard") {
  Scene scene("f32[a, 1, c], f32[b, 1]", {{"a", 2}, {"b", 3}, {"c", 4}});
  CHECK(broadcast_args(scene.call, {"self", "other"}) ==
        Shape{symbol("a"), symbol("b"), symbol("c")});
  CHECK(scene.read.dims.guards().empty());
}

TEST_CASE("broadcasting two symbols of one size unifies them") {
  Scene scene("f32[a], f32[b]", {{"a", 3}, {"b", 3}});
  const Shape shape = broadcast_args(scene.call, {"self", "other"});
  CHECK(scene.read.dims.simplify(symbol("a")) == scene.read.dims.simplify(symbol("b")));
  CHECK(shape[0] == scene.read.dims.simplify(symbol("a")));
  CHECK(scene.read.dims.guards().size() == 1);
}

TEST_CASE(
    "a symbol that was 1 in the example run is taken for 1 only where the other size is not") {
  Scene apart("f32[a], f32[b]", {{"a", 1}, {"b", 5}});
  CHECK(broadcast_args(apart.call, {"self", "other"}) == Shape{symbol("b")});
  CHECK(apart.read.dims.simplify(symbol("a")) == Int(1));
  Scene both("f32[a], f32[b]", {{"a", 1}, {"b", 1}});
  broadcast_args(both.call, {"self", "other"});
  CHECK(both.read.dims.simplify(symbol("a")) == both.read.dims.simplify(symbol("b")));
  CHECK_FALSE(both.read.dims.simplify(symbol("a")).is_constant());
}

TEST_CASE("sizes that do not broadcast are an error that shows the operands") {
  Scene scene("f32[2, a], f32[3, a]", {{"a", 4}});
  try {
    broadcast_args(scene.call, {"self", "other"});
    FAIL("no error");
  } catch (const ExportError& error) {
    const Diagnostic& problem = error.diagnostics().front();
    CHECK(problem.code == Code::bad_operands);
    CHECK(problem.what == "test.op: sizes 2 and 3 do not broadcast");
    REQUIRE(problem.notes.size() == 2);
    CHECK(problem.notes[0] == "self: f32[2, a]");
    CHECK_FALSE(problem.ways_out.empty());
  }
}

TEST_CASE("promotion goes by category: dimensions, then 0-d tensors, then numbers") {
  const auto of = [](std::string_view sample) {
    Scene scene(sample, {{"a", 4}});
    return promote(scene.call, {"self", "other"});
  };
  CHECK(of("f16[a], f32[]") == Dtype::f16);
  CHECK(of("f16[a], f32[a]") == Dtype::f32);
  CHECK(of("f16[], f32[]") == Dtype::f32);
  CHECK(of("i64[a], f16[]") == Dtype::f16);
  CHECK(of("i32[a], i64[]") == Dtype::i32);
  CHECK(of("i32[a], 2") == Dtype::i32);
  CHECK(of("i32[a], 2.5") == Dtype::f32);
  CHECK(of("bf16[], 2.5") == Dtype::bf16);
  CHECK(of("bool[a], 2") == Dtype::i64);
  CHECK(of("bool[a], True") == Dtype::boolean);
  CHECK(of("bool[a], u8[]") == Dtype::u8);
  CHECK(of("f64[a], c64[]") == Dtype::c128);
  CHECK(of("i64[a], a") == Dtype::i64);
}

TEST_CASE("two dtypes promote as torch's table says") {
  CHECK(promote(Dtype::f16, Dtype::bf16) == Dtype::f32);
  CHECK(promote(Dtype::u8, Dtype::i8) == Dtype::i16);
  CHECK(promote(Dtype::i8, Dtype::u8) == Dtype::i16);
  CHECK(promote(Dtype::u8, Dtype::i32) == Dtype::i32);
  CHECK(promote(Dtype::c64, Dtype::f64) == Dtype::c128);
  CHECK(promote(Dtype::f32, Dtype::c64) == Dtype::c64);
  CHECK(promote(Dtype::boolean, Dtype::i8) == Dtype::i8);
  CHECK(promote(Dtype::i64, Dtype::f16) == Dtype::f16);
}

TEST_CASE("axes count from the end, and a 0-d tensor has axis 0") {
  Scene scene("f32[a], f32[]", {{"a", 4}});
  CHECK(normal_axis(scene.call, -1, 3) == 2);
  CHECK(normal_axis(scene.call, -1, 0) == 0);
  CHECK_THROWS_AS(normal_axis(scene.call, 3, 3), ExportError);
  CHECK_THROWS_AS(normal_axis(scene.call, -4, 3), ExportError);
  CHECK(axes_of(scene.call, "dims", 2) == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("slices have Python's length at every size") {
  const auto python = [](std::int64_t size, std::int64_t start, std::int64_t end,
                         std::int64_t step) {
    const auto clip = [&](std::int64_t x) {
      return std::clamp<std::int64_t>(x < 0 ? x + size : x, 0, size);
    };
    const std::int64_t span = std::max<std::int64_t>(clip(end) - clip(start), 0);
    return (span + step - 1) / step;
  };
  for (std::int64_t start = -4; start <= 4; ++start) {
    for (std::int64_t end = -4; end <= 4; ++end) {
      for (const std::int64_t step : {1, 3}) {
        Scene scene("f32[a], f32[]", {{"a", 5}});
        const Int length = slice_length(scene.call, symbol("a"), Int(start), Int(end), step);
        for (std::int64_t size = 1; size < 8; ++size) {
          CAPTURE(start);
          CAPTURE(end);
          CHECK(shape::evaluate(length, {{"a", size}}) == python(size, start, end, step));
        }
        CHECK(scene.read.dims.guards().empty());
      }
    }
  }
}

TEST_CASE("a slice to the end and a slice of what is there need no min") {
  Scene scene("f32[a, b], f32[]", {{"a", 5}, {"b", 2}});
  const Int a = symbol("a"), b = symbol("b");
  CHECK(slice_length(scene.call, a, std::nullopt, shape::Range::kUnbounded, 1) == a);
  CHECK(slice_length(scene.call, a, Int(1), std::nullopt, 1) == a - 1);
  CHECK(slice_length(scene.call, a + b, std::nullopt, b, 1) == b);
  CHECK(slice_length(scene.call, a, Int(-1), std::nullopt, 1) == Int(1));
  CHECK(scene.read.dims.guards().empty());
}

TEST_CASE("a symbolic bound of a slice is guarded to lie inside, a constant one is not") {
  Scene scene("f32[a, b], f32[]", {{"a", 5}, {"b", 2}});
  const Int a = symbol("a"), b = symbol("b");
  CHECK(slice_length(scene.call, b, Int(-7), std::nullopt, 1) == shape::min(b, 7));
  CHECK(slice_length(scene.call, b, std::nullopt, Int(7), 1) == shape::min(b, 7));
  CHECK(scene.read.dims.guards().empty());
  CHECK(slice_length(scene.call, 512, std::nullopt, a, 1) == a);
  REQUIRE(scene.read.dims.guards().size() == 1);
  CHECK(scene.read.dims.find("a")->range.hi == 512);
  CHECK(slice_length(scene.call, a + b, -b, std::nullopt, 1) == b);
  CHECK(scene.read.dims.guards().size() == 1);
}

TEST_CASE("one open size of a view is filled in by exact division") {
  Scene scene("f32[a, b], f32[]", {{"a", 6}, {"b", 2}});
  const Int a = symbol("a"), b = symbol("b");
  CHECK(fill_minus_one(scene.call, {a, -1, 4}, {a, b, 64}) == Shape{a, 16 * b, 4});
  CHECK(scene.read.dims.guards().empty());
  CHECK(fill_minus_one(scene.call, {-1, 3}, {a}) == Shape{shape::floor_div(a, 3), 3});
  CHECK(scene.read.dims.guards().size() == 1);
  CHECK_THROWS_AS(fill_minus_one(scene.call, {-1, 4}, {a}), ExportError);
  CHECK_THROWS_AS(fill_minus_one(scene.call, {7}, {a}), ExportError);
}

TEST_CASE("windows have torch's size, rounded up too") {
  const auto torch = [](std::int64_t size, std::int64_t k, std::int64_t s, std::int64_t p,
                        bool up) {
    const std::int64_t room = size + 2 * p - (k - 1) - 1 + (up ? s - 1 : 0);
    std::int64_t out = room / s + 1;
    if (up && (out - 1) * s >= size + p) --out;
    return out;
  };
  for (const std::int64_t k : {2, 3}) {
    for (const std::int64_t s : {1, 2, 3}) {
      for (const std::int64_t p : {0, 1}) {
        for (const bool up : {false, true}) {
          Scene scene("f32[a], f32[]", {{"a", 9}});
          const Int out = window_size(scene.call, symbol("a"),
                                      {.kernel = k, .stride = s, .padding = p, .ceil_mode = up});
          for (std::int64_t size = 4; size < 12; ++size) {
            CHECK(shape::evaluate(out, {{"a", size}}) == torch(size, k, s, p, up));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace modelport::ops
