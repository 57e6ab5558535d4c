// What lowering to every target has in common: it walks the graph, translates arguments, collects
// problems. A target says what becomes of inputs, weights, results and the rest of the program.
#pragma once

#include <vector>

#include "base/error.h"
#include "ops/emit/emitter.h"

namespace modelport::passes {

class Lowering {
 public:
  explicit Lowering(const ir::Graph& source);
  virtual ~Lowering() = default;
  Lowering(const Lowering&) = delete;
  Lowering& operator=(const Lowering&) = delete;

  ir::Graph run();

 protected:
  virtual ops::emit::Emitter& emitter() = 0;
  /// Before the node of this number is lowered.
  virtual void begin(std::size_t) {}
  virtual void add_input(ir::ValueId id) = 0;
  virtual void add_weight(ir::ValueId id) = 0;
  /// A value of the target that stands for a number from here on.
  virtual void take_number(const ir::ScalarType& symbol, ir::ValueId value) = 0;
  /// Outputs, what a run leaves behind, conditions.
  virtual void finish() = 0;

  /// Complex numbers lie in memory as pairs of reals, which is how targets take them.
  static ir::TensorType as_stored(ir::TensorType type);
  /// The value itself, or the pairs that a complex one is.
  ir::ValueId stored_value(ir::ValueId value);
  /// Complex numbers are pairs from here on: the nodes that said so go.
  void drop_pair_views();
  /// Which nodes of the target that leaves.
  virtual void nodes_kept(const std::vector<bool>&) {}

  const ir::Graph& source() const { return source_; }
  ir::Graph& target() { return target_; }
  shape::Dims& dims() { return dims_; }
  ir::ValueId value_of(ir::ValueId id) const { return value_of_[id.index]; }
  void set_value(ir::ValueId id, ir::ValueId value) { value_of_[id.index] = value; }
  ir::Arg translate(const ir::Arg& arg) const;

 private:
  void lower_node(const ir::Node& node);
  void take(ir::ValueId result, ir::ValueId value);
  [[noreturn]] void refuse(const ir::Node& node, std::string_view why);
  bool mentions_missing(const ir::Node& node) const;

  const ir::Graph& source_;
  ir::Graph target_;
  shape::Dims dims_;
  std::vector<ir::ValueId> value_of_;
  Diagnostics problems_;
};

}  // namespace modelport::passes
