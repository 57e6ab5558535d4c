// Every row of the operator table against libtorch: its schema, and its shape rule on each of its
// samples at several sizes.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "capture/interpreter.h"
#include "capture/op_facts.h"
#include "capture/torch_dtype.h"
#include "ir/text.h"
#include "ops/executorch/kernels.h"
#include "ops/table/sample.h"

namespace modelport::capture {

namespace {

at::Tensor drawn(const ir::TensorType& type, const ops::TensorDraw& draw,
                 const shape::Bindings& sizes) {
  std::vector<std::int64_t> shape;
  for (const shape::Int& size : type.shape) shape.push_back(shape::evaluate(size, sizes));
  if (is_integral(type.dtype) || type.dtype == Dtype::boolean) {
    return at::randint(0, type.dtype == Dtype::boolean ? 2 : draw.below, shape)
        .to(to_torch(type.dtype));
  }
  if (is_complex(type.dtype))
    return at::rand(shape, at::TensorOptions().dtype(to_torch(type.dtype)));
  return at::rand(shape).to(to_torch(type.dtype));
}

std::string printed(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string text = std::string(name(from_torch(tensor.scalar_type()))) + "[";
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    text += (d ? ", " : "") + std::to_string(tensor.size(d));
  return text + "]";
}

std::string printed(const ir::Type& type, const shape::Dims& dims) {
  if (std::holds_alternative<ir::ScalarType>(type)) return "a number";
  const auto& tensor = std::get<ir::TensorType>(type);
  std::string text = std::string(name(tensor.dtype)) + "[";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    text += (d ? ", " : "") + std::to_string(dims.hint(tensor.shape[d]));
  }
  return text + "]";
}

/// A row may write `dim=-1` where the schema has `int[1] dim`, as Python callers do.
std::vector<ir::NamedArg> with_lists(const ops::OpDef& op, std::vector<ir::NamedArg> args) {
  const c10::OperatorHandle handle = find_operator(op.name);
  for (ir::NamedArg& named : args) {
    const auto index = handle.schema().argumentIndexWithName(named.name);
    if (!index || named.arg.get<shape::Int>() == nullptr) continue;
    const auto count = handle.schema().arguments()[static_cast<std::size_t>(*index)].N();
    if (count) named.arg = ir::Arg{ir::ArgList(static_cast<std::size_t>(*count), named.arg)};
  }
  return args;
}

/// Runs the sample in libtorch through a graph of one node.
std::vector<at::Tensor> run_sample(const ops::OpDef& op, const ops::Sample& sample,
                                   const shape::Bindings& sizes) {
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < sample.graph.inputs.size(); ++i) {
    const ir::Value& input = sample.graph.value(sample.graph.inputs[i]);
    inputs.push_back(drawn(input.tensor(), sample.draws[i], sizes));
  }
  ir::Graph graph = sample.graph;
  graph.dims = sample.dims.all();
  // One more input has every symbol as an axis: some occur only in arguments, or inside sums.
  std::vector<shape::Int> symbols;
  std::vector<std::int64_t> numbers;
  for (const shape::Dim& dim : graph.dims) {
    symbols.push_back(shape::Int::symbol(dim.name));
    numbers.push_back(dim.hint);
  }
  graph.add_input("every symbol", ir::TensorType{Dtype::f32, symbols});
  inputs.push_back(at::zeros({}).expand(numbers));
  std::vector<at::Tensor> results;
  run_operator(op.name, graph, with_lists(op, sample.args), inputs, results);
  return results;
}

/// Where the rule and torch differ on this sample; empty where they agree.
std::string problem_of(const ops::OpDef& op, ops::Sample& sample, const shape::Bindings& sizes) {
  std::vector<at::Tensor> results;
  try {
    results = run_sample(op, sample, sizes);
  } catch (const std::exception& error) {
    return fmt::format("torch does not run it: {}", error.what());
  }
  std::vector<std::vector<std::int64_t>> observed;
  for (const at::Tensor& t : results) {
    observed.push_back(t.defined() ? t.sizes().vec() : std::vector<std::int64_t>{0});
  }
  ops::Results types;
  try {
    const ops::Call::Site site{.graph = sample.graph,
                               .dims = sample.dims,
                               .place = {},
                               .observed = observed,
                               .result_count = results.size()};
    types = ops::infer(op, sample.args, site);
  } catch (const std::exception& error) {
    return fmt::format("the rule throws: {}", error.what());
  }
  // item, is_nonzero, equal, allclose: a number is read out of a tensor, and it has no shape.
  const bool number = types.size() == 1 && std::holds_alternative<ir::ScalarType>(types[0]);
  if (number && results.empty()) return {};
  if (types.size() != results.size()) {
    return fmt::format("{} results by the rule, {} in torch", types.size(), results.size());
  }
  std::string text;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string ours = printed(types[i], sample.dims);
    const std::string theirs = printed(results[i]);
    if (ours != theirs) {
      text += fmt::format("result {} is {} by the rule, {} in torch; ", i, ours, theirs);
    }
  }
  return text;
}

/// Operators of other libraries are there only where Python has imported them; their rows are
/// tested from there.
bool in_torch(const ops::OpDef& op) { return op.name.starts_with("aten."); }

}  // namespace

TEST_CASE("every row has the schema that torch has") {
  for (const ops::OpDef* op : ops::all_ops()) {
    if (!in_torch(*op)) continue;
    const c10::OperatorHandle handle = find_operator(op->name);
    const std::string text = fmt::format("{}", c10::toString(handle.schema()));
    const std::string theirs = text.substr(text.find('('));
    CHECK_MESSAGE(theirs == op->schema, op->name);
  }
}

namespace {

/// "self: Tensor, dim: int[]?", but for what a kernel sees in the tensor that it writes to.
std::string operands_of(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  const bool makes_tensor = std::any_of(arguments.begin(), arguments.end(),
                                        [](const auto& a) { return a.name() == "layout"; });
  std::string text;
  for (const c10::Argument& argument : arguments) {
    const std::string& name = argument.name();
    const bool told = makes_tensor && (name == "dtype" || name == "layout" || name == "device" ||
                                       name == "pin_memory");
    if (!argument.is_out() && !told) text += name + ": " + argument.type()->str() + ", ";
  }
  return text;
}

}  // namespace

TEST_CASE("the kernel of ExecuTorch that serves a row takes what the row takes") {
  for (const ops::OpDef* op : ops::all_ops()) {
    const std::string kernel(ops::executorch::kernel_of(*op));
    if (!kernel.starts_with("aten::") || !in_torch(*op)) continue;
    const auto handle = find_operator("aten." + kernel.substr(std::string("aten::").size()));
    CHECK_MESSAGE(operands_of(handle.schema()) == operands_of(find_operator(op->name).schema()),
                  op->name, " ", kernel);
  }
}

TEST_CASE("every shape rule gives the types that torch gives, at several sizes") {
  at::manual_seed(0);
  for (const ops::OpDef* op : ops::all_ops()) {
    if (!in_torch(*op)) continue;
    for (const shape::Bindings& sizes : ops::sample_sizes(*op)) {
      for (ops::Sample& sample : ops::samples_of(*op, sizes)) {
        const std::string problem = problem_of(*op, sample, sizes);
        CHECK_MESSAGE(problem.empty(), op->name, " ", sample.text, ": ", problem);
      }
    }
  }
}

}  // namespace modelport::capture
