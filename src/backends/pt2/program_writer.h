// models/model.json: the nodes of the graph, the types of their values, and what is an input, a
// weight, an output.
#pragma once

#include <string>
#include <vector>

#include "backends/pt2/arguments.h"
#include "backends/pt2/graph_text.h"
#include "backends/pt2/sym_nodes.h"
#include "backends/pt2/symbols.h"
#include "backends/pt2/writer.h"
#include "ops/table/schema.h"

namespace modelport::pt2 {

/// The type of a dense tensor. `sizes` may introduce symbols, so types are written in the order
/// torch reads them.
std::string tensor_type_json(const ir::TensorType& type, Symbols& symbols, std::string_view device);

class ProgramWriter {
 public:
  explicit ProgramWriter(const Pt2Request& request);
  std::string write();

 private:
  // program_inputs.cc
  void add_weights();
  void add_inputs();
  void add_constant(const signature::Leaf& leaf);
  void add_input(ir::ValueId id);
  void add_input_checks();
  void add_guards();
  void add_assumptions();
  // program_outputs.cc
  void add_outputs();
  void add_mutations();
  void add_output(const ir::Arg& arg);
  void add_output(const signature::Constant& constant);
  std::vector<ir::Mutation> written_inputs() const;
  std::string safe_from_writes(ir::ValueId id);
  std::string copied(ir::ValueId id);
  std::string module_call_json() const;
  std::string origin_json() const;
  // program_writer.cc
  void add_node(const ir::Node& node);
  void append_inputs(NodeText& text, const ir::Node& node, const ops::Schema* schema);
  ir::Arg with_rest(const ir::Node& node, const ir::Arg& given) const;
  void append_outputs(NodeText& text, const ir::Node& node, const ops::Schema* schema);
  void name_result(ir::ValueId id, std::string name);
  const std::string& metadata(ir::PlaceId place);
  std::string ranges_json() const;

  const Pt2Request& request_;
  const ir::Graph& graph_;
  Symbols symbols_;
  GraphText text_{request_.device};
  SymNodes numbers_{text_, symbols_};
  std::vector<std::string> names_;  // by value
  Arguments arguments_;
  ir::Arg device_{request_.device};
  std::vector<std::string> metadata_;  // by place
  std::vector<bool> guard_written_;
  shape::Ranges ranges_;
  std::string inputs_;
  std::string input_specs_;
  std::string outputs_;
  std::string output_specs_;
};

}  // namespace modelport::pt2
