// Attention on a cache, as models write it, in graphs in text form: what becomes of it in place.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/onnx_pipeline.h"
#include "passes/runtime_fusions.h"

namespace modelport::passes {
namespace {

/// Queries and keys of one layer, turned by halves, on a cache; `mask` gives %m from the input.
std::string decoder(std::string_view mask, std::string_view scale = "0.25") {
  constexpr std::string_view kText = R"(graph g(%x: f32[b, 4, s, 16], %k: f32[b, 2, s, 16],
    %attention_mask: i64[b, p + s], %position_ids: i64[b, s],
    %past.0.key: f32[b, 2, p, 16], %past.0.value: f32[b, 2, p, 16])
  where b in 1.. = 2, s in 1.. = 3, p in 0.. = 5
  weights @inv: f32[8]
{{
  %1 = aten.unsqueeze(self=%position_ids, dim=2) : i64[b, s, 1]
  %2 = aten.to.dtype(self=%1, dtype=f32) : f32[b, s, 1]
  %3 = aten.mul.Tensor(self=%2, other=@inv) : f32[b, s, 8]
  %4 = aten.cat(tensors=[%3, %3], dim=-1) : f32[b, s, 16]
  %5 = aten.cos(self=%4) : f32[b, s, 16]
  %6 = aten.sin(self=%4) : f32[b, s, 16]
  %7 = aten.unsqueeze(self=%5, dim=1) : f32[b, 1, s, 16]
  %8 = aten.unsqueeze(self=%6, dim=1) : f32[b, 1, s, 16]
  %9 = aten.mul.Tensor(self=%x, other=%7) : f32[b, 4, s, 16]
  %10 = aten.slice.Tensor(self=%x, dim=3, start=0, end=8) : f32[b, 4, s, 8]
  %11 = aten.slice.Tensor(self=%x, dim=3, start=8, end=16) : f32[b, 4, s, 8]
  %12 = aten.neg(self=%11) : f32[b, 4, s, 8]
  %13 = aten.cat(tensors=[%12, %10], dim=-1) : f32[b, 4, s, 16]
  %14 = aten.mul.Tensor(self=%13, other=%8) : f32[b, 4, s, 16]
  %15 = aten.add.Tensor(self=%9, other=%14) : f32[b, 4, s, 16]
  %16 = aten.mul.Tensor(self=%k, other=%7) : f32[b, 2, s, 16]
  %17 = aten.slice.Tensor(self=%k, dim=3, start=0, end=8) : f32[b, 2, s, 8]
  %18 = aten.slice.Tensor(self=%k, dim=3, start=8, end=16) : f32[b, 2, s, 8]
  %19 = aten.neg(self=%18) : f32[b, 2, s, 8]
  %20 = aten.cat(tensors=[%19, %17], dim=-1) : f32[b, 2, s, 16]
  %21 = aten.mul.Tensor(self=%20, other=%8) : f32[b, 2, s, 16]
  %22 = aten.add.Tensor(self=%16, other=%21) : f32[b, 2, s, 16]
  %23 = aten.cat(tensors=[%past.0.key, %22], dim=-2) : f32[b, 2, p + s, 16]
  %24 = aten.cat(tensors=[%past.0.value, %k], dim=2) : f32[b, 2, p + s, 16]
  %25 = aten.to.dtype(self=%attention_mask, dtype=bool) : bool[b, p + s]
  %26 = aten.unsqueeze(self=%25, dim=1) : bool[b, 1, p + s]
  %27 = aten.unsqueeze(self=%26, dim=1) : bool[b, 1, 1, p + s]
  %28 = aten.arange(end=s) : i64[s]
  %29 = aten.add.Tensor(self=%28, other=p) : i64[s]
  %30 = aten.unsqueeze(self=%29, dim=1) : i64[s, 1]
  %31 = aten.arange(end=p + s) : i64[p + s]
  %32 = aten.le.Tensor(self=%31, other=%30) : bool[s, p + s]
{}  %m = aten.__and__.Tensor(self=%27, other=%33) : bool[b, 1, s, p + s]
  %34 = aten.scaled_dot_product_attention(query=%15, key=%23, value=%24, attn_mask=%m, scale={}, enable_gqa=true) : f32[b, 4, s, 16]
  return y = %34, key = %23, value = %24
}}
)";
  return fmt::format(kText, mask, scale);
}

constexpr std::string_view kCausal =
    "  %33 = aten.__and__.Tensor(self=%32, other=%32) : bool[s, p + s]\n";

struct Fused {
  std::string text;
  std::vector<FusionNote> notes;
  std::string tables;  // the graph that computes them
};

