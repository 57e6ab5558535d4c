// What the rules demand of symbolic sizes: which are unified, bounded or pinned, and what is
// refused.
#include <doctest/doctest.h>

#include <string>

#include "ir/text.h"
#include "ops/table/sample.h"

namespace modelport::ops {
namespace {

struct Inferred {
  std::string types;   // "f32[a, 2*b]; i64[a]"
  std::string guards;  // "a == c; b >= 2"
};

/// Infers one call of an operator, written like a sample of its row.
Inferred infer_text(std::string_view name, std::string_view call, const shape::Bindings& sizes) {
  const OpDef* row = find_op(name);
  REQUIRE(row != nullptr);
  OpDef op = *row;
  op.samples = call;
  Sample sample = std::move(samples_of(op, sizes).at(0));
  Inferred found;
  for (const ir::Type& type : sample.infer(op)) {
    found.types += (found.types.empty() ? "" : "; ") + ir::print(type);
  }
  for (const shape::Guard& guard : sample.dims.guards()) {
    found.guards += (found.guards.empty() ? "" : "; ") + shape::print(guard.condition);
  }
  return found;
}

void check(std::string_view name, std::string_view call, const shape::Bindings& sizes,
           const Inferred& expected) {
  CAPTURE(name);
  CAPTURE(call);
  const Inferred found = infer_text(name, call, sizes);
  CHECK(found.types == expected.types);
  CHECK(found.guards == expected.guards);
}

TEST_CASE("cat unifies the axes it does not join") {
  check("aten.cat", "[f32[a, b], f32[c, 3]], 1", {{"a", 2}, {"b", 3}, {"c", 2}},
        {"f32[a, b + 3]", "a == c"});
}

TEST_CASE("cat passes over empty tensors with one axis") {
  check("aten.cat", "[f32[0], f32[a, b]], -1", {{"a", 2}, {"b", 3}}, {"f32[a, b]", ""});
}

TEST_CASE("a view with a hole divides exactly, and says so where that is not certain") {
  check("aten.view", "f32[a, b, 12], [a*b, -1, 4]", {{"a", 2}, {"b", 3}}, {"f32[a*b, 3, 4]", ""});
  check("aten.view", "f32[a, 3], [-1, 2]", {{"a", 4}}, {"f32[a + a//2, 2]", "a%2 == 0"});
}

TEST_CASE("chunk and split bound a size only as far as the number of parts depends on it") {
  check("aten.chunk", "f32[2*a], 2", {{"a", 3}}, {"f32[a]; f32[a]", ""});
  check("aten.chunk", "f32[a], 2", {{"a", 3}}, {"f32[(a + 1)//2]; f32[a//2]", "a >= 2"});
  check("aten.split.Tensor", "f32[a], 4", {{"a", 6}}, {"f32[4]; f32[a - 4]", "a >= 5; a <= 8"});
  check("aten.unbind.int", "f32[a, b]", {{"a", 2}, {"b", 3}}, {"f32[b]; f32[b]", "a == 2"});
}

TEST_CASE("squeeze of an axis that may be 1 asks whether it is") {
  check("aten.squeeze.dim", "f32[a, b], 1", {{"a", 2}, {"b", 3}}, {"f32[a, b]", "b >= 2"});
}

TEST_CASE("expand keeps an axis that has the size already and gives way for 1 only") {
  check("aten.expand", "f32[a, 1], [a, b]", {{"a", 2}, {"b", 3}}, {"f32[a, b]", ""});
  check("aten.expand", "f32[a], [b]", {{"a", 2}, {"b", 2}}, {"f32[a]", "a == b"});
  check("aten.expand", "f32[a], [b]", {{"a", 1}, {"b", 3}}, {"f32[b]", "a == 1"});
}

TEST_CASE("attention makes the length of its mask that of the keys") {
  check("aten.scaled_dot_product_attention",
        "f32[a, 2, b, 4], f32[a, 2, b + c, 4], f32[a, 2, b + c, 4], f32[a, 1, b, d]",
        {{"a", 2}, {"b", 3}, {"c", 4}, {"d", 7}}, {"f32[a, 2, b, 4]", "d == b + c"});
}

TEST_CASE("what only the data decides gets a symbol of its own, once") {
  check("aten.index.Tensor", "f32[a, b, 3], [bool[a, b]]", {{"a", 2}, {"b", 3}},
        {"f32[u0, 3]", ""});
  check("aten.where", "bool[a, b]", {{"a", 2}, {"b", 3}}, {"i64[u0]; i64[u0]", ""});
  check("aten._unique2", "i64[a], True, True, True", {{"a", 4}}, {"i64[u0]; i64[a]; i64[u0]", ""});
}

TEST_CASE("indices that stand apart put their result in front") {
  check("aten.index.Tensor", "f32[a, b, 3], [i64[c], None, i64[c]]", {{"a", 2}, {"b", 3}, {"c", 4}},
        {"f32[c, b]", ""});
  check("aten.index.Tensor", "f32[a, b, 3], [None, i64[c], i64[c]]", {{"a", 2}, {"b", 3}, {"c", 4}},
        {"f32[a, c]", ""});
}

TEST_CASE("operands that do not fit are refused with the operator's name") {
  const shape::Bindings sizes{{"a", 2}, {"b", 3}};
  for (const auto& [name, call] : std::initializer_list<std::pair<const char*, const char*>>{
           {"aten.cat", "[f32[a, b], f32[a, b, 1]]"},
           {"aten.cat", "[f32[a, b], f32[b, a]]"},
           {"aten.view", "f32[a, 3], [4, -1]"},
           {"aten.expand", "f32[a, b], [b]"},
           {"aten.permute", "f32[a, b], [0]"},
           {"aten.select.int", "f32[a], 1, 0"},
           {"aten.split_with_sizes", "f32[5], [2, 2]"},
           {"aten.index.Tensor", "f32[a], [i64[b], i64[b]]"},
           {"aten.linear", "f32[a, 3], f32[4, 5]"},
           {"aten.matmul", "f32[a, b], f32[a, b]"},
           {"aten.einsum", "\"ij,jk->iz\", [f32[a, b], f32[b, a]]"},
           {"aten.einsum", "\"ij->i\", [f32[a]]"},
           {"aten.conv2d", "f32[a, 3, 5, 5], f32[4, 2, 3, 3]"},
           {"aten.conv2d", "f32[a, 3], f32[4, 2, 3, 3]"},
           {"aten.layer_norm", "f32[a, 3], [4]"},
           {"aten.linalg_inv", "f32[a, b]"},
       }) {
    CAPTURE(name);
    CAPTURE(call);
    try {
      infer_text(name, call, sizes);
      FAIL_CHECK("no error");
    } catch (const ExportError& error) {
      CHECK(error.diagnostics().at(0).code == Code::bad_operands);
      CHECK(error.diagnostics().at(0).what.starts_with(name));
    }
  }
}

}  // namespace
}  // namespace modelport::ops
