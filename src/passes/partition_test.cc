// Which nodes XNNPACK runs together, on programs as text.
#include "passes/partition.h"

#include <doctest/doctest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/xnnpack.h"

namespace modelport::passes {
namespace {

/// The names of the nodes in order: kernels by theirs, delegates as [nodes].
std::string runs(const ir::Graph& graph) {
  std::string all;
  bool inside = false;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == "et.constant") continue;
    const bool of_xnnpack = node.op.starts_with("xnn.");
    if (of_xnnpack != inside) all += of_xnnpack ? "[" : "] ";
    all += node.op.substr(node.op.find('.') + 1) + (of_xnnpack ? "," : " ");
    inside = of_xnnpack;
  }
  return all + (inside ? "]" : "");
}

std::string ordered(const std::string& text) {
  const ir::Graph graph = ir::parse_graph(text);
  const ir::Graph found = in_order_of(partition(graph), graph);
  ir::verify(found);
  return runs(found);
}

XnnpackLowered lowered(const std::string& text, XnnpackOptions options = {}) {
  XnnpackLowered made = lower_to_xnnpack(ir::parse_graph(text), options);
  ir::verify(made.graph);
  const std::string printed = ir::print(made.graph);
  CHECK(ir::print(ir::parse_graph(printed)) == printed);
  return made;
}

std::string why(const XnnpackLowered& made, std::string_view op) {
  for (const auto& [left, count] : made.left) {
    if (left.op == op) return left.why;
  }
  return "";
}

/// A decoder layer: norm, queries and keys with rotation, grouped attention, gated layers.
const std::string kLayer =
    R"(graph layer(%x: f32[1, s, 64], %cos: f32[1, 1, s, 16], %mask: bool[1, 1, s, s])
  where s in 1..128 = 7
  weights @n: f32[64], @q: f32[64, 64], @k: f32[32, 64], @v: f32[32, 64], @o: f32[64, 64],
    @g: f32[128, 64], @d: f32[64, 128]
{
  %1 = aten.pow.Tensor_Scalar(self=%x, exponent=2) : f32[1, s, 64]
  %2 = aten.mean.dim(self=%1, dim=[-1], keepdim=true) : f32[1, s, 1]
  %3 = aten.add.Tensor(self=%2, other=1e-06) : f32[1, s, 1]
  %4 = aten.rsqrt(self=%3) : f32[1, s, 1]
  %5 = aten.mul.Tensor(self=%x, other=%4) : f32[1, s, 64]
  %6 = aten.mul.Tensor(self=@n, other=%5) : f32[1, s, 64]
  %7 = aten.linear(input=%6, weight=@q) : f32[1, s, 64]
  %8 = aten.view(self=%7, size=[1, s, 4, 16]) : f32[1, s, 4, 16]
  %9 = aten.transpose.int(self=%8, dim0=1, dim1=2) : f32[1, 4, s, 16]
  %10 = aten.mul.Tensor(self=%9, other=%cos) : f32[1, 4, s, 16]
  %11 = aten.linear(input=%6, weight=@k) : f32[1, s, 32]
  %12 = aten.view(self=%11, size=[1, s, 2, 16]) : f32[1, s, 2, 16]
  %13 = aten.transpose.int(self=%12, dim0=1, dim1=2) : f32[1, 2, s, 16]
  %14 = aten.linear(input=%6, weight=@v) : f32[1, s, 32]
  %15 = aten.view(self=%14, size=[1, s, 2, 16]) : f32[1, s, 2, 16]
  %16 = aten.transpose.int(self=%15, dim0=1, dim1=2) : f32[1, 2, s, 16]
  %17 = aten.scaled_dot_product_attention(query=%10, key=%13, value=%16, attn_mask=%mask, enable_gqa=true) : f32[1, 4, s, 16]
  %18 = aten.transpose.int(self=%17, dim0=1, dim1=2) : f32[1, s, 4, 16]
  %19 = aten.reshape(self=%18, shape=[1, s, -1]) : f32[1, s, 64]
  %20 = aten.linear(input=%19, weight=@o) : f32[1, s, 64]
  %21 = aten.add.Tensor(self=%x, other=%20) : f32[1, s, 64]
  %22 = aten.linear(input=%21, weight=@g) : f32[1, s, 128]
  %23 = aten.silu(self=%22) : f32[1, s, 128]
  %24 = aten.linear(input=%23, weight=@d) : f32[1, s, 64]
  %25 = aten.add.Tensor(self=%21, other=%24) : f32[1, s, 64]
  return y = %25
}
)";

}  // namespace

