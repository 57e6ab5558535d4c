// Attention on a cache whose scores go through more than one mask: what the kernel in place adds.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

constexpr std::string_view kScores = ": f32[b, 4, s, p + s]\n";

/// Queries on a cache; `scores` gives %w, the weights of the values, and `sum` the result %y.
std::string decoder(const std::string& scores, std::string_view sum, std::string_view type) {
  constexpr std::string_view kText = R"(graph g(%q: f32[b, 4, s, 16], %k: f32[b, 4, s, 16],
    %attention_mask: i64[b, p + s], %distances: f32[4, 1, p + s], %flat_distances: f32[4*b, 1, p + s],
    %past.0.key: f32[b, 4, p, 16], %past.0.value: f32[b, 4, p, 16])
  where b in 1.. = 2, s in 1.. = 3, p in 0.. = 5
  weights @none: f32[], @lowest: f32[], @hundred: f32[]
{{
  %1 = aten.cat(tensors=[%past.0.key, %k], dim=-2) : f32[b, 4, p + s, 16]
  %2 = aten.cat(tensors=[%past.0.value, %k], dim=-2) : f32[b, 4, p + s, 16]
  %3 = aten.transpose.int(self=%1, dim0=-1, dim1=-2) : f32[b, 4, 16, p + s]
  %4 = aten.matmul(self=%q, other=%3) : f32[b, 4, s, p + s]
  %5 = aten.reshape(self=%q, shape=[4*b, -1, 16]) : f32[4*b, s, 16]
  %6 = aten.reshape(self=%1, shape=[4*b, -1, 16]) : f32[4*b, p + s, 16]
  %7 = aten.transpose.int(self=%6, dim0=1, dim1=2) : f32[4*b, 16, p + s]
  %8 = aten.reshape(self=%2, shape=[4*b, -1, 16]) : f32[4*b, p + s, 16]
  %9 = aten.to.dtype(self=%attention_mask, dtype=bool) : bool[b, p + s]
  %10 = aten.unsqueeze(self=%9, dim=1) : bool[b, 1, p + s]
  %11 = aten.unsqueeze(self=%10, dim=1) : bool[b, 1, 1, p + s]
  %12 = aten.arange(end=s) : i64[s]
  %13 = aten.add.Tensor(self=%12, other=p) : i64[s]
  %14 = aten.unsqueeze(self=%13, dim=1) : i64[s, 1]
  %15 = aten.arange(end=p + s) : i64[p + s]
  %16 = aten.le.Tensor(self=%15, other=%14) : bool[s, p + s]
  %17 = aten.__and__.Tensor(self=%11, other=%16) : bool[b, 1, s, p + s]
  %18 = aten.where.ScalarOther(condition=%17, self=@none, other=-3e38) : f32[b, 1, s, p + s]
  %19 = aten.logical_not(self=%17) : bool[b, 1, s, p + s]
  %20 = aten.logical_not(self=%16) : bool[s, p + s]
{}  %y = {} : {}
  return y = %y, key = %1, value = %2
}}
)";
  return fmt::format(kText, scores, sum, type);
}

std::string with_heads(std::string_view scores) {
  constexpr std::string_view kSoftmax = "  %w = aten.softmax.int(self=%x, dim=-1)";
  return decoder(fmt::format("{}{}{}", scores, kSoftmax, kScores), "aten.matmul(self=%w, other=%2)",
                 "f32[b, 4, s, 16]");
}

std::string flat(std::string_view scores) {
  constexpr std::string_view kEnd =
      "  %v = aten.softmax.int(self=%x, dim=-1, dtype=f32) : f32[b, 4, s, p + s]\n"
      "  %w = aten.view(self=%v, size=[4*b, s, -1]) : f32[4*b, s, p + s]\n";
  return decoder(fmt::format("{}{}", scores, kEnd), "aten.bmm(self=%w, mat2=%8)",
                 "f32[4*b, s, 16]");
}

struct Fused {
  std::string text;
  std::vector<FusionNote> notes;
};

Fused fused(const std::string& text) {
  ir::Graph graph = ir::parse_graph(text);
  FusionContext context{
      .known = {{"none", 0.0}, {"lowest", -3.4028234663852886e38}, {"hundred", -100}},
      .context_length = 64};
  put_caches_in_place(graph, context);
  ir::verify(graph);
  return {ir::print(graph), context.notes};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Lines with scores for their type.
std::string line(std::string_view what) { return fmt::format("  {}{}", what, kScores); }

}  // namespace

