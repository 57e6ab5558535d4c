#include "capture/function.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "capture/session.h"

namespace modelport::capture {

namespace {

using AxisSizes = std::map<std::string, std::int64_t, std::less<>>;

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || !letter(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void check_axes(const NamedInput& input, AxisSizes& sizes, Diagnostics& found) {
  const auto add = [&found](std::string what, std::string way_out) {
    found.add({.code = Code::bad_dynamic_shapes,
               .what = std::move(what),
               .ways_out = {std::move(way_out)}});
  };
  const auto rank = static_cast<std::size_t>(input.tensor.dim());
  if (!input.axes.empty() && input.axes.size() != rank) {
    add(fmt::format("input {} has {} axes and {} axis names", input.name, rank, input.axes.size()),
        "give one name, or std::nullopt, for each axis");
    return;
  }
  for (std::size_t d = 0; d < input.axes.size(); ++d) {
    if (!input.axes[d]) continue;
    const std::string& axis = *input.axes[d];
    if (!is_identifier(axis)) {
      add(fmt::format("axis {} of input {} is named '{}'", d, input.name, axis),
          "use letters, digits and underscores: batch, seq_len");
      continue;
    }
    const std::int64_t size = input.tensor.size(static_cast<std::int64_t>(d));
    const auto [known, fresh] = sizes.emplace(axis, size);
    if (!fresh && known->second != size) {
      add(fmt::format("axis {} of input {} is {} in size, another axis named '{}' is {}", d,
                      input.name, size, axis, known->second),
          "give them different names, or an example where they are equal");
    }
  }
}

/// The dynamic axes with their sizes in the example.
AxisSizes checked(const std::vector<NamedInput>& inputs, const std::vector<NamedWeight>& weights) {
  Diagnostics found;
  AxisSizes sizes;
  std::set<std::string, std::less<>> names;
  const auto check_tensor = [&](std::string_view kind, const std::string& name,
                                const at::Tensor& tensor) {
    std::string what;
    if (name.empty()) what = fmt::format("one {} has no name", kind);
    if (!tensor.defined()) what = fmt::format("the {} {} is an undefined tensor", kind, name);
    if (!name.empty() && !names.insert(name).second)
      what = fmt::format("two tensors named {}", name);
    if (what.empty()) return true;
    found.add({.code = Code::bad_input,
               .what = std::move(what),
               .ways_out = {"give every tensor a name of its own and a value"}});
    return false;
  };
  for (const NamedInput& input : inputs) {
    if (check_tensor("input", input.name, input.tensor)) check_axes(input, sizes, found);
  }
  for (const NamedWeight& weight : weights) check_tensor("weight", weight.name, weight.tensor);
  found.throw_if_any();
  return sizes;
}

std::vector<at::Tensor> add_inputs(Session& session, const std::vector<NamedInput>& inputs,
                                   const AxisSizes& sizes) {
  for (const auto& [axis, size] : sizes) {
    session.dims().declare(axis, size, {size == 0 ? 0 : 1, shape::Range::kUnbounded});
  }
  std::vector<at::Tensor> traced;
  for (const NamedInput& input : inputs) {
    std::vector<shape::Int> shape;
    for (std::size_t d = 0; d < static_cast<std::size_t>(input.tensor.dim()); ++d) {
      const bool dynamic = !input.axes.empty() && input.axes[d].has_value();
      shape.push_back(dynamic ? shape::Int::symbol(*input.axes[d])
                              : shape::Int(input.tensor.size(static_cast<std::int64_t>(d))));
    }
    traced.push_back(session.add_input(input.name, input.tensor.detach(), std::move(shape)));
  }
  return traced;
}

/// Calls the function; while this runs, what the thread computes is recorded.
void record(const std::shared_ptr<Session>& session, const TensorFunction& function,
            const std::vector<at::Tensor>& traced) {
  const at::NoGradGuard no_grad;
  const Recording recording(session);
  const std::vector<at::Tensor> results = function(traced);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) {
      session->fail(Code::capture_failed, fmt::format("result {} is an undefined tensor", i),
                    {"return a tensor with a value, such as at::empty({0})"});
    }
    session->add_output(results.size() == 1 ? "output" : fmt::format("output.{}", i), results[i]);
  }
}

/// A name is a promise: an axis that has one may take other sizes.
void check_pinned(Session& session, const AxisSizes& sizes) {
  Diagnostics found;
  for (const auto& [axis, size] : sizes) {
    if (!session.dims().simplify(shape::Int::symbol(axis)).constant()) continue;
    found.add({.code = Code::pinned_axis,
               .what = fmt::format("the axes named '{}' were to be dynamic, but the function needs "
                                   "them to be {}",
                                   axis, size),
               .ways_out = {"give std::nullopt for their name",
                            "in the function, use x.sym_size(d) in place of x.size(d)"}});
  }
  found.throw_if_any();
}

}  // namespace

CapturedFunction capture_function(const TensorFunction& function,
                                  const std::vector<NamedInput>& inputs,
                                  const FunctionOptions& options) {
  const AxisSizes sizes = checked(inputs, options.weights);
  const auto session =
      std::make_shared<Session>(std::make_unique<Surroundings>(), Session::Data::everything);
  session->graph().name = options.name;
  const std::vector<at::Tensor> traced = add_inputs(*session, inputs, sizes);
  for (const NamedWeight& weight : options.weights) {
    session->add_weight(weight.name, weight.tensor, weight.kind);
  }
  try {
    record(session, function, traced);
  } catch (...) {
    session->restore();
    // Ours may have become another exception on its way through the function.
    if (const auto& first = session->take_error()) throw ExportError(*first);
    throw;
  }
  session->restore();
  check_pinned(*session, sizes);

  CapturedFunction captured;
  for (const auto& [value, tensor] : session->weight_tensors()) {
    captured.weights.emplace(session->graph().value(value).name, tensor.detach());
  }
  captured.graph = session->finish();
  return captured;
}

std::vector<at::Tensor> CapturedFunction::run(const std::vector<at::Tensor>& inputs) const {
  std::vector<at::Tensor> results;
  for (const OutputValue& output : run_graph({graph, weights, inputs, {}}).outputs) {
    results.push_back(std::get<at::Tensor>(output));
  }
  return results;
}

}  // namespace modelport::capture