TEST_CASE("nodes that a kernel stands between are two delegates, the rest is one") {
  CHECK(ordered("graph g(%x: f32[4])\n{\n"
                "  %1 = xnn.Abs(input=%x) : f32[4]\n"
                "  %2 = et.aten.erf.out(self=%1) : f32[4]\n"
                "  %3 = xnn.Negate(input=%1) : f32[4]\n"
                "  %4 = xnn.Add(input1=%2, input2=%3) : f32[4]\n"
                "  %5 = xnn.Sigmoid(input=%x) : f32[4]\n"
                "  return y = %4, z = %5\n}\n") == "[Abs,Negate,Sigmoid,] aten.erf.out [Add,]");
}

TEST_CASE("kernels that wait for no delegate come first, and what nobody needs goes") {
  CHECK(ordered("graph g(%x: f32[4])\n{\n"
                "  %1 = xnn.Abs(input=%x) : f32[4]\n"
                "  %2 = et.aten.erf.out(self=%x) : f32[4]\n"
                "  %3 = xnn.Square(input=%x) : f32[4]\n"
                "  %4 = xnn.Add(input1=%1, input2=%2) : f32[4]\n"
                "  return y = %4\n}\n") == "aten.erf.out [Abs,Add,]");
}

TEST_CASE("a kernel stays behind the one that gives it a number") {
  CHECK(
      ordered(
          "graph g(%x: f32[4], %n: i64[1])\n  where u0 in 0..9 = 3\n{\n"
          "  %1 = xnn.Abs(input=%x) : f32[4]\n"
          "  %2 = et.aten._to_copy.out(self=%1, non_blocking=false, memory_format=None) : i64[4]\n"
          "  %3 = et.aten._local_scalar_dense(self=%2) : int u0\n"
          "  %4 = et.aten.full.out(size=[u0], fill_value=1.0) : f32[u0]\n"
          "  return y = %4\n}\n") ==
      "[Abs,] aten._to_copy.out aten._local_scalar_dense aten.full.out ");
}

TEST_CASE("a decoder layer of any length is one delegate") {
  const XnnpackLowered made = lowered(kLayer);
  CHECK(made.delegates == 1);
  const std::string order = runs(made.graph);
  CHECK(order.find("] ") == std::string::npos);  // the mask is made before, nothing after
  CHECK(order.find("BatchMatrixMultiply") != std::string::npos);
  CHECK(why(made, "aten.where.self") == "XNNPACK has no node for it");
}

TEST_CASE("with a batch of any size too, views that cost nothing cut a layer in parts") {
  std::string text = kLayer;
  for (std::size_t at = 0; (at = text.find("[1, s", at)) != std::string::npos;)
    text.replace(at, 5, "[b, s");
  for (std::size_t at = 0; (at = text.find("[1, 4, s", at)) != std::string::npos;)
    text.replace(at, 8, "[b, 4, s");
  for (std::size_t at = 0; (at = text.find("[1, 2, s", at)) != std::string::npos;)
    text.replace(at, 8, "[b, 2, s");
  text.replace(text.find("where "), 6, "where b in 1..8 = 2, ");
  const XnnpackLowered made = lowered(text);
  CHECK(made.delegates == 3);
  CHECK(why(made, "aten.view") == "more than one size is known only when it runs");
  for (const ir::Node& node : made.graph.nodes()) CHECK(node.op != "et.aten.permute_copy.out");
}

