// Capture of C++ lambdas: views and writes, sizes, exceptions, threads, data, custom operators.
#include "capture/function.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <torch/library.h>

#include <algorithm>
#include <barrier>
#include <thread>

#include "capture/session.h"
#include "ir/verify.h"

namespace modelport::capture {

namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor counted(at::IntArrayRef sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::arange(count, at::kFloat).view(sizes).div(7);
}

/// The graph and the function give the same on these inputs.
void check_same(const CapturedFunction& captured, const TensorFunction& function,
                const std::function<Tensors()>& inputs) {
  const Tensors got = captured.run(inputs());
  const Tensors expected = function(inputs());
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].sizes() == expected[i].sizes());
    // In brackets: doctest would print the types with torch's own toString, which gives no doctest
    // string.
    CHECK((got[i].scalar_type() == expected[i].scalar_type()));
    CHECK(at::allclose(got[i], expected[i]));
  }
}

std::size_t count_of(const ir::Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                                [&](const ir::Node& n) { return n.op == op; }));
}

/// The code of what the call throws.
Code code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ExportError& error) {
    CHECK_FALSE(error.diagnostics().front().ways_out.empty());
    return error.diagnostics().front().code;
  }
  FAIL("nothing was thrown");
  return Code::bad_graph;
}

/// Nothing of a capture is left on this thread.
void check_thread_is_clean() {
  CHECK(Recording::current() == nullptr);
  CHECK(at::GradMode::is_enabled());
  CHECK(as_traced(at::ones({2}).add(1)) == nullptr);
}

at::Tensor without_meta_kernel(const at::Tensor& x) { return x.mul(2); }

}  // namespace

TORCH_LIBRARY(modelport_function_test, library) { library.def("opaque(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(modelport_function_test, CPU, library) {
  library.impl("opaque", &without_meta_kernel);
}

namespace {

at::Tensor opaque(const at::Tensor& x) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("modelport_function_test::opaque", "")
                             .typed<at::Tensor(const at::Tensor&)>();
  return op.call(x);
}

}  // namespace

TEST_CASE("a captured lambda gives its values at sizes that the example did not have") {
  const at::Tensor weight = at::rand({4, 5});
  const TensorFunction function = [&](const Tensors& in) -> Tensors {
    const at::Tensor scores = at::matmul(in[0], weight);
    return {at::softmax(scores, -1), scores.add(in[1])};
  };
  const CapturedFunction captured = capture_function(
      function, {{"x", counted({2, 3, 4}), {"batch", "seq", std::nullopt}}, {"bias", counted({5})}},
      {.name = "scores", .weights = {{"proj.weight", weight}}});
  CHECK(ir::violations(captured.graph).empty());
  CHECK(captured.graph.name == "scores");
  REQUIRE(captured.graph.weights.size() == 1);
  CHECK(captured.graph.value(captured.graph.weights[0]).name == "proj.weight");
  CHECK(captured.weights.at("proj.weight").data_ptr() == weight.data_ptr());
  const std::vector<std::vector<std::int64_t>> shapes{{1, 1, 4}, {2, 3, 4}, {5, 1, 4}, {1, 9, 4}};
  for (const auto& shape : shapes) {
    check_same(captured, function, [&] { return Tensors{counted(shape), counted({5})}; });
  }
  check_thread_is_clean();
}

TEST_CASE("writes through views reach the tensor that is viewed") {
  const TensorFunction function = [](const Tensors& in) -> Tensors {
    at::Tensor y = in[0].clone();
    const at::Tensor row = y.select(0, 0);
    const at::Tensor columns = y.transpose(0, 1).slice(0, 0, 2);
    row.mul_(10);
    columns.add_(row.sum());
    row.slice(0, 1, 3).zero_();
    return {y, columns, row};
  };
  const CapturedFunction captured =
      capture_function(function, {{"x", counted({3, 4}), {"rows", std::nullopt}}});
  for (const ir::Node& node : captured.graph.nodes()) CHECK_FALSE(node.op.ends_with("_"));
  for (const int rows : {1, 3, 6}) {
    check_same(captured, function, [rows] { return Tensors{counted({rows, 4})}; });
  }
}

TEST_CASE("a function that writes to its input and to a buffer changes neither in the capture") {
  const at::Tensor x = counted({3});
  const at::Tensor calls = at::zeros({1});
  const at::Tensor x_before = x.clone();
  const CapturedFunction captured = capture_function(
      [&](const Tensors& in) -> Tensors {
        calls.add_(1);
        return {in[0].mul_(2).add(calls)};
      },
      {{"x", x, {"n"}}}, {.weights = {{"calls", calls, ir::WeightKind::buffer}}});
  CHECK(at::equal(x, x_before));
  CHECK(at::equal(calls, at::zeros({1})));
  REQUIRE(captured.graph.mutations.size() == 1);
  CHECK(captured.graph.value(captured.graph.mutations[0].buffer).name == "calls");
  const at::Tensor other = at::ones({5});
  CHECK(at::equal(captured.run({other})[0], at::full({5}, 3.0)));
  CHECK(at::equal(other, at::ones({5})));
}

TEST_CASE("sizes asked for with sym_size stay symbols") {
  const TensorFunction function = [](const Tensors& in) -> Tensors {
    const at::Tensor& x = in[0];
    return {x.reshape_symint({x.sym_size(0) * x.sym_size(1)}).add(1)};
  };
  const CapturedFunction captured =
      capture_function(function, {{"x", counted({2, 3}), {"a", "b"}}});
  check_same(captured, function, [] { return Tensors{counted({4, 7})}; });
}

