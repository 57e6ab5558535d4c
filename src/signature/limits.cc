#include "signature/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/json.h"
#include "ir/symbols.h"
#include "shape/linear.h"
#include "shape/program_dims.h"

namespace modelport::signature {
namespace {

using shape::Int;

std::string range_words(const shape::Range& range) {
  if (range.hi == shape::Range::kUnbounded) return fmt::format("{} or more", range.lo);
  if (range.lo == range.hi) return fmt::format("{}", range.lo);
  if (range.lo == shape::Range::kUnboundedBelow) return fmt::format("at most {}", range.hi);
  return fmt::format("{} to {}", range.lo, range.hi);
}

const std::vector<std::string> kAgain{"use sizes inside the limits",
                                      "export again with an example of the size that you need"};

class Binder {
 public:
  Binder(const Limits& limits, const std::vector<Sizes>& inputs)
      : limits_(limits), inputs_(inputs) {}

  shape::Values run() {
    check_ranks();
    found_.throw_if_any();
    for_each_axis([&](const LimitedInput&, std::size_t, const Int& size, std::int64_t given) {
      if (const auto symbol = size.as_symbol()) values_.ints.emplace(*symbol, given);
    });
    while (solve_one()) {
    }
    check_sizes();
    check_ranges();
    check_conditions();
    found_.throw_if_any();
    return std::move(values_);
  }

 private:
  template <class Visit>
  void for_each_axis(Visit&& visit) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const LimitedInput& input = limits_.inputs[i];
      for (std::size_t axis = 0; axis < input.shape.size(); ++axis)
        visit(input, axis, input.shape[axis], inputs_[i][axis]);
    }
  }

  void check_ranks() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const LimitedInput& input = limits_.inputs[i];
      if (inputs_[i].size() == input.shape.size()) continue;
      found_.add({.code = Code::bad_input,
                  .what = fmt::format("input {} has {} axes, and the program takes {}", input.name,
                                      inputs_[i].size(), input.shape.size()),
                  .ways_out = {fmt::format("reshape it: {0} = {0}.reshape(...)", input.name)}});
    }
  }

  /// A symbol that occurs only inside expressions ("past + seq", "8*height"), once the others are
  /// known.
  bool solve_one() {
    bool solved = false;
    for_each_axis([&](const LimitedInput&, std::size_t, const Int& size, std::int64_t given) {
      if (size.is_constant() || size.as_symbol()) return;
      std::set<std::string, std::less<>> symbols;
      shape::collect_symbols(size, symbols);
      std::erase_if(symbols, [&](const std::string& name) { return values_.ints.contains(name); });
      if (symbols.size() != 1) return;
      const std::string& name = *symbols.begin();
      const std::optional<std::int64_t> value = solved_for(size, given, name);
      if (!value) return;
      values_.ints.emplace(name, *value);
      solved = true;
    });
    return solved;
  }

  std::optional<std::int64_t> solved_for(const Int& size, std::int64_t given,
                                         const std::string& name) const {
    if (const auto linear = shape::linear_in(size, name)) {
      const std::optional<std::int64_t> known = evaluated(linear->rest);
      std::int64_t rest = 0;
      if (!known || __builtin_sub_overflow(given, *known, &rest)) return std::nullopt;
      return rest / linear->factor;  // what does not divide is found when the axis is compared
    }
    const auto solution = shape::solve_for(size - Int(given), name);
    return solution ? evaluated(*solution) : std::nullopt;
  }

  void check_sizes() {
    for_each_axis([&](const LimitedInput& input, std::size_t axis, const Int& size,
                      std::int64_t given) {
      const std::optional<std::int64_t> wanted = evaluated(size);
      if (!wanted || *wanted == given) return;
      const std::string form = size.is_constant() ? "" : fmt::format(" ({})", shape::print(size));
      found_.add({.code = Code::guard_failed,
                  .what = fmt::format("input {} has size {} on axis {}, and the program takes {}{}",
                                      input.name, given, axis, *wanted, form),
                  .ways_out = {"export with this axis dynamic: dynamic=True, or dynamic_shapes",
                               "captured.report() names the line of the model that pins it"}});
    });
  }

  std::optional<std::int64_t> evaluated(const Int& size) const {
    try {
      return shape::evaluate(size, values_);
    } catch (const ExportError&) {
      return std::nullopt;  // a symbol that no axis tells
    }
  }

  void check_ranges() {
    for (const shape::Dim& dim : limits_.dims) {
      const auto value = values_.ints.find(dim.name);
      if (value == values_.ints.end()) continue;
      const bool below = value->second < dim.range.lo;
      if (!below && value->second <= dim.range.hi) continue;
      found_.add({.code = Code::guard_failed,
                  .what = fmt::format("{} is {}{}, and the program is right for {}", dim.name,
                                      value->second, axis_words(dim.name), range_words(dim.range)),
                  .where = below ? dim.lo_where : dim.hi_where,
                  .ways_out = kAgain});
    }
  }

  std::string axis_words(std::string_view symbol) {
    std::string words;
    for_each_axis([&](const LimitedInput& input, std::size_t axis, const Int& size, std::int64_t) {
      if (words.empty() && size.as_symbol() == symbol)
        words = fmt::format(" (axis {} of input {})", axis, input.name);
    });
    return words;
  }

  void check_conditions() {
    for (const shape::Guard& guard : limits_.conditions) {
      try {
        if (!shape::evaluate(guard.condition, values_))
          found_.add(broken_condition(guard, values_));
      } catch (const ExportError&) {
        continue;  // a symbol that no axis tells
      }
    }
  }

  const Limits& limits_;
  const std::vector<Sizes>& inputs_;
  shape::Values values_;
  Diagnostics found_;
};

