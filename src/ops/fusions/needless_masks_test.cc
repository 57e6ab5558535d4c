// Masks of attention in graphs in text form.
#include "ops/fusions/needless_masks.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"

namespace modelport::ops::fusions {
namespace {

/// Whether attention keeps the mask that `nodes` make; `%true` is a constant that hides nothing.
bool keeps(std::string_view mask, std::string_view nodes = "", std::string_view batch = "b") {
  ir::Graph graph = ir::parse_graph(fmt::format(
      "graph g(%q: f32[{2}, 2, s, 4], %k: f32[{2}, 2, s, 4], %seen: bool[b, 1, s, s])\n"
      "  where b in 1.. = 2, s in 1.. = 5\n"
      "  weights @true: bool[1, 1, 1, 1], @other: bool[1, 1, 1, 1]\n{{\n{1}"
      "  %9 = aten.scaled_dot_product_attention(query=%q, key=%k, value=%k, attn_mask={0}) : "
      "f32[{2}, 2, s, 4]\n  return y = %9\n}}\n",
      mask, nodes, batch));
  drop_needless_masks(graph, {*graph.find_weight("true")});
  return graph.nodes().back().find("attn_mask") != nullptr;
}

constexpr std::string_view kPlaces =
    "  %1 = aten.arange(end=s) : i64[s]\n"
    "  %2 = aten.view(self=%1, size=[1, 1, s, 1]) : i64[1, 1, s, 1]\n";

}  // namespace

TEST_CASE("attention goes without a constant that is true everywhere, and what spreads it") {
  CHECK_FALSE(keeps("@true"));
  CHECK_FALSE(
      keeps("%1", "  %1 = aten.expand(self=@true, size=[b, 1, s, s]) : bool[b, 1, s, s]\n"));
  CHECK(keeps("@other"));
}

TEST_CASE("places are never negative, at any size") {
  const std::string at_least =
      fmt::format("{}  %3 = aten.ge.Scalar(self=%2, other=0) : bool[1, 1, s, 1]\n", kPlaces);
  CHECK_FALSE(keeps("%3", at_least));
  CHECK(keeps("%3", fmt::format("{}  %3 = aten.ge.Scalar(self=%2, other=1) : bool[1, 1, s, 1]\n",
                                kPlaces)));
  CHECK_FALSE(keeps("%4", at_least + "  %4 = aten.logical_and(self=%3, other=@true) : "
                                     "bool[1, 1, s, 1]\n"));
  CHECK(
      keeps("%4", at_least + "  %4 = aten.logical_and(self=%3, other=%seen) : bool[b, 1, s, s]\n"));
}

TEST_CASE("a mask that comes in, or that has more rows than the queries, stays") {
  CHECK(keeps("%seen"));
  const std::string_view spread =
      "  %1 = aten.expand(self=@true, size=[b, 1, s, s]) : bool[b, 1, s, s]\n";
  CHECK(keeps("%1", spread, "1"));
}

}  // namespace modelport::ops::fusions
