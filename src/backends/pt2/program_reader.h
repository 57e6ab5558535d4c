// models/model.json as a graph: types from the tables of values, numbers from their expressions
// instead of from the nodes that compute them, in-place writes as new values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/pt2/origin.h"
#include "backends/pt2/sym_expr.h"
#include "backends/pt2/treespec.h"
#include "base/error.h"
#include "base/json.h"
#include "ir/graph.h"
#include "ops/table/schema.h"
#include "signature/signature.h"

namespace modelport::pt2 {

class ProgramReader {
 public:
  explicit ProgramReader(const Json& program);
  /// Throws ExportError; Json::exception where the text does not follow torch's schema.
  void read();

  ir::Graph graph;
  signature::Signature signature;

 private:
  /// The tables of one graph (subgraphs have their own).
  struct Tables {
    const Json* tensors = nullptr;
    const Json* ints = nullptr;
    const Json* reals = nullptr;
    const Json* bools = nullptr;
  };
  /// What a name stands for in one graph.
  using Scope = std::unordered_map<std::string, ir::Arg>;

  // program_reader.cc
  void read_origin(const Json& module);
  void read_inputs(const Json& graph_json, const Json& specs);
  void read_input(const Json& arg, const std::string& name);
  void read_weight(const std::string& kind, const Json& spec);
  void read_outputs(const Json& outputs, const Json& specs);
  void read_mutation(const std::string& kind, const Json& spec);
  void read_call(const Json& entry);
  void order_weights();
  void finish();
  void unsupported(std::string what, ir::PlaceId place = {},
                   std::vector<std::string> ways_out = {});
  ir::ValueId define(const std::string& name, ir::ValueId id);

  // node_reader.cc
  void read_nodes(const Json& nodes);
  void read_node(const Json& node);
  void read_operator(std::string_view target, const Json& node);
  void read_wrapped(const Json& node);
  bool read_in_place(std::string op, std::vector<ir::NamedArg> args, const Json& node,
                     ir::PlaceId place);
  void add_node(std::string op, std::vector<ir::NamedArg> args, const Json& node,
                ir::PlaceId place);
  std::vector<std::string> result_names(const Json& outputs) const;
  ir::Type result_type(const std::string& name);
  ir::PlaceId place_of(const Json& metadata);

  // argument_reader.cc
  std::vector<ir::NamedArg> arguments(const std::string& op, const Json& inputs, ir::PlaceId place);
  std::optional<ir::Arg> argument(const Json& arg, ir::PlaceId place);
  ir::Arg number(const Json& json, std::string_view plain);
  template <class Read>
  ir::Arg list(const Json& items, Read read) {
    ir::ArgList args;
    for (const Json& item : items) args.push_back(read(item));
    return {std::move(args)};
  }
  const ir::Arg& named(const Json& json);

  // symbol_reader.cc
  void read_symbols(const Json& ranges, const Json& nodes);
  SymExpr symbol(std::string_view torch_name);
  const SymExpr& expression(const std::string& text);
  SymExpr value(const Json& json);
  ir::TensorType tensor_type(const Json& meta);
  ir::Arg number_value(const std::string& name);
  void declare_dims();

  const Json& program_;
  Tables tables_;
  Scope scope_;
  Diagnostics problems_;
  CallNames input_names_;
  std::optional<Origin> origin_;
  std::unordered_map<std::string, std::string> symbol_names_;  // torch's to the graph's
  std::unordered_set<std::string> truth_symbols_;              // torch's names of bools from data
  std::unordered_map<std::string, shape::Range> ranges_;       // by torch's name
  std::unordered_map<std::string, std::int64_t> hints_;        // the same
  std::vector<std::string> symbols_;                           // torch's names, as they occur
  std::unordered_set<std::string> symbols_seen_;
  std::unordered_map<std::string, SymExpr> expressions_;  // by text
  std::unordered_map<std::uint32_t, int> sharers_;  // values by how many views share their memory
  std::unordered_map<std::uint32_t, ir::ValueId> memory_;  // of a view: the value it is a view of
  std::unordered_map<std::uint32_t, ir::ValueId>
      written_;  // of a changed value: the weight or input it was
};

}  // namespace modelport::pt2