std::string line_words(const SourceLine& where) {
  return where.known() ? fmt::format("  ({}:{})", where.file, where.line) : "";
}

std::string value_words(const Constant& constant) {
  if (const auto* truth = std::get_if<bool>(&constant.value)) return *truth ? "True" : "False";
  if (const auto* integer = std::get_if<std::int64_t>(&constant.value))
    return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&constant.value)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&constant.value)) return quote_text(*text);
  return "None";
}

}  // namespace

shape::Bool range_condition(const shape::Dim& dim) {
  const Int symbol = Int::symbol(dim.name);
  shape::Bool condition(true);
  if (dim.range.lo != shape::Range::kUnboundedBelow)
    condition = shape::Bool::compare(shape::Compare::ge, symbol, Int(dim.range.lo));
  if (dim.range.hi != shape::Range::kUnbounded)
    condition = condition && shape::Bool::compare(shape::Compare::le, symbol, Int(dim.range.hi));
  return condition;
}

Limits limits_of(const ir::Graph& graph) {
  Limits limits;
  ir::Mentions of_inputs;
  for (const ir::ValueId id : graph.inputs) {
    const ir::Value& value = graph.value(id);
    ir::collect(value.type, of_inputs);
    const auto* tensor = std::get_if<ir::TensorType>(&value.type);
    if (tensor != nullptr) limits.inputs.push_back({value.name, tensor->dtype, tensor->shape});
  }
  for (const shape::Dim& dim : graph.dims) {
    if (of_inputs.sizes.contains(dim.name)) limits.dims.push_back(dim);
  }
  for (const shape::Guard& guard : graph.guards) {
    if (!shape::depends_on_data(guard.condition, graph.dims)) limits.conditions.push_back(guard);
  }
  return limits;
}

shape::Values bind_sizes(const Limits& limits, const std::vector<Sizes>& inputs) {
  if (inputs.size() != limits.inputs.size()) {
    throw ExportError(Diagnostic{.code = Code::bad_input,
                                 .what = fmt::format("{} inputs given, and the program takes {}",
                                                     inputs.size(), limits.inputs.size())});
  }
  return Binder(limits, inputs).run();
}

Diagnostic broken_condition(const shape::Guard& condition, const shape::Values& values) {
  std::set<std::string, std::less<>> symbols;
  shape::collect_symbols(condition.condition, symbols);
  std::string here;
  for (const std::string& name : symbols) {
    const auto value = values.ints.find(name);
    if (value == values.ints.end()) continue;
    here += fmt::format("{}{} is {}", here.empty() ? ", and here " : ", ", name, value->second);
  }
  return {.code = Code::guard_failed,
          .what = fmt::format("the program is right where {}{}", shape::print(condition.condition),
                              here),
          .where = condition.where,
          .module_path = condition.module_path,
          .ways_out = kAgain};
}

std::vector<std::string> in_words(const Limits& limits) {
  std::vector<std::string> lines;
  for (const shape::Dim& dim : limits.dims) {
    const bool open = dim.range.hi == shape::Range::kUnbounded;
    if (open && dim.range.lo <= 1) continue;
    lines.push_back(fmt::format("{} is {}{}", dim.name, range_words(dim.range),
                                line_words(open ? dim.lo_where : dim.hi_where)));
  }
  for (const shape::Guard& guard : limits.conditions)
    lines.push_back(shape::print(guard.condition) + line_words(guard.where));
  for (const DataCheck& check : limits.checks)
    lines.push_back(check.what + line_words(check.where));
  for (const FrozenArgument& frozen : limits.frozen) {
    if (!std::holds_alternative<std::monostate>(frozen.value.value))
      lines.push_back(fmt::format("{} stays {}", frozen.name, value_words(frozen.value)));
  }
  for (const StateSlot& slot : limits.state)
    lines.push_back(fmt::format("{} is kept from call to call: feed it with what {} was",
                                slot.input, slot.output));
  return lines;
}

}  // namespace modelport::signature
