// The state of emit(): private to this room.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "backends/executorch/emit.h"
#include "backends/executorch/numbers.h"
#include "backends/executorch/value_table.h"

namespace modelport::executorch {

class Emitter {
 public:
  Emitter(const MethodSource& source, const EmitOptions& options, ProgramData& data);
  Method run();

 private:
  void find_last_uses();
  void inputs();
  void outputs();
  void mutations();

  void node(std::size_t at, const ir::Node& node);
  void kernel(std::size_t at, const ir::Node& node, const std::string& name);
  void view(const ir::Node& node);
  void delegate(const ir::Node& node);
  /// The nodes of XNNPACK from `begin` on, up to `end`.
  void delegate(std::size_t begin, std::size_t end);
  void call_delegate(std::size_t number, std::vector<Index> args, std::vector<Index> outs);
  void constant(const ir::Node& node);
  void quantize(const ir::Node& node);
  void number(const ir::Node& node, const std::string& name, std::vector<Index> args);
  void in_place(std::size_t at, const ir::Node& node, const std::string& name,
                std::vector<Index> args);

  Index value(ir::ValueId id);
  Index weight(ir::ValueId id);
  ProgramData::Source weight_source(ir::ValueId id) const;
  Index argument(const ir::NamedArg& named);
  Index scalar_argument(const ir::Arg& arg);
  Index list(const ir::NamedArg& named, const ir::ArgList& items);
  Index tensor_list(const ir::NamedArg& named, const ir::ArgList& items);
  Index number_list(const ir::ArgList& items);
  std::vector<Index> results(const ir::Node& node);
  Tensor tensor_of(const ir::TensorType& type, ir::PlaceId place);
  Index clone(Index tensor);
  /// The tensor stands for the value from here on.
  void define(ir::ValueId id, Index index);
  bool is_used_by_kernels(const ir::Node& node) const;
  bool is_needed_after(std::size_t at, std::size_t storage) const;
  [[noreturn]] void refuse(const ir::Node& node, std::string why) const;

  const MethodSource& source_;
  const ir::Graph& graph_;
  const EmitOptions& options_;
  ProgramData& data_;
  Method method_;
  ValueTable table_;
  Bounds bounds_;
  RuntimeNumbers numbers_;
  std::vector<Index> index_of_;         // by value of the graph; -1: not there yet
  std::vector<std::size_t> last_use_;   // by value of the graph: the node; SIZE_MAX: an output
  std::vector<std::size_t> needed_to_;  // by storage: the last use of any value in it
  std::vector<bool> used_by_kernels_;   // by value of the graph: or an output
  std::unordered_set<std::uint32_t> state_;
};

}  // namespace modelport::executorch