TEST_CASE("a named axis that the function asks the size of is an error, an unnamed one is not") {
  const TensorFunction function = [](const Tensors& in) -> Tensors {
    return {in[0].div(static_cast<double>(in[0].size(0)))};
  };
  const at::Tensor x = counted({3});
  CHECK(code_of([&] { capture_function(function, {{"x", x, {"n"}}}); }) == Code::pinned_axis);
  const CapturedFunction captured = capture_function(function, {{"x", x}});
  CHECK(at::allclose(captured.run({x})[0], x.div(3)));
  CHECK(code_of([&] { captured.run({counted({4})}); }) == Code::guard_failed);
}

TEST_CASE("an exception in the middle leaves thread, input and weight as they were") {
  const at::Tensor x = counted({3});
  const at::Tensor weight = at::ones({3});
  const at::Tensor x_before = x.clone();
  const TensorFunction function = [&](const Tensors& in) -> Tensors {
    weight.add_(in[0]);
    in[0].zero_();
    throw std::out_of_range("of the function");
  };
  const FunctionOptions options{.weights = {{"w", weight, ir::WeightKind::buffer}}};
  CHECK_THROWS_AS(capture_function(function, {{"x", x, {"n"}}}, options), std::out_of_range);
  check_thread_is_clean();
  CHECK(at::equal(x, x_before));
  CHECK(at::equal(weight, at::ones({3})));
  const CapturedFunction captured = capture_function(
      [](const Tensors& in) -> Tensors { return {at::relu(in[0])}; }, {{"x", x, {"n"}}});
  CHECK(count_of(captured.graph, "aten.relu") == 1);
}

TEST_CASE("two threads capture at once and get their own graphs") {
  std::barrier meet(2);
  const auto capture_steps = [&meet](int steps) {
    return capture_function(
        [&meet, steps](const Tensors& in) -> Tensors {
          at::Tensor y = in[0];
          for (int i = 0; i < 20; ++i) {
            meet.arrive_and_wait();  // both are in the middle of their capture
            if (i < steps) y = at::relu(y).add(steps);
          }
          return {y};
        },
        {{"x", counted({2, 3}), {"rows", std::nullopt}}});
  };
  CapturedFunction first;
  CapturedFunction second;
  std::thread a([&] { first = capture_steps(20); });
  std::thread b([&] { second = capture_steps(7); });
  a.join();
  b.join();
  CHECK(count_of(first.graph, "aten.relu") == 20);
  CHECK(count_of(second.graph, "aten.relu") == 7);
  CHECK(first.graph.nodes().size() == 40);
  CHECK(second.graph.nodes().size() == 14);
  CHECK(at::allclose(first.run({counted({5, 3})})[0], counted({5, 3}).add(400)));
  CHECK(at::allclose(second.run({counted({5, 3})})[0], counted({5, 3}).add(49)));
  check_thread_is_clean();
}

TEST_CASE("a number read with item becomes a symbol that later sizes depend on") {
  const TensorFunction function = [](const Tensors& in) -> Tensors {
    const c10::SymInt count = in[0].sum().item().toSymInt();
    return {at::full_symint({count, in[1].sym_size(0)}, 2.0).add(in[1])};
  };
  const auto inputs = [](std::int64_t count, std::int64_t n) {
    return Tensors{at::full({2}, count, at::kLong), counted({n})};
  };
  const CapturedFunction captured =
      capture_function(function, {{"lengths", inputs(2, 1)[0]}, {"x", counted({3}), {"n"}}});
  CHECK(count_of(captured.graph, "aten.item") == 1);
  check_same(captured, function, [&] { return inputs(2, 3); });
  check_same(captured, function, [&] { return inputs(4, 5); });
}

TEST_CASE("an operator of a library without a meta kernel is an error where a shape is dynamic") {
  const TensorFunction function = [](const Tensors& in) -> Tensors {
    return {opaque(in[0]).add(1)};
  };
  const at::Tensor x = counted({3});
  CHECK(code_of([&] { capture_function(function, {{"x", x, {"n"}}}); }) == Code::unknown_op);
  CHECK(code_label(Code::unknown_op) == "E0201");
  check_thread_is_clean();
  const CapturedFunction captured = capture_function(function, {{"x", x}});
  CHECK(at::allclose(captured.run({x})[0], x.mul(2).add(1)));
}

TEST_CASE("our error wins over one that the function makes of it") {
  const TensorFunction function = [](const Tensors& in) -> Tensors {
    try {
      return {opaque(in[0])};
    } catch (const std::exception&) {
      throw std::runtime_error("something went wrong");
    }
  };
  CHECK(code_of([&] { capture_function(function, {{"x", counted({3}), {"n"}}}); }) ==
        Code::unknown_op);
}

TEST_CASE("inputs that make no sense are refused before the function is called") {
  bool called = false;
  const TensorFunction function = [&](const Tensors& in) -> Tensors {
    called = true;
    return in;
  };
  const at::Tensor x = counted({2, 3});
  const auto code = [&](const std::vector<NamedInput>& inputs) {
    return code_of([&] { capture_function(function, inputs); });
  };
  CHECK(code({{"x", x, {"n"}}}) == Code::bad_dynamic_shapes);
  CHECK(code({{"x", x, {"n", "n"}}}) == Code::bad_dynamic_shapes);
  CHECK(code({{"x", x, {"n", "2 b"}}}) == Code::bad_dynamic_shapes);
  CHECK(code({{"x", at::Tensor()}}) == Code::bad_input);
  CHECK(code({{"x", x}, {"x", x}}) == Code::bad_input);
  CHECK(code({{"", x}}) == Code::bad_input);
  CHECK_FALSE(called);
  const TensorFunction nothing = [](const Tensors&) { return Tensors{at::Tensor()}; };
  CHECK(code_of([&] { capture_function(nothing, {{"x", x}}); }) == Code::capture_failed);
  check_thread_is_clean();
}

}  // namespace modelport::capture
