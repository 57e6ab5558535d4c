#include "capture/bind_sizes.h"

#include <fmt/format.h>

#include <set>

#include "capture/torch_dtype.h"
#include "ir/text.h"

namespace modelport::capture {

using shape::Int;

bool fails(const shape::Guard& guard, const shape::Values& values) {
  try {
    return !evaluate(guard.condition, values);
  } catch (const ExportError&) {
    return false;  // a number that the data decides is not known yet
  }
}

Diagnostic broken(const shape::Guard& guard) {
  return {.code = Code::guard_failed,
          .what = "the graph was captured for inputs with " + shape::print(guard.condition),
          .where = guard.where,
          .module_path = guard.module_path,
          .ways_out = {"capture again with an example of this size"}};
}

namespace {

class SizeBinder {
 public:
  SizeBinder(const ir::Graph& graph, const std::vector<at::Tensor>& inputs)
      : graph_(graph), inputs_(inputs) {}

  shape::Values bind() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) check_kind(i);
    found_.throw_if_any();
    bind_plain_symbols();
    solve_the_rest();
    for (std::size_t i = 0; i < inputs_.size(); ++i) check_sizes(i);
    check_ranges();
    check_guards();
    found_.throw_if_any();
    return std::move(values_);
  }

 private:
  const ir::TensorType& type(std::size_t i) const {
    return graph_.value(graph_.inputs[i]).tensor();
  }
  const std::string& name(std::size_t i) const { return graph_.value(graph_.inputs[i]).name; }

  void check_kind(std::size_t i) {
    const at::Tensor& tensor = inputs_[i];
    const bool fits = from_torch(tensor.scalar_type()) == type(i).dtype &&
                      static_cast<std::size_t>(tensor.dim()) == type(i).shape.size();
    if (fits) return;
    found_.add({.code = Code::bad_input,
                .what = fmt::format("input {} is {} with {} axes, the graph takes {}", name(i),
                                    modelport::name(from_torch(tensor.scalar_type())), tensor.dim(),
                                    ir::print(ir::Type(type(i)))),
                .ways_out = {fmt::format("convert it: {0} = {0}.to(...)", name(i))}});
  }

  void bind_plain_symbols() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      for (std::size_t d = 0; d < type(i).shape.size(); ++d) {
        const auto symbol = type(i).shape[d].as_symbol();
        if (symbol)
          values_.ints.emplace(std::string(*symbol), inputs_[i].size(static_cast<std::int64_t>(d)));
      }
    }
  }

  /// Symbols that occur only inside expressions ("past + seq"), once the others are known.
  void solve_the_rest() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      for (std::size_t d = 0; d < type(i).shape.size(); ++d) {
        const Int& size = type(i).shape[d];
        std::set<std::string, std::less<>> symbols;
        shape::collect_symbols(size, symbols);
        std::string unknown;
        int unknowns = 0;
        for (const std::string& symbol : symbols) {
          if (!values_.ints.contains(symbol)) unknown = symbol, ++unknowns;
        }
        if (unknowns != 1) continue;
        const auto solved =
            shape::solve_for(size - Int(inputs_[i].size(static_cast<std::int64_t>(d))), unknown);
        if (solved) values_.ints.emplace(unknown, evaluate(*solved, values_));
      }
    }
  }

  void check_sizes(std::size_t i) {
    for (std::size_t d = 0; d < type(i).shape.size(); ++d) {
      const std::int64_t wanted = evaluate(type(i).shape[d], values_);
      const std::int64_t got = inputs_[i].size(static_cast<std::int64_t>(d));
      if (wanted == got) continue;
      found_.add(
          {.code = Code::guard_failed,
           .what = fmt::format(
               "input {} has size {} on axis {}, where the graph needs {}{}", name(i), got, d,
               wanted,
               type(i).shape[d].is_constant() ? "" : " (" + shape::print(type(i).shape[d]) + ")"),
           .ways_out = {"capture with dynamic=True, or with dynamic_shapes for this axis",
                        "captured.report() names the line of the model that pins it"}});
    }
  }

  void check_ranges() {
    for (const shape::Dim& dim : graph_.dims) {
      const auto found = values_.ints.find(dim.name);
      if (found == values_.ints.end()) continue;
      if (found->second >= dim.range.lo && found->second <= dim.range.hi) continue;
      found_.add({.code = Code::guard_failed,
                  .what = fmt::format("dimension {} is {}, the graph was captured for {} in {}",
                                      dim.name, found->second, dim.name, shape::print(dim.range)),
                  .ways_out = {"capture again with an example of this size"}});
    }
  }

  void check_guards() {
    for (const shape::Guard& guard : graph_.guards) {
      if (fails(guard, values_)) found_.add(broken(guard));
    }
  }

  const ir::Graph& graph_;
  const std::vector<at::Tensor>& inputs_;
  shape::Values values_;
  Diagnostics found_;
};

}  // namespace

shape::Values bind_sizes(const ir::Graph& graph, const std::vector<at::Tensor>& inputs) {
  if (inputs.size() != graph.inputs.size()) {
    throw ExportError(Diagnostic{.code = Code::bad_input,
                                 .what = fmt::format("{} inputs given, the graph takes {}",
                                                     inputs.size(), graph.inputs.size())});
  }
  return SizeBinder(graph, inputs).bind();
}

}  // namespace modelport::capture
