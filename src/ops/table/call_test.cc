#include "ops/table/call.h"

#include <doctest/doctest.h>

#include "ops/table/sample.h"

namespace modelport::ops {
namespace {

OpDef row(std::string_view samples) {
  return {
      .name = "test.op",
      .schema =
          "(Tensor self, Tensor other, int[] sizes=[1], *, SymInt n=3, bool yes=True, ScalarType? "
          "dtype=None, str mode=\"max\", Tensor?[] more=[]) -> Tensor",
      .infer = nullptr,
      .samples = samples};
}

struct Scene {
  explicit Scene(std::string_view sample, shape::Bindings sizes = {{"a", 4}, {"b", 5}})
      : op(row(sample)),
        read(samples_of(op, sizes)[0]),
        call(op, read.args, {read.graph, read.dims, {}}) {}
  OpDef op;
  Sample read;
  Call call;
};

TEST_CASE("arguments that are not given have the schema's defaults") {
  const Scene scene("f32[a], 2");
  CHECK(scene.call.ints("sizes") == std::vector<Int>{1});
  CHECK(scene.call.integer("n") == Int(3));
  CHECK(scene.call.flag("yes"));
  CHECK_FALSE(scene.call.has("dtype"));
  CHECK(scene.call.dtype("dtype") == std::nullopt);
  CHECK(scene.call.string("mode") == "max");
  CHECK(scene.call.tensors("more").empty());
}

TEST_CASE("given arguments come before defaults, and one number serves as a list") {
  const Scene scene("f32[a], 2, b, n=a + 1, yes=False, dtype=f16, mode='min', more=[None, i64[b]]");
  CHECK(scene.call.ints("sizes") == std::vector<Int>{Int::symbol("b")});
  CHECK(scene.call.integer("n") == Int::symbol("a") + 1);
  CHECK_FALSE(scene.call.flag("yes"));
  CHECK(scene.call.dtype("dtype") == Dtype::f16);
  CHECK(scene.call.string("mode") == "min");
  const auto more = scene.call.tensors("more");
  REQUIRE(more.size() == 2);
  CHECK(more[0] == nullptr);
  CHECK(more[1]->dtype == Dtype::i64);
}

TEST_CASE("a number may stand where the schema says Tensor") {
  const Scene scene("f32[a], 2.5");
  CHECK(scene.call.is_tensor("self"));
  CHECK_FALSE(scene.call.is_tensor("other"));
  CHECK(scene.call.number_dtype("other") == Dtype::f32);
  CHECK(scene.call.number_dtype("self") == std::nullopt);
  CHECK_THROWS_AS(scene.call.tensor("other"), ExportError);
}

TEST_CASE("a symbolic size that a rule needs as a number is pinned") {
  Scene scene("f32[a], 2, n=a + 1");
  CHECK(scene.call.number("n") == 5);
  CHECK(scene.read.dims.simplify(Int::symbol("a")) == Int(4));
}

TEST_CASE("conditions are settled by the example run and guarded where they are open") {
  Scene scene("f32[a], f32[b]");
  CHECK(scene.call.at_least(Int::symbol("a"), 1));
  CHECK(scene.read.dims.guards().empty());
  CHECK_FALSE(scene.call.at_least(Int::symbol("a"), Int::symbol("b")));
  CHECK(scene.read.dims.guards().size() == 1);
  CHECK_FALSE(scene.call.equal(3, 4));
}

TEST_CASE("a size that only the data decides takes its hint from the example run") {
  Scene scene("f32[a], f32[b]");
  const std::vector<std::vector<std::int64_t>> observed{{7, 2}};
  Call call(scene.op, scene.read.args, {scene.read.graph, scene.read.dims, {}, observed});
  CHECK(call.hint(call.unknown_size(0, 0)) == 7);
  CHECK(call.hint(call.unknown_size(1, 0)) == 0);
}

TEST_CASE("an argument that the operator does not have is an error of the operands") {
  Scene scene("f32[a], f32[b]");
  const std::vector<ir::NamedArg> args{{"axis", {Int(1)}}};
  CHECK_THROWS_AS(Call(scene.op, args, {scene.read.graph, scene.read.dims, {}}), ExportError);
  CHECK_THROWS_AS(scene.call.arg("axis"), InternalError);
}

}  // namespace
}  // namespace modelport::ops
