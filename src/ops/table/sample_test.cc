#include "ops/table/sample.h"

#include <doctest/doctest.h>

namespace modelport::ops {
namespace {

Results as_given(Call& call) { return {call.tensor("self")}; }

OpDef row(std::string_view schema, std::string_view samples) {
  return {.name = "test.op", .schema = schema, .infer = as_given, .samples = samples};
}

TEST_CASE("a sample becomes named arguments and graph inputs") {
  const OpDef op =
      row("(Tensor self, int dim, Tensor?[] more, *, ScalarType? dtype=None) -> Tensor",
          "f32[a, 2*b], -1, [i64<5>[a], None], dtype=f16; bool[], 3, []");
  auto samples = samples_of(op, {{"a", 2}, {"b", 3}});
  REQUIRE(samples.size() == 2);
  Sample& first = samples[0];
  REQUIRE(first.args.size() == 4);
  CHECK(first.args[1] == ir::NamedArg{"dim", {Int(-1)}});
  CHECK(first.args[3] == ir::NamedArg{"dtype", {Dtype::f16}});
  REQUIRE(first.graph.inputs.size() == 2);
  CHECK(first.draws[0].below == 2);
  CHECK(first.draws[1].below == 5);
  const ir::TensorType expected{Dtype::f32, {Int::symbol("a"), 2 * Int::symbol("b")}};
  CHECK(first.graph.value(first.graph.inputs[0]).tensor() == expected);
  CHECK(first.dims.hint(expected.shape[1]) == 6);
  CHECK(first.infer(op) == Results{expected});
  CHECK(samples[1].graph.value(samples[1].graph.inputs[0]).tensor().shape.empty());
  CHECK(samples[1].args[2] == ir::NamedArg{"more", {ir::ArgList{}}});
}

TEST_CASE("numbers, truths, strings and expressions are told apart") {
  const OpDef op = row("(Scalar p, Scalar q, bool r, str s, SymInt t, Scalar u) -> Tensor",
                       "1, 0.5, True, 'a, b', a - 1, -inf");
  const Sample sample = samples_of(op, {{"a", 4}})[0];
  CHECK(sample.args[0].arg == ir::Arg{Int(1)});
  CHECK(sample.args[1].arg == ir::Arg{0.5});
  CHECK(sample.args[2].arg == ir::Arg{true});
  CHECK(sample.args[3].arg == ir::Arg{std::string("a, b")});
  CHECK(sample.args[4].arg == ir::Arg{Int::symbol("a") - 1});
  CHECK(*sample.args[5].arg.get<double>() < 0);
}

TEST_CASE("a sample that does not fit its schema is our own error") {
  const shape::Bindings sizes{{"a", 4}};
  CHECK_THROWS_AS(samples_of(row("(Tensor self) -> Tensor", "f32[a], 2"), sizes), InternalError);
  CHECK_THROWS_AS(samples_of(row("(Tensor self) -> Tensor", "f32[a], dim=2"), sizes),
                  InternalError);
  CHECK_THROWS_AS(samples_of(row("(Tensor self) -> Tensor", "f32[b]"), sizes), InternalError);
  CHECK_THROWS_AS(samples_of(row("(Tensor self) -> Tensor", "f32<5[a]"), sizes), InternalError);
}

TEST_CASE("each symbol of a row gets several sizes, and no two symbols the same one") {
  const OpDef op = row("(Tensor self, Tensor other) -> Tensor", "f32[a, b], f32[c]; f32[], f32[a]");
  CHECK(sample_symbols(op) == std::vector<std::string>{"a", "b", "c"});
  const auto rounds = sample_sizes(op);
  REQUIRE(rounds.size() >= 2);
  for (const shape::Bindings& round : rounds) {
    CHECK(round.size() == 3);
    CHECK(round.at("a") != round.at("b"));
    CHECK(round.at("b") != round.at("c"));
  }
  CHECK(rounds[0].at("a") != rounds[1].at("a"));
}

}  // namespace
}  // namespace modelport::ops
