// Captures a lambda over at::Tensors, prints its graph, and runs the graph at a size that the
// example did not have.
#include <ATen/ATen.h>

#include <iostream>

#include "capture/function.h"
#include "ir/text.h"

namespace {

using Tensors = std::vector<at::Tensor>;

/// A layer that writes in place and through a view, as eager code does.
Tensors attend(const Tensors& in, const at::Tensor& weight) {
  at::Tensor scores = at::linear(in[0], weight);
  scores.select(-1, 0).mul_(0.5);
  return {at::softmax(scores, -1) + in[1]};
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() ? (a - b).abs().max().item<double>() : 1e9;
}

int run() {
  using modelport::capture::capture_function;
  const at::Tensor weight = at::rand({8, 4});
  const auto function = [&](const Tensors& in) { return attend(in, weight); };

  // Axes with a name are dynamic, and equal names are equal sizes.
  const auto captured = capture_function(
      function,
      {{"x", at::rand({2, 3, 4}), {"batch", "seq", {}}}, {"bias", at::rand({3, 8}), {"seq", {}}}},
      {.name = "attend", .weights = {{"weight", weight}}});
  std::cout << modelport::ir::print(captured.graph) << "\n";

  const Tensors other{at::rand({5, 7, 4}), at::rand({7, 8})};
  const double difference = largest_difference(captured.run(other)[0], function(other)[0]);
  std::cout << "batch 5, seq 7: largest difference from eager " << difference << "\n";
  return difference < 1e-6 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {  // ExportError says what is wrong, where, and a way out
    std::cerr << error.what() << "\n";
    return 1;
  }
}
