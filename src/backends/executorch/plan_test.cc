// Memory: what shares it, how much is needed, and that nothing lies on anything that is needed.
#include "backends/executorch/plan.h"

#include <doctest/doctest.h>

#include "backends/executorch/emit.h"
#include "backends/executorch/layout.h"
#include "backends/executorch/lifetimes.h"
#include "ir/text.h"

namespace modelport::executorch {
namespace {

Method planned(std::string_view text) {
  const ir::Graph graph = ir::parse_graph(text);
  weights::WeightStore weights;
  for (const ir::ValueId id : graph.weights) {
    weights::Shape shape;
    std::size_t count = 1;
    for (const shape::Int& size : graph.value(id).tensor().shape) {
      shape.push_back(static_cast<weights::Shape::value_type>(*size.constant()));
      count *= static_cast<std::size_t>(*size.constant());
    }
    weights.add_owned(graph.value(id).name, Dtype::f32, std::move(shape),
                      std::vector<std::byte>(count * sizeof(float)));
  }
  std::vector<weights::ConversionLoss> losses;
  ProgramData data(losses);
  Method method = emit({.graph = graph, .weights = weights}, {}, data);
  plan(method);
  return method;
}

/// Whether some storages lie on each other while both are needed.
bool has_conflict(const Method& method) {
  const std::vector<Lifetime> needed = lifetimes(method);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Storage& a = method.storages[i];
      const Storage& b = method.storages[j];
      const bool both = a.kind == Storage::Kind::activation && b.kind == a.kind &&
                        needed[i].begin != SIZE_MAX && needed[j].begin != SIZE_MAX;
      if (both && needed[i].overlaps(needed[j]) && a.offset < b.offset + b.bytes &&
          b.offset < a.offset + a.bytes)
        return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a chain of elementwise kernels needs the memory of one tensor") {
  const Method method = planned(
      "graph g(%x: f32[100])\n{\n"
      "  %1 = et.aten.relu.out(self=%x) : f32[100]\n"
      "  %2 = et.aten.mul.out(self=%1, other=%1) : f32[100]\n"
      "  %3 = et.aten.exp.out(self=%2) : f32[100]\n"
      "  return y = %3\n}\n");
  CHECK(method.arena_bytes == 400);
}

TEST_CASE("an operand that is needed later keeps its memory") {
  const Method method = planned(
      "graph g(%x: f32[100])\n{\n"
      "  %1 = et.aten.relu.out(self=%x) : f32[100]\n"
      "  %2 = et.aten.mul.out(self=%1, other=%x) : f32[100]\n"
      "  return y = %2, x = %1\n}\n");
  CHECK(method.arena_bytes == 800);
  CHECK_FALSE(has_conflict(method));
}

TEST_CASE("an operand that is broadcast does not give its memory to the result") {
  const Method method = planned(
      "graph g(%x: f32[4, 1])\n{\n"
      "  %1 = et.view(self=%x, size=[1, 4]) : f32[1, 4]\n"
      "  %2 = et.aten.mul.out(self=%x, other=%1) : f32[4, 4]\n"
      "  return y = %2\n}\n");
  CHECK(method.arena_bytes == 16 + 64);
}

TEST_CASE("two views of one tensor, of which one has another order, are not overwritten") {
  // Both operands are of 4 elements in one memory; the result has the type of one of them only.
  const Method method = planned(
      "graph g(%x: f32[4, 1])\n{\n"
      "  %1 = et.view(self=%x, size=[1, 4]) : f32[1, 4]\n"
      "  %2 = et.aten.exp.out(self=%1) : f32[1, 4]\n"
      "  %3 = et.aten.add.out(self=%2, other=%x, alpha=1) : f32[4, 4]\n"
      "  return y = %3\n}\n");
  CHECK_FALSE(has_conflict(method));
  CHECK(method.arena_bytes == 16 + 16 + 64);
}

TEST_CASE("a view keeps its source alive, dynamic or not") {
  const Method method = planned(
      "graph g(%x: f32[n, 4])\n  where n in 1..25 = 2\n{\n"
      "  %1 = et.aten.permute_copy.out(self=%x, dims=[1, 0]) : f32[4, n]\n"
      "  %2 = et.view(self=%1, size=[4*n]) : f32[4*n]\n"
      "  %3 = et.aten.permute_copy.out(self=%x, dims=[1, 0]) : f32[4, n]\n"
      "  %4 = et.view(self=%3, size=[4*n]) : f32[4*n]\n"
      "  return a = %2, b = %4\n}\n");
  CHECK_FALSE(has_conflict(method));
  CHECK(method.arena_bytes == 3 * 400);
}

TEST_CASE("state that is read after its new value is known is copied at the end") {
  const Method method = planned(
      "graph g(%x: f32[4])\n  weights @s: f32[4] buffer\n{\n"
      "  %1 = et.aten.add.out(self=%x, other=@s, alpha=1) : f32[4]\n"
      "  %2 = et.aten.mul.out(self=@s, other=%1) : f32[4]\n"
      "  return y = %2\n  mutate @s = %1\n}\n");
  CHECK(method.operators.back() == "aten::copy_");
}

TEST_CASE("a kernel that is not elementwise does not write over the state that it reads") {
  const std::string_view text =
      "graph g(%x: f32[4, 4])\n  weights @s: f32[4, 4] buffer\n{\n"
      "  %1 = et.aten.mm.out(self=%x, mat2=@s) : f32[4, 4]\n"
      "  return y = %1\n  mutate @s = %1\n}\n";
  CHECK(planned(text).operators.back() == "aten::copy_");
}

TEST_CASE("an operand that a kernel writes to is copied first if it is still needed") {
  const std::string_view cache =
      "graph g(%x: f32[1, 1, 1, 4])\n  weights @k: f32[1, 8, 1, 4] buffer\n{\n"
      "  %1 = et.llama.update_cache.out(value=%x, cache=@k, start_pos=2) : f32[1, 8, 1, 4]\n"
      "  %2 = et.aten.sum.IntList_out(self=%1, dim=[1], keepdim=false, dtype=None) : f32[1, 1, 4]\n"
      "  return y = %2\n  mutate @k = %1\n}\n";
  CHECK(planned(cache).operators ==
        std::vector<std::string>{"llama::update_cache.out", "aten::sum.IntList_out"});
  std::string both(cache);
  both.replace(both.find("return y = %2"), 13, "return y = %2, before = @k");
  CHECK(planned(both).operators.front() == "aten::clone.out");
}

TEST_CASE("a layer's memory comes to what is needed at its worst instruction") {
  std::string text = "graph g(%x: f32[64, 32])\n  weights @a: f32[32, 96], @b: f32[96, 32]\n{\n";
  std::string last = "%x";
  for (int layer = 0; layer < 6; ++layer) {
    const auto name = [&](int part) { return "%v" + std::to_string(layer * 4 + part); };
    text += name(0) + " = et.aten.mm.out(self=" + last + ", mat2=@a) : f32[64, 96]\n";
    text += name(1) + " = et.aten.sigmoid.out(self=" + name(0) + ") : f32[64, 96]\n";
    text += name(2) + " = et.aten.mm.out(self=" + name(1) + ", mat2=@b) : f32[64, 32]\n";
    text += name(3) + " = et.aten.add.out(self=" + last + ", other=" + name(2) +
            ", alpha=1) : f32[64, 32]\n";
    last = name(3);
  }
  const Method method = planned(text + "return y = " + last + "\n}\n");
  CHECK_FALSE(has_conflict(method));
  CHECK(method.arena_bytes == least_arena_bytes(method));
  CHECK(method.arena_bytes == std::uint64_t{4} * 64 * (32 + 96 + 32));
}

}  // namespace modelport::executorch
