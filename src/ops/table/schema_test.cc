#include "ops/table/schema.h"

#include <doctest/doctest.h>

#include <limits>

#include "ops/table/split.h"

namespace modelport::ops {
namespace {

TEST_CASE("a schema gives its parameters with types, defaults and the keyword mark") {
  const Schema schema =
      parse_schema("(Tensor self, int[1]? dim=None, bool keepdim=False, *, float eps=1) -> Tensor");
  REQUIRE(schema.parameters.size() == 4);
  CHECK(schema.parameters[0].type == "Tensor");
  CHECK_FALSE(schema.parameters[0].has_default);
  CHECK(schema.parameters[1].type == "int[]?");
  CHECK(schema.parameters[1].has_default);
  CHECK(schema.parameters[1].default_value.is_none());
  CHECK(schema.parameters[2].default_value == ir::Arg{false});
  CHECK_FALSE(schema.parameters[2].keyword_only);
  CHECK(schema.parameters[3].keyword_only);
  CHECK(schema.parameters[3].default_value == ir::Arg{1.0});
  CHECK(schema.returns == std::vector<std::string>{"Tensor"});
  CHECK(schema.find("keepdim") == &schema.parameters[2]);
  CHECK(schema.find("absent") == nullptr);
}

TEST_CASE("alias annotations and list lengths are dropped from types") {
  const Schema schema =
      parse_schema("(Tensor(a -> *) self, SymInt[2] size, Tensor?[] indices) -> Tensor(a)[]");
  CHECK(schema.parameters[0].type == "Tensor");
  CHECK(schema.parameters[1].type == "SymInt[]");
  CHECK(schema.parameters[2].type == "Tensor?[]");
  CHECK(schema.returns == std::vector<std::string>{"Tensor[]"});
}

TEST_CASE("defaults are numbers, lists, strings and dtypes") {
  const Schema schema = parse_schema(
      "(int[2] stride=[1, -1], str mode=\"none, or (\", ScalarType? dtype=4, Scalar alpha=1, "
      "Scalar beta=0.5, "
      "SymInt end=9223372036854775807, MemoryFormat format=contiguous_format, int[] none=[]) -> "
      "()");
  const auto value = [&](std::string_view name) { return schema.find(name)->default_value; };
  CHECK(value("stride") == ir::Arg{ir::ArgList{{shape::Int(1)}, {shape::Int(-1)}}});
  CHECK(value("mode") == ir::Arg{std::string("none, or (")});
  CHECK(value("dtype") == ir::Arg{Dtype::i64});
  CHECK(value("alpha") == ir::Arg{shape::Int(1)});
  CHECK(value("beta") == ir::Arg{0.5});
  CHECK(value("end") == ir::Arg{shape::Int(std::numeric_limits<std::int64_t>::max())});
  CHECK(value("format") == ir::Arg{std::string("contiguous_format")});
  CHECK(value("none") == ir::Arg{ir::ArgList{}});
  CHECK(schema.returns.empty());
}

TEST_CASE("named results are counted by their types") {
  const Schema schema =
      parse_schema("(Tensor self) -> (Tensor values, Tensor(a!) indices, Tensor[] rest)");
  CHECK(schema.returns == std::vector<std::string>{"Tensor", "Tensor", "Tensor[]"});
}

TEST_CASE("the operand that results share memory with has their annotation") {
  CHECK(parse_schema("(Tensor(a) self, int dim) -> Tensor(a)").viewed()->name == "self");
  CHECK(parse_schema("(Tensor(a -> *) self, int n) -> Tensor(a)[]").viewed()->name == "self");
  CHECK(parse_schema("(Tensor x, Tensor(b) y) -> (Tensor, Tensor(b))").viewed()->name == "y");
  CHECK(parse_schema("(Tensor self) -> Tensor").viewed() == nullptr);
  CHECK(parse_schema("(Tensor(a) self) -> Tensor").viewed() == nullptr);
}

TEST_CASE("a malformed schema is our own error") {
  CHECK_THROWS_AS(parse_schema("Tensor self -> Tensor"), InternalError);
  CHECK_THROWS_AS(parse_schema("(Tensor self)"), InternalError);
  CHECK_THROWS_AS(parse_schema("(Tensor) -> Tensor"), InternalError);
  CHECK_THROWS_AS(parse_schema("(int x=) -> Tensor"), InternalError);
}

TEST_CASE("rows with the same schema text share one parsed schema") {
  const OpDef a{.name = "a", .schema = "(Tensor self) -> Tensor", .samples = ""};
  const OpDef b{.name = "b", .schema = "(Tensor self) -> Tensor", .samples = ""};
  CHECK(&schema_of(a) == &schema_of(b));
}

TEST_CASE("splitting leaves brackets and quotes whole") {
  CHECK(split_outside(" a, [b, c] ,\"d, e\" ", ",") ==
        std::vector<std::string_view>{"a", "[b, c]", "\"d, e\""});
  CHECK(split_outside("  ", ",").empty());
}

}  // namespace
}  // namespace modelport::ops
