// Fields of torch's schema for graphs and nodes, in its order.
#include "backends/pt2/graph_text.h"

namespace modelport::pt2 {
namespace {

void append_field(std::string& out, std::string_view key, std::string_view json) {
  if (!out.empty()) out += ", ";
  append_string(out, key);
  out += ": ";
  out += json;
}

}  // namespace

void append_tensor_argument(std::string& out, std::string_view name) {
  out += "{\"as_tensor\": {\"name\": ";
  append_string(out, name);
  out += "}}";
}

void append_input(std::string& inputs, std::string_view name, std::string_view arg,
                  Passing passing) {
  if (!inputs.empty()) inputs += ", ";
  inputs += "{\"name\": ";
  append_string(inputs, name);
  inputs += ", \"arg\": ";
  inputs += arg;
  inputs += passing == Passing::positional ? ", \"kind\": 1}" : ", \"kind\": 2}";
}

void GraphText::add(const NodeText& node) {
  if (!nodes_.empty()) nodes_ += ", ";
  nodes_ += "{\"target\": ";
  append_string(nodes_, node.target);
  nodes_ += ", \"inputs\": [";
  nodes_ += node.inputs;
  nodes_ += "], \"outputs\": [";
  nodes_ += node.outputs;
  nodes_ += "], \"metadata\": ";
  nodes_ += node.metadata;
  nodes_ += ", \"is_hop_single_tensor_return\": null, \"name\": ";
  append_string(nodes_, node.name);
  nodes_ += '}';
}

void GraphText::add_tensor(std::string_view name, std::string_view type_json) {
  append_field(tensors_, name, type_json);
}

void GraphText::add_number(SymKind kind, std::string_view name, std::string_view value_json) {
  std::string& values = kind == SymKind::integer ? ints_ : kind == SymKind::real ? reals_ : bools_;
  append_field(values, name, value_json);
}

std::string GraphText::finish(std::string_view inputs, std::string_view outputs) const {
  std::string text;
  text.reserve(nodes_.size() + tensors_.size() + ints_.size() + reals_.size() + bools_.size() +
               inputs.size() + outputs.size() + 300);
  text += "{\"inputs\": [";
  text += inputs;
  text += "], \"outputs\": [";
  text += outputs;
  text += "], \"nodes\": [";
  text += nodes_;
  text += "], \"tensor_values\": {";
  text += tensors_;
  text += "}, \"sym_int_values\": {";
  text += ints_;
  text += "}, \"sym_bool_values\": {";
  text += bools_;
  text +=
      "}, \"is_single_tensor_return\": false, \"custom_obj_values\": {}, \"sym_float_values\": {";
  text += reals_;
  text += "}}";
  return text;
}

}  // namespace modelport::pt2
