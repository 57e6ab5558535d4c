// The kinds of arguments that torch's schema knows.
#include "backends/pt2/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/pt2/torch_numbers.h"
#include "base/error.h"

namespace modelport::pt2 {
namespace {

std::string_view without_optional(std::string_view type) {
  if (type.ends_with('?')) type.remove_suffix(1);
  return type;
}

}  // namespace

void append_device(std::string& out, std::string_view device) {
  const std::size_t colon = device.find(':');
  out += "{\"type\": ";
  append_string(out, device.substr(0, colon));
  out += ", \"index\": ";
  out += colon == std::string_view::npos ? std::string_view("null") : device.substr(colon + 1);
  out += '}';
}

bool Arguments::is_tensor(const ir::Arg& arg) const {
  const ir::ValueId* id = arg.get<ir::ValueId>();
  return id != nullptr && std::holds_alternative<ir::TensorType>(graph_.value(*id).type);
}

std::optional<SymOperand> Arguments::number(const ir::Arg& arg) {
  if (const bool* x = arg.get<bool>()) return SymOperand{boolean_expr(*x), ""};
  if (const double* x = arg.get<double>()) return SymOperand{real_expr(*x), ""};
  if (const auto* x = arg.get<shape::Int>()) return numbers_.operand(*x);
  if (const auto* x = arg.get<shape::Real>()) return numbers_.operand(to_tree(*x, kinds_));
  if (const auto* x = arg.get<shape::Bool>()) return numbers_.operand(to_tree(*x, kinds_));
  if (const auto* id = arg.get<ir::ValueId>()) {
    const auto* scalar = std::get_if<ir::ScalarType>(&graph_.value(*id).type);
    if (scalar == nullptr) return std::nullopt;
    const SymExpr symbol =
        std::visit([&](const auto& x) { return to_tree(x, kinds_); }, scalar->symbol);
    return SymOperand{symbol, names_[id->index]};
  }
  return std::nullopt;
}

void Arguments::append(std::string& out, const ir::Arg& arg, std::string_view type) {
  type = without_optional(type);
  if (arg.is_none()) {
    out += "{\"as_none\": true}";
  } else if (is_tensor(arg)) {
    append_tensor_argument(out, names_[arg.get<ir::ValueId>()->index]);
  } else if (const auto* list = arg.get<ir::ArgList>()) {
    append_list(out, *list, type);
  } else if (const auto* word = arg.get<std::string>()) {
    append_word(out, *word, type);
  } else if (const auto* dtype = arg.get<Dtype>()) {
    out += fmt::format("{{\"as_scalar_type\": {}}}", scalar_type(*dtype));
  } else {
    SymOperand operand = number(arg).value();
    if (type == "float" && operand.name.empty() && operand.value.kind == SymKind::integer) {
      operand.value = real_expr(static_cast<double>(operand.value.integer));
    }
    operand.append_argument(out);
  }
}

void Arguments::append_word(std::string& out, const std::string& word, std::string_view type) {
  if (type == "Device") {
    out += "{\"as_device\": ";
    append_device(out, word);
    out += '}';
    return;
  }
  if (type == "MemoryFormat") {
    const auto row = std::ranges::find(kMemoryFormats, std::string_view(word),
                                       &std::pair<std::string_view, int>::first);
    if (row == kMemoryFormats.end()) throw InternalError("no memory format " + word);
    out += fmt::format("{{\"as_memory_format\": {}}}", row->second);
    return;
  }
  if (type == "Layout") {
    out += fmt::format("{{\"as_layout\": {}}}", kStrided);
    return;
  }
  out += "{\"as_string\": ";
  append_string(out, word);
  out += '}';
}

void Arguments::append_list(std::string& out, const ir::ArgList& list, std::string_view type) {
  const bool tensors =
      type.starts_with("Tensor") ||
      std::ranges::any_of(list, [&](const ir::Arg& item) { return is_tensor(item); });
  if (tensors) return append_tensors(out, list);
  const bool words = std::ranges::any_of(
      list, [](const ir::Arg& item) { return item.get<std::string>() != nullptr; });
  if (!words) return append_numbers(out, list, type.starts_with("float"));
  out += "{\"as_strings\": [";
  JsonItems items(out);
  for (const ir::Arg& item : list) append_string(items.next(), *item.get<std::string>());
  out += "]}";
}

void Arguments::append_tensors(std::string& out, const ir::ArgList& list) {
  const bool holes = std::ranges::any_of(list, [](const ir::Arg& item) { return item.is_none(); });
  out += holes ? "{\"as_optional_tensors\": [" : "{\"as_tensors\": [";
  JsonItems items(out);
  for (const ir::Arg& item : list) {
    std::string& text = items.next();
    if (item.is_none()) {
      text += "{\"as_none\": true}";
      continue;
    }
    const ir::ValueId* id = item.get<ir::ValueId>();
    if (id == nullptr) throw InternalError("a number in a list of tensors");
    if (holes) {
      append_tensor_argument(text, names_[id->index]);
    } else {
      text += "{\"name\": ";
      append_string(text, names_[id->index]);
      text += '}';
    }
  }
  out += "]}";
}

void Arguments::append_numbers(std::string& out, const ir::ArgList& list, bool floats) {
  std::vector<SymOperand> operands;
  for (const ir::Arg& item : list) {
    auto operand = number(item);
    if (!operand) throw InternalError("a list of things that are neither tensors nor numbers");
    operands.push_back(std::move(*operand));
  }
  const auto is = [&](SymKind kind) {
    return std::ranges::any_of(operands, [&](const SymOperand& x) { return x.value.kind == kind; });
  };
  const bool real = floats || is(SymKind::real);
  const bool boolean = !real && is(SymKind::boolean);
  if (real) {
    for (SymOperand& x : operands) {
      if (x.name.empty() && x.value.kind == SymKind::integer)
        x.value = real_expr(static_cast<double>(x.value.integer));
    }
  }
  const bool symbolic =
      std::ranges::any_of(operands, [](const SymOperand& x) { return !x.name.empty(); });
  out += fmt::format("{{\"as_{}{}\": [", symbolic ? "sym_" : "",
                     real      ? "floats"
                     : boolean ? "bools"
                               : "ints");
  JsonItems items(out);
  for (const SymOperand& x : operands) {
    std::string& text = items.next();
    if (symbolic) {
      x.append_item(text);
    } else if (real) {
      append_float(text, x.value.real);
    } else if (boolean) {
      text += x.value.integer != 0 ? "true" : "false";
    } else {
      append_integer(text, x.value.integer);
    }
  }
  out += "]}";
}

}  // namespace modelport::pt2
