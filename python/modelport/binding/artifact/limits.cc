#include "binding/artifact/limits.h"

#include <pybind11/stl.h>

#include "signature/limits.h"

namespace modelport::binding {

namespace py = pybind11;

namespace {

using signature::Limits;

/// Raises ExportError (E0304) where the sizes, one list for each input, are outside the limits.
void check(const Limits& limits, const std::vector<std::vector<std::int64_t>>& sizes) {
  const std::vector<signature::Sizes> spans(sizes.begin(), sizes.end());
  signature::bind_sizes(limits, spans);
}

py::dict ranges(const Limits& limits) {
  py::dict rows;
  for (const shape::Dim& dim : limits.dims) {
    const bool open = dim.range.hi == shape::Range::kUnbounded;
    rows[py::str(dim.name)] =
        py::make_tuple(dim.range.lo, open ? py::object(py::none()) : py::int_(dim.range.hi));
  }
  return rows;
}

py::list frozen(const Limits& limits) {
  py::list rows;
  for (const signature::FrozenArgument& argument : limits.frozen) {
    const py::object value = std::visit(
        [](const auto& x) -> py::object {
          if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::monostate>)
            return py::none();
          else
            return py::cast(x);
        },
        argument.value.value);
    rows.append(py::make_tuple(argument.name, value));
  }
  return rows;
}

py::list checks(const Limits& limits) {
  py::list rows;
  for (const signature::DataCheck& check : limits.checks) {
    py::dict row;
    row["output"] = check.output;
    row["what"] = check.what;
    row["file"] = check.where.file;
    row["line"] = check.where.line;
    row["function"] = check.where.function;
    row["module"] = check.module_path;
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_limits(py::module_& module) {
  py::class_<Limits>(module, "Limits")
      .def(py::init([](const std::string& json) { return signature::parse_limits(json); }))
      .def("check", &check)
      .def("words", &signature::in_words)
      .def("ranges", &ranges)
      .def("frozen", &frozen)
      .def("checks", &checks)
      .def("inputs",
           [](const Limits& limits) {
             std::vector<std::string> names;
             for (const auto& input : limits.inputs) names.push_back(input.name);
             return names;
           })
      .def("conditions",
           [](const Limits& limits) {
             std::vector<std::string> conditions;
             for (const shape::Guard& guard : limits.conditions)
               conditions.push_back(shape::print(guard.condition));
             return conditions;
           })
      .def("state", [](const Limits& limits) {
        std::vector<std::pair<std::string, std::string>> slots;
        for (const auto& slot : limits.state) slots.emplace_back(slot.input, slot.output);
        return slots;
      });
}

}  // namespace modelport::binding