Fused fused(const std::string& text, std::int64_t context_length = 64) {
  ir::Graph graph = ir::parse_graph(text);
  FusionContext context{.context_length = context_length};
  put_caches_in_place(graph, context);
  ir::verify(graph);
  if (context.tables) ir::verify(*context.tables);
  return {ir::print(graph), context.notes, context.tables ? ir::print(*context.tables) : ""};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("attention on a cache turns its queries itself, and positions go") {
  const Fused result = fused(decoder(kCausal));
  CHECK(has(result.text, "modelport.group_query_attention(query=%x, key=%k, value=%k"));
  CHECK(has(result.text, "cos=@cos, sin=@sin"));
  CHECK_FALSE(has(result.text, "position_ids"));
  CHECK_FALSE(has(result.text, "aten.le"));
  CHECK(has(result.text, "%past.0.key: f32[b, 2, cache_length, 16]"));
  CHECK(has(result.text, "total_sequence_length in 1..64"));
  for (const FusionNote& note : result.notes) CHECK(note.objection.empty());
}

TEST_CASE("without a length of texts the rotation stays outside, and positions stay") {
  const Fused result = fused(decoder(kCausal), 0);
  CHECK(has(result.text, "modelport.group_query_attention(query=%"));
  CHECK(result.tables.empty());
  CHECK(has(result.text, "position_ids"));
}

TEST_CASE("cos and sin of every position are weights, which a graph of its own computes once") {
  const Fused result = fused(decoder(kCausal));
  CHECK(has(result.text, "@cos: f32[64, 8] constant, @sin: f32[64, 8] constant"));
  CHECK_FALSE(has(result.text, "aten.cos"));
  CHECK(result.tables == R"(graph tables(%positions: i64[1, 64])
  weights @inv: f32[8]
{
  %1 = aten.unsqueeze(self=%positions, dim=2) : i64[1, 64, 1]
  %2 = aten.to.dtype(self=%1, dtype=f32) : f32[1, 64, 1]
  %3 = aten.mul.Tensor(self=%2, other=@inv) : f32[1, 64, 8]
  %4 = aten.cat(tensors=[%3, %3], dim=-1) : f32[1, 64, 16]
  %5 = aten.cos(self=%4) : f32[1, 64, 16]
  %6 = aten.select.int(self=%5, dim=0, index=0) : f32[64, 16]
  %7 = aten.slice.Tensor(self=%6, dim=1, start=0, end=8, step=1) : f32[64, 8]
  %8 = aten.sin(self=%4) : f32[1, 64, 16]
  %9 = aten.select.int(self=%8, dim=0, index=0) : f32[64, 16]
  %10 = aten.slice.Tensor(self=%9, dim=1, start=0, end=8, step=1) : f32[64, 8]
  return cos = %7, sin = %10
}
)");
}

TEST_CASE("a table does not take the name of another weight") {
  std::string text = decoder(kCausal);
  for (std::size_t at = 0; (at = text.find("@inv", at)) != std::string::npos;)
    text.replace(at, 4, "@cos");
  text.replace(text.find("return"), 6, "%99 = aten.neg(self=@cos) : f32[8]\n  return other = %99,");
  const Fused result = fused(text);
  CHECK(has(result.text, "cos=@cos.1, sin=@sin"));
  CHECK(has(result.tables, "weights @cos: f32[8]"));
}

TEST_CASE("a window is read off the mask, whichever way it is compared") {
  const std::string window =
      "  %40 = aten.sub.Tensor(self=%30, other=8) : i64[s, 1]\n"
      "  %41 = aten.gt.Tensor(self=%31, other=%40) : bool[s, p + s]\n"
      "  %33 = aten.__and__.Tensor(self=%32, other=%41) : bool[s, p + s]\n";
  CHECK(has(fused(decoder(window)).text, "window=8"));
}

constexpr std::string_view kOther =
    "  %40 = aten.mul.Tensor(self=%31, other=2) : i64[p + s]\n"
    "  %41 = aten.le.Tensor(self=%40, other=%30) : bool[s, p + s]\n"
    "  %33 = aten.__and__.Tensor(self=%32, other=%41) : bool[s, p + s]\n";

TEST_CASE("a mask that hides more than its window and padding is the kernel's own mask") {
  const Fused result = fused(decoder(kOther));
  CHECK(has(result.text, "attention_mask=%attention_mask, mask=%"));
  CHECK(has(result.text, "looks_ahead=true"));
  CHECK(has(result.text, "%past.0.key: f32[b, 2, cache_length, 16]"));
  // Padding stays where it is, and positions are those of the caller.
  CHECK_FALSE(has(result.text, "tokens_come_first"));
  CHECK(has(result.text, "position_ids"));
  REQUIRE(result.notes.size() == 2);
  CHECK(result.notes[0].fusion == "attention on a cache, in place, with the model's own mask");
  CHECK_FALSE(result.notes[1].objection.empty());
}

TEST_CASE("beside a state of another kind padding stays, and nothing looks ahead") {
  std::string text = decoder(kCausal);
  const std::string caches = "%past.0.value: f32[b, 2, p, 16])";
  text.replace(text.find(caches), caches.size(),
               "%past.0.value: f32[b, 2, p, 16], %past_conv.0: f32[b, 4])");
  const std::string end = "  return y = %34";
  text.replace(text.find(end), end.size(),
               "  %35 = aten.sin(self=%past_conv.0) : f32[b, 4]\n  return conv = %35, y = %34");
  const Fused result = fused(text);
  CHECK(has(result.text, "attention_mask=%attention_mask, mask=%"));
  CHECK_FALSE(has(result.text, "looks_ahead"));
  CHECK_FALSE(has(result.text, "tokens_come_first"));
  CHECK(result.notes[1].objection == "there is a state beside keys and values");
}

TEST_CASE("a mask without a row for each query keeps the attention as it is") {
  std::string text = decoder(kOther);
  const std::string mask = "attn_mask=%m";
  text.replace(text.find(mask), mask.size(), "attn_mask=%41");
  const Fused result = fused(text);
  CHECK(result.text == ir::print(ir::parse_graph(text)));
  REQUIRE(result.notes.size() == 1);
  CHECK_FALSE(result.notes[0].objection.empty());
}

TEST_CASE("scores that are divided, or neither divided nor multiplied, are scaled by the kernel") {
  const auto written_out = [](std::string_view scores) {
    std::string text = decoder(kCausal);
    const std::size_t begin = text.find("  %34 = "), end = text.find("  return");
    constexpr std::string_view kText =
        "  %48 = aten.unsqueeze(self=%23, dim=2) : f32[b, 2, 1, p + s, 16]\n"
        "  %49 = aten.expand(self=%48, size=[b, 2, 2, p + s, 16]) : f32[b, 2, 2, p + s, 16]\n"
        "  %50 = aten.reshape(self=%49, shape=[b, 4, p + s, 16]) : f32[b, 4, p + s, 16]\n"
        "  %52 = aten.transpose.int(self=%50, dim0=-1, dim1=-2) : f32[b, 4, 16, p + s]\n"
        "  %53 = aten.matmul(self=%15, other=%52) : f32[b, 4, s, p + s]\n"
        "  %54 = aten.where.ScalarOther(condition=%m, self=@none, other=-1e38) : f32[b, 1, s, p + "
        "s]\n"
        "{}"
        "  %57 = aten.softmax.int(self=%56, dim=-1) : f32[b, 4, s, p + s]\n"
        "  %58 = aten.unsqueeze(self=%24, dim=2) : f32[b, 2, 1, p + s, 16]\n"
        "  %59 = aten.expand(self=%58, size=[b, 2, 2, p + s, 16]) : f32[b, 2, 2, p + s, 16]\n"
        "  %51 = aten.reshape(self=%59, shape=[b, 4, p + s, 16]) : f32[b, 4, p + s, 16]\n"
        "  %34 = aten.matmul(self=%57, other=%51) : f32[b, 4, s, 16]\n";
    text.replace(begin, end - begin, fmt::format(kText, scores));
    return text.replace(text.find("@inv: f32[8]"), 12, "@inv: f32[8], @none: f32[]");
  };
  constexpr std::string_view kType = ": f32[b, 4, s, p + s]\n";
  const std::string divided = fmt::format(
      "  %55 = aten.div.Tensor(self=%53, other=4.0) {0}  %56 = aten.add.Tensor(self=%55, "
      "other=%54) "
      "{0}",
      kType);
  const std::string masked_first = fmt::format(
      "  %55 = aten.add.Tensor(self=%53, other=%54) {0}  %56 = aten.div.Tensor(self=%55, "
      "other=4.0) "
      "{0}",
      kType);
  const std::string plain = fmt::format("  %56 = aten.add.Tensor(self=%53, other=%54) {}", kType);
  CHECK(has(fused(written_out(divided)).text, "scale=0.25"));
  CHECK(has(fused(written_out(masked_first)).text, "scale=0.25"));
  CHECK(has(fused(written_out(plain)).text, "scale=1.0"));
}

TEST_CASE("a rotation with another sign is none") {
  std::string text = decoder(kCausal);
  const std::string sum = "%15 = aten.add.Tensor(self=%9, other=%14)";
  text.replace(text.find(sum), sum.size(), "%15 = aten.sub.Tensor(self=%9, other=%14)");
  const Fused result = fused(text);
  CHECK(has(result.text, "modelport.group_query_attention(query=%"));
  CHECK(result.tables.empty());
}

TEST_CASE("a cache that something else reads stays as it is") {
  std::string text = decoder(kCausal);
  const std::string end = "  return y = %34";
  text.replace(text.find(end), end.size(),
               "  %35 = aten.sin(self=%23) : f32[b, 2, p + s, 16]\n  return z = %35, y = %34");
  CHECK_FALSE(has(fused(text).text, "group_query_attention"));
}

}  // namespace modelport::passes