TEST_CASE("a delegate that would be small is left to kernels") {
  const std::string text =
      "graph g(%x: f32[4])\n{\n"
      "  %1 = aten.abs(self=%x) : f32[4]\n  return y = %1\n}\n";
  CHECK(lowered(text).delegates == 0);
  CHECK(lowered(text, {.least_nodes = 1}).delegates == 1);
}

TEST_CASE("other types and computed filters are left, with the reason") {
  const XnnpackLowered made = lowered(
      "graph g(%x: f16[2, 4], %i: f32[1, 3, 8, 8], %w: f32[2, 3, 1, 1])\n{\n"
      "  %1 = aten.abs(self=%x) : f16[2, 4]\n"
      "  %2 = aten.conv2d(input=%i, weight=%w) : f32[1, 2, 8, 8]\n"
      "  return y = %1, z = %2\n}\n",
      {.least_nodes = 1});
  CHECK(why(made, "aten.abs") == "not f32 with one to six axes");
  CHECK(why(made, "aten.conv2d") == "a filter that is no weight");
}

TEST_CASE(
    "a norm behind a convolution becomes part of it, and images keep their layout in between") {
  const XnnpackLowered made = lowered(
      "graph g(%x: f32[b, 3, h, w])\n  where b in 1..8 = 2, h in 4..64 = 8, w in 4..64 = 8\n"
      "  weights @f: f32[4, 3, 1, 1], @m: f32[4], @v: f32[4], @s: f32[4], @t: f32[4]\n{\n"
      "  %1 = aten.conv2d(input=%x, weight=@f) : f32[b, 4, h, w]\n"
      "  %2 = aten.batch_norm(input=%1, weight=@s, bias=@t, running_mean=@m, running_var=@v, "
      "training=false, momentum=0.1, eps=1e-05, cudnn_enabled=false) : f32[b, 4, h, w]\n"
      "  %3 = aten.relu(self=%2) : f32[b, 4, h, w]\n"
      "  %4 = aten.mean.dim(self=%3, dim=[2, 3], keepdim=true) : f32[b, 4, 1, 1]\n"
      "  return y = %4\n}\n");
  CHECK(runs(made.graph) ==
        "fold_norm [StaticTranspose,Conv2d,Clamp,GlobalAvgPooling2d,StaticTranspose,]");
}

TEST_CASE("weights of linear layers are stored as asked for, and their inputs rounded once") {
  const XnnpackLowered made =
      lowered(kLayer, {.storing = {.linear = ops::executorch::linear_stored("8da4w", 32)}});
  CHECK(made.delegates == 1);
  std::size_t stored = 0, rounded = 0;
  for (const ir::Node& node : made.graph.nodes()) {
    stored += node.op == "et.quantize" ? 1 : 0;
    rounded += node.op == "xnn.Convert" ? 1 : 0;
  }
  CHECK(stored == 6);
  CHECK(rounded == 4);
}

TEST_CASE("rows that groups do not divide take the form that is given for them") {
  ops::executorch::Storing storing;
  ops::executorch::store_linear(storing, "8da4w,8w", 32);
  CHECK(storing.linear_of(64)->layout == "xnnpack_qbint4");
  CHECK(storing.linear_of(48)->layout == "xnnpack_qcint8");
  CHECK(storing.linear_of(48)->group == 0);
  CHECK_FALSE(storing.linear_of(48)->rounds_inputs);
  ops::executorch::Storing alone;
  ops::executorch::store_linear(alone, "8da4w", 32);
  CHECK(alone.linear_of(48)->group == 32);  // which is refused when it is written
  CHECK_THROWS(ops::executorch::store_linear(alone, "8da4w,", 32));
}

}  // namespace modelport::passes