TEST_CASE("distances and keys that are filled in become one mask that is added") {
  const Fused result = fused(with_heads(
      line("%30 = aten.mul.Tensor(self=%4, other=0.25)") +
      line("%31 = aten.add.Tensor(self=%30, other=%distances)") +
      line("%x = aten.masked_fill.Scalar(self=%31, mask=%19, value=-3.4028234663852886e+38)")));
  CHECK(has(result.text, "aten.reshape(self=%distances, shape=[1, 4, 1, total_sequence_length])"));
  CHECK(has(result.text, ") : f32[b, 4, s, total_sequence_length]"));
  CHECK(has(result.text, "looks_ahead=true, scale=0.25"));
  CHECK_FALSE(has(result.text, "aten.softmax"));
  REQUIRE(result.notes.size() == 2);
  CHECK(result.notes[0].fusion ==
        "attention on a cache, with what is added to its scores, in place, with the model's own "
        "mask");
}

TEST_CASE("a mask of truths alone fills zeros") {
  const Fused result =
      fused(with_heads(line("%x = aten.masked_fill.Scalar(self=%4, mask=%19, value=-1e9)")));
  CHECK(has(result.text, "aten.full(size=[1, 1, 1, 1], fill_value=0.0, dtype=f32)"));
  CHECK(has(result.text, ") : f32[b, 1, s, total_sequence_length]"));
  CHECK(has(result.text, "scale=1.0"));
}

TEST_CASE("a mask without rows and heads serves all of them, beside one that is added") {
  const Fused result =
      fused(with_heads(line("%30 = aten.where.self(condition=%16, self=%4, other=@lowest)") +
                       line("%x = aten.add.Tensor(self=%30, other=%18)")));
  CHECK(has(result.text, "aten.where.self(condition="));
  CHECK(has(result.text, "looks_ahead=true"));
}

TEST_CASE("rows and heads in one axis are given axes of their own") {
  const Fused result = fused(flat(
      "  %30 = aten.baddbmm(self=%flat_distances, batch1=%5, batch2=%7, beta=1.0, alpha=0.25) : "
      "f32[4*b, s, p + s]\n" +
      line("%31 = aten.view(self=%30, size=[b, 4, s, -1])") +
      line("%x = aten.add.Tensor(self=%31, other=%18)")));
  CHECK(has(result.text,
            "aten.reshape(self=%flat_distances, shape=[b, 4, 1, total_sequence_length])"));
  CHECK(has(result.text, "scale=0.25"));
  CHECK(has(result.text, ": f32[4*b, s, 16]"));  // as the model goes on with it
}

TEST_CASE("a mask that the kernel can make itself leaves padding out, though scores are bounded") {
  const Fused result = fused(flat("  %30 = aten.bmm(self=%5, mat2=%7) : f32[4*b, s, p + s]\n" +
                                  line("%31 = aten.view(self=%30, size=[b, 4, s, p + s])") +
                                  line("%32 = aten.add.Tensor(self=%31, other=%18)") +
                                  line("%x = aten.max.other(self=%32, other=@lowest)")));
  CHECK(has(result.text, "tokens_come_first"));
  CHECK_FALSE(has(result.text, "looks_ahead"));
  CHECK_FALSE(has(result.text, "aten.le.Tensor"));
}

TEST_CASE("scores are not fused where a sum with a mask is not what the model computes") {
  const auto stays = [](const std::string& text) {
    CHECK_FALSE(has(fused(text).text, "group_query_attention"));
  };
  // What is filled in is not low enough, or is raised again; a bound that scores may reach.
  stays(with_heads(line("%x = aten.masked_fill.Scalar(self=%4, mask=%19, value=-100.0)")));
  stays(with_heads(line("%30 = aten.masked_fill.Scalar(self=%4, mask=%19, value=-1e9)") +
                   line("%x = aten.mul.Tensor(self=%30, other=0.001)")));
  stays(with_heads(line("%30 = aten.add.Tensor(self=%4, other=%18)") +
                   line("%x = aten.max.other(self=%30, other=@hundred)")));
  // A mask that hides padding alone would let the kernel look ahead; a power of scores is no scale.
  stays(with_heads(line("%x = aten.add.Tensor(self=%4, other=%distances)")));
  stays(with_heads(line("%30 = aten.mul.Tensor(self=%4, other=%4)") +
                   line("%x = aten.add.Tensor(self=%30, other=%18)")));
}

}  // namespace modelport::passes
