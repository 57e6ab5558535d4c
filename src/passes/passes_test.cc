// Each pass on graphs in text form: what goes in, what comes out, and that a second run changes
// nothing.
#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/fuse.h"
#include "passes/lower.h"
#include "passes/onnx_passes.h"
#include "passes/onnx_pipeline.h"
#include "passes/rewrite.h"

namespace modelport::passes {
namespace {

std::string after(void (*pass)(ir::Graph&), const std::string& text) {
  ir::Graph graph = ir::parse_graph(text);
  pass(graph);
  drop_unused(graph);
  const std::string once = ir::print(graph);
  pass(graph);
  drop_unused(graph);
  CHECK(ir::print(graph) == once);
  const std::size_t body = once.find("{\n");
  return once.substr(body + 2, once.find("  return") - body - 2);
}

}  // namespace

TEST_CASE("a cast to a wider type and back is no cast") {
  CHECK(after(simplify,
              "graph g(%x: f16[a])\n  where a in 1.. = 2\n{\n"
              "  %1 = onnx.Cast(inputs=[%x], to=f32) : f32[a]\n"
              "  %2 = onnx.Cast(inputs=[%1], to=f16) : f16[a]\n"
              "  %3 = onnx.Neg(inputs=[%2]) : f16[a]\n  return y = %3\n}\n") ==
        "  %1 = onnx.Neg(inputs=[%x]) : f16[a]\n");
}

TEST_CASE("a cast that loses digits stays") {
  CHECK(after(simplify,
              "graph g(%x: f32[a])\n  where a in 1.. = 2\n{\n"
              "  %1 = onnx.Cast(inputs=[%x], to=i64) : i64[a]\n"
              "  %2 = onnx.Cast(inputs=[%1], to=f32) : f32[a]\n"
              "  %3 = onnx.Neg(inputs=[%2]) : f32[a]\n  return y = %3\n}\n") ==
        "  %1 = onnx.Cast(inputs=[%x], to=i64) : i64[a]\n"
        "  %2 = onnx.Cast(inputs=[%1], to=f32) : f32[a]\n"
        "  %3 = onnx.Neg(inputs=[%2]) : f32[a]\n");
}

TEST_CASE("transposes that follow one another become one, or none") {
  CHECK(after(simplify,
              "graph g(%x: f32[a, 2, 3])\n  where a in 1.. = 2\n{\n"
              "  %1 = onnx.Transpose(inputs=[%x], perm=[1, 0, 2]) : f32[2, a, 3]\n"
              "  %2 = onnx.Transpose(inputs=[%1], perm=[1, 0, 2]) : f32[a, 2, 3]\n"
              "  %3 = onnx.Transpose(inputs=[%1], perm=[2, 1, 0]) : f32[3, a, 2]\n"
              "  %4 = onnx.Neg(inputs=[%2]) : f32[a, 2, 3]\n"
              "  %5 = onnx.Neg(inputs=[%3]) : f32[3, a, 2]\n  return y = %4, z = %5\n}\n") ==
        "  %1 = onnx.Transpose(inputs=[%x], perm=[2, 0, 1]) : f32[3, a, 2]\n"
        "  %2 = onnx.Neg(inputs=[%x]) : f32[a, 2, 3]\n"
        "  %3 = onnx.Neg(inputs=[%1]) : f32[3, a, 2]\n");
}

TEST_CASE("a neutral number goes only where it does not stretch the result") {
  CHECK(after(simplify,
              "graph g(%x: f32[a])\n  where a in 1.. = 2\n{\n"
              "  %1 = onnx.Constant(dtype=f32, shape=[], values=[1.0]) : f32[]\n"
              "  %2 = onnx.Mul(inputs=[%x, %1]) : f32[a]\n"
              "  %3 = onnx.Constant(dtype=f32, shape=[1, 1], values=[1.0]) : f32[1, 1]\n"
              "  %4 = onnx.Mul(inputs=[%2, %3]) : f32[1, a]\n"
              "  %5 = onnx.Neg(inputs=[%4]) : f32[1, a]\n  return y = %5\n}\n") ==
        "  %1 = onnx.Constant(dtype=f32, shape=[1, 1], values=[1.0]) : f32[1, 1]\n"
        "  %2 = onnx.Mul(inputs=[%x, %1]) : f32[1, a]\n"
        "  %3 = onnx.Neg(inputs=[%2]) : f32[1, a]\n");
}

TEST_CASE("what is computed twice is computed once, random numbers aside") {
  CHECK(after(share_common,
              "graph g(%x: f32[a])\n  where a in 1.. = 2\n{\n"
              "  %1 = onnx.Sin(inputs=[%x]) : f32[a]\n  %2 = onnx.Sin(inputs=[%x]) : f32[a]\n"
              "  %3 = onnx.RandomNormalLike(inputs=[%x]) : f32[a]\n"
              "  %4 = onnx.RandomNormalLike(inputs=[%x]) : f32[a]\n"
              "  %5 = onnx.Add(inputs=[%1, %2]) : f32[a]\n"
              "  %6 = onnx.Add(inputs=[%3, %4]) : f32[a]\n  return y = %5, z = %6\n}\n") ==
        "  %1 = onnx.Sin(inputs=[%x]) : f32[a]\n"
        "  %2 = onnx.RandomNormalLike(inputs=[%x]) : f32[a]\n"
        "  %3 = onnx.RandomNormalLike(inputs=[%x]) : f32[a]\n"
        "  %4 = onnx.Add(inputs=[%1, %1]) : f32[a]\n"
        "  %5 = onnx.Add(inputs=[%2, %3]) : f32[a]\n");
}

TEST_CASE("two outputs stay two values even if they are equal") {
  CHECK(after(share_common,
              "graph g(%x: f32[a])\n  where a in 1.. = 2\n{\n"
              "  %1 = onnx.Sin(inputs=[%x]) : f32[a]\n  %2 = onnx.Sin(inputs=[%x]) : f32[a]\n"
              "  return y = %1, z = %2\n}\n") ==
        "  %1 = onnx.Sin(inputs=[%x]) : f32[a]\n  %2 = onnx.Sin(inputs=[%x]) : f32[a]\n");
}

TEST_CASE("arithmetic on constants is done now, unless it overflows") {
  CHECK(after(fold_constants,
              "graph g(%x: i32[a])\n  where a in 1.. = 2\n{\n"
              "  %1 = onnx.Constant(dtype=i32, shape=[], values=[2000000000]) : i32[]\n"
              "  %2 = onnx.Constant(dtype=i32, shape=[], values=[3]) : i32[]\n"
              "  %3 = onnx.Add(inputs=[%2, %2]) : i32[]\n"
              "  %4 = onnx.Add(inputs=[%1, %1]) : i32[]\n"
              "  %5 = onnx.Add(inputs=[%x, %3]) : i32[a]\n"
              "  %6 = onnx.Add(inputs=[%5, %4]) : i32[a]\n  return y = %6\n}\n") ==
        "  %1 = onnx.Constant(dtype=i32, shape=[], values=[2000000000]) : i32[]\n"
        "  %2 = onnx.Constant(dtype=i32, shape=[], values=[6]) : i32[]\n"
        "  %3 = onnx.Add(inputs=[%1, %1]) : i32[]\n"
        "  %4 = onnx.Add(inputs=[%x, %2]) : i32[a]\n"
        "  %5 = onnx.Add(inputs=[%4, %3]) : i32[a]\n");
}

constexpr std::string_view kNorm =
    "graph g(%x: f32[a, 8])\n  where a in 1.. = 2\n  weights @w: f32[8]\n{\n"
    "  %1 = aten.pow.Tensor_Scalar(self=%x, exponent=2) : f32[a, 8]\n"
    "  %2 = aten.mean.dim(self=%1, dim=[-1], keepdim=true) : f32[a, 1]\n"
    "  %3 = aten.add.Tensor(self=%2, other=1e-06) : f32[a, 1]\n"
    "  %4 = aten.rsqrt(self=%3) : f32[a, 1]\n"
    "  %5 = aten.mul.Tensor(self=%x, other=%4) : f32[a, 8]\n"
    "  %6 = aten.mul.Tensor(self=@w, other=%5) : f32[a, 8]\n  return y = %6\n}\n";

TEST_CASE("a norm by the root of the mean square, written by hand, is one operator") {
  CHECK(after(fuse_norms, std::string(kNorm)) ==
        "  %1 = aten.rms_norm(input=%x, normalized_shape=[8], weight=@w, eps=1e-06) : f32[a, 8]\n");
}

TEST_CASE("a mean over another axis is no such norm") {
  std::string text(kNorm);
  text.replace(text.find("dim=[-1]"), 8, "dim=[0] ");
  CHECK(after(fuse_norms, text).find("rms_norm") == std::string::npos);
}

/// As Cohere writes it: the mean is subtracted twice over.
constexpr std::string_view kLayerNorm =
    "graph g(%x: f32[a, 8])\n  where a in 1.. = 2\n  weights @w: f32[8], @b: f32[8]\n{\n"
    "  %1 = aten.mean.dim(self=%x, dim=[-1], keepdim=true) : f32[a, 1]\n"
    "  %2 = aten.sub.Tensor(self=%x, other=%1) : f32[a, 8]\n"
    "  %3 = aten.pow.Tensor_Scalar(self=%2, exponent=2) : f32[a, 8]\n"
    "  %4 = aten.mean.dim(self=%3, dim=[-1], keepdim=true) : f32[a, 1]\n"
    "  %5 = aten.sub.Tensor(self=%x, other=%1) : f32[a, 8]\n"
    "  %6 = aten.add.Tensor(self=%4, other=1e-05) : f32[a, 1]\n"
    "  %7 = aten.rsqrt(self=%6) : f32[a, 1]\n"
    "  %8 = aten.mul.Tensor(self=%5, other=%7) : f32[a, 8]\n"
    "  %9 = aten.mul.Tensor(self=@w, other=%8) : f32[a, 8]\n"
    "  %10 = aten.add.Tensor(self=%9, other=@b) : f32[a, 8]\n  return y = RESULT\n}\n";

std::string layer_norm_until(std::string_view result) {
  std::string text(kLayerNorm);
  return text.replace(text.find("RESULT"), 6, result);
}

TEST_CASE("a norm by mean and deviation, written by hand, is one operator") {
  CHECK(after(fuse_norms, layer_norm_until("%10")) ==
        "  %1 = aten.layer_norm(input=%x, normalized_shape=[8], weight=@w, bias=@b, eps=1e-05) : "
        "f32[a, 8]\n");
  CHECK(after(fuse_norms, layer_norm_until("%9")) ==
        "  %1 = aten.layer_norm(input=%x, normalized_shape=[8], weight=@w, eps=1e-05) : f32[a, "
        "8]\n");
  CHECK(after(fuse_norms, layer_norm_until("%8")) ==
        "  %1 = aten.layer_norm(input=%x, normalized_shape=[8], eps=1e-05) : f32[a, 8]\n");
}

TEST_CASE("a deviation from the mean of something else is no such norm") {
  std::string text = layer_norm_until("%10");
  const std::string_view line = "%5 = aten.sub.Tensor(self=%x, other=%1)";
  text.replace(text.find(line), line.size(), "%5 = aten.sub.Tensor(self=%x, other=%4)");
  CHECK(after(fuse_norms, text).find("layer_norm") == std::string::npos);
}

TEST_CASE("attention repeats key heads itself") {
  CHECK(
      after(
          fuse_grouped_attention,
          "graph g(%q: f32[b, 4, s, 8], %k: f32[b, 2, s, 8])\n"
          "  where b in 1.. = 2, s in 1.. = 3\n{\n"
          "  %1 = aten.unsqueeze(self=%k, dim=2) : f32[b, 2, 1, s, 8]\n"
          "  %2 = aten.expand(self=%1, size=[b, 2, 2, s, 8]) : f32[b, 2, 2, s, 8]\n"
          "  %3 = aten.reshape(self=%2, shape=[b, 4, s, 8]) : f32[b, 4, s, 8]\n"
          "  %4 = aten.scaled_dot_product_attention(query=%q, key=%3, value=%3) : f32[b, 4, s, 8]\n"
          "  return y = %4\n}\n") ==
      "  %1 = aten.scaled_dot_product_attention(query=%q, key=%k, value=%k, enable_gqa=true) : "
      "f32[b, 4, s, 8]\n");
}

TEST_CASE("attention repeats the key heads of a cache that may be empty") {
  const std::string text =
      "graph g(%q: f32[b, 4, s, 8], %k: f32[b, 2, p + s, 8])\n"
      "  where b in 1.. = 2, s in 1.. = 3, p in 0.. = 2\n{\n"
      "  %1 = aten.unsqueeze(self=%k, dim=2) : f32[b, 2, 1, p + s, 8]\n"
      "  %2 = aten.slice.Tensor(self=%1, dim=3, start=0, end=9223372036854775807) : "
      "f32[b, 2, 1, p + s, 8]\n"
      "  %3 = aten.expand(self=%2, size=[b, 2, 2, p + s, 8]) : f32[b, 2, 2, p + s, 8]\n"
      "  %4 = aten.reshape(self=%3, shape=[b, 4, p + s, 8]) : f32[b, 4, p + s, 8]\n"
      "  %5 = aten.scaled_dot_product_attention(query=%q, key=%4, value=%4) : f32[b, 4, s, 8]\n"
      "  return y = %5\n}\n";
  CHECK(after(fuse_grouped_attention, text) ==
        "  %1 = aten.scaled_dot_product_attention(query=%q, key=%k, value=%k, enable_gqa=true) : "
        "f32[b, 4, s, 8]\n");
}

TEST_CASE("a rotation of queries is one operator, and reads half of each table") {
  const std::string text =
      "graph g(%x: f32[b, 4, s, 8], %f: f32[1, s, 4])\n  where b in 1.. = 2, s in 1.. = 3\n{\n"
      "  %1 = onnx.Concat(inputs=[%f, %f], axis=-1) : f32[1, s, 8]\n"
      "  %2 = onnx.Cos(inputs=[%1]) : f32[1, s, 8]\n  %3 = onnx.Sin(inputs=[%1]) : f32[1, s, 8]\n"
      "  %4 = onnx.Constant(dtype=i64, shape=[1], values=[1]) : i64[1]\n"
      "  %5 = onnx.Unsqueeze(inputs=[%2, %4]) : f32[1, 1, s, 8]\n"
      "  %6 = onnx.Unsqueeze(inputs=[%3, %4]) : f32[1, 1, s, 8]\n"
      "  %7 = onnx.Mul(inputs=[%x, %5]) : f32[b, 4, s, 8]\n"
      "  %8 = onnx.Constant(dtype=i64, shape=[1], values=[0]) : i64[1]\n"
      "  %9 = onnx.Constant(dtype=i64, shape=[1], values=[4]) : i64[1]\n"
      "  %10 = onnx.Constant(dtype=i64, shape=[1], values=[3]) : i64[1]\n"
      "  %11 = onnx.Constant(dtype=i64, shape=[1], values=[8]) : i64[1]\n"
      "  %12 = onnx.Slice(inputs=[%x, %8, %9, %10]) : f32[b, 4, s, 4]\n"
      "  %13 = onnx.Slice(inputs=[%x, %9, %11, %10]) : f32[b, 4, s, 4]\n"
      "  %14 = onnx.Neg(inputs=[%13]) : f32[b, 4, s, 4]\n"
      "  %15 = onnx.Concat(inputs=[%14, %12], axis=3) : f32[b, 4, s, 8]\n"
      "  %16 = onnx.Mul(inputs=[%15, %6]) : f32[b, 4, s, 8]\n"
      "  %17 = onnx.Add(inputs=[%7, %16]) : f32[b, 4, s, 8]\n  return y = %17\n}\n";
  const std::string fused = after(fuse_rotary, text);
  CHECK(fused.find("onnx.RotaryEmbedding(inputs=[%x, ") != std::string::npos);
  CHECK(fused.find("onnx.Neg") == std::string::npos);
  // Halves that are not known to be equal are no tables that the operator could use.
  std::string other = text;
  other.replace(other.find("inputs=[%f, %f]"), 15, "inputs=[%f]    ");
  CHECK(after(fuse_rotary, other).find("RotaryEmbedding") == std::string::npos);
}

TEST_CASE("a weight that is used as it is and transposed is stored once") {
  const std::string text =
      "graph g(%i: i64[b, s])\n  where b in 1.. = 2, s in 1.. = 3\n  weights @w: f32[9, 4]\n{\n"
      "  %1 = onnx.Gather(inputs=[@w, %i], axis=0) : f32[b, s, 4]\n"
      "  %2 = onnx.Transpose(inputs=[@w], perm=[1, 0]) : f32[4, 9]\n"
      "  %3 = onnx.MatMul(inputs=[%1, %2]) : f32[b, s, 9]\n  return y = %3\n}\n";
  const std::string gemm = after(use_gemm_for_shared_weights, text);
  CHECK(gemm.find("onnx.Gemm(inputs=[%3, @w], transB=1) : f32[b*s, 9]") != std::string::npos);
  CHECK(gemm.find("onnx.Transpose") == std::string::npos);
  std::string alone = text;
  alone.replace(alone.find("inputs=[@w, %i], axis=0"), 23, "inputs=[%i], axis=0    ");
  CHECK(after(use_gemm_for_shared_weights, alone).find("Gemm") == std::string::npos);
  CHECK(after(use_gemm_for_all_weights, alone).find("Gemm") != std::string::npos);
}

TEST_CASE("a product in f16 stays MatMul, whose kernel is quick") {
  const std::string text =
      "graph g(%x: f16[b, 4])\n  where b in 1.. = 2\n  weights @w: f16[9, 4]\n{\n"
      "  %1 = onnx.Transpose(inputs=[@w], perm=[1, 0]) : f16[4, 9]\n"
      "  %2 = onnx.MatMul(inputs=[%x, %1]) : f16[b, 9]\n  return y = %2\n}\n";
  CHECK(after(use_gemm_for_all_weights, text).find("Gemm") == std::string::npos);
}

TEST_CASE("products of tensors with the same sizes read these once") {
  const std::string gemm = after(
      use_gemm_for_all_weights,
      "graph g(%x: f32[b, s, 4])\n  where b in 1.. = 2, s in 1.. = 3\n  weights @w: f32[4, 4]\n{\n"
      "  %1 = onnx.Transpose(inputs=[@w], perm=[1, 0]) : f32[4, 4]\n"
      "  %2 = onnx.MatMul(inputs=[%x, %1]) : f32[b, s, 4]\n"
      "  %3 = onnx.MatMul(inputs=[%2, %1]) : f32[b, s, 4]\n  return y = %3\n}\n");
  CHECK(gemm.find("onnx.Shape") != std::string::npos);
  CHECK(gemm.find("onnx.Shape") == gemm.rfind("onnx.Shape"));
}

TEST_CASE("a product of no rows keeps its other sizes") {
  const std::string text =
      "graph g(%x: f32[b, n, 4])\n  where b in 1.. = 2, n in 0.. = 3\n  weights @w: f32[9, 4]\n{\n"
      "  %1 = onnx.Transpose(inputs=[@w], perm=[1, 0]) : f32[4, 9]\n"
      "  %2 = onnx.MatMul(inputs=[%x, %1]) : f32[b, n, 9]\n  return y = %2\n}\n";
  CHECK(after(use_gemm_for_all_weights, text).find("allowzero=1") != std::string::npos);
  std::string filled = text;
  filled.replace(filled.find("n in 0.."), 8, "n in 1..");
  CHECK(after(use_gemm_for_all_weights, filled).find("allowzero") == std::string::npos);
}

TEST_CASE("every pass says why it runs") {
  for (const auto passes : {onnx_pipeline().before, onnx_pipeline().after}) {
    for (const Pass& pass : passes) {
      CHECK(!pass.name.empty());
      CHECK(pass.why.size() > 20);
    }
  }
}

TEST_CASE("a norm written by hand is left alone where the number is added twice over") {
  std::string text(kNorm);
  const std::size_t at = text.find("other=1e-06");
  REQUIRE(at != std::string::npos);
  text.insert(at + std::string_view("other=1e-06").size(), ", alpha=2");
  CHECK(after(fuse_norms, text).find("rms_norm") == std::string::npos);
}

TEST_CASE("a fusion says where it was applied") {
  ir::Graph graph = ir::parse_graph(std::string(kNorm));
  const auto fired = fuse(graph, ops::fusions::norms());
  REQUIRE(fired.size() == 1);
  CHECK(fired[0].name == "norm by the root mean square, times a weight");
}

TEST_CASE("the program is a right one after each pass of the pipeline") {
  ir::Graph graph = ir::parse_graph(std::string(kNorm));
  for (const Pass& pass : onnx_pipeline().before) {
    CAPTURE(pass.name);
    pass.run(graph);
    CHECK_NOTHROW(ir::verify(graph));
  }
  graph = lower_to(OnnxTarget{}, graph);
  CHECK_NOTHROW(ir::verify(graph));
  for (const Pass& pass : onnx_pipeline().after) {
    CAPTURE(pass.name);
    pass.run(graph);
    CHECK_NOTHROW(ir::verify(graph));
    CHECK(violations(graph, onnx_pipeline().contract).empty());
  }
}

TEST_CASE("a contract names every operator and value that is not the target's") {
  const ir::Graph graph = ir::parse_graph(
      "graph g(%x: c64[n], %y: f32[n])\n  where n in 1.. = 2\n{\n"
      "  %1 = aten.relu(self=%y) : f32[n]\n"
      "  %2 = onnx.Slice(inputs=[%1], axis=n) : f32[n]\n"
      "  %3 = modelport.linear_recurrence(decay=%1, input=%2, dim=0) : f32[n]\n"
      "  return y = %3\n}\n");
  CHECK(violations(graph, kOnnxContract).all().size() == 4);
  CHECK(violations(graph, kExecutorchContract).all().size() == 4);
  CHECK(violations(graph, kPt2Contract).all().size() == 2);
  CHECK_THROWS_AS(hold(graph, kPt2Contract), InternalError);
}

}  // namespace modelport::passes
