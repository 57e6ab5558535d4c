// One capture: the graph being written, its dimensions, and who owns which memory. Everything that
// the dispatcher's fallback needs between two operator calls lives here, so captures in two threads
// do not meet.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "capture/sym_number.h"
#include "capture/traced_tensor.h"
#include "ir/graph.h"

namespace modelport::capture {

/// What the language that calls us knows: where the model's code stands, and symbols that hide in
/// plain tensors.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  virtual ir::Place place() { return {}; }
  /// `tensor + symint` reaches the dispatcher as a 0-d tensor with a made-up value; the number it
  /// stands for.
  virtual std::optional<Number> symbolic_number(const at::Tensor&) { return std::nullopt; }
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  enum class Data {
    everything,   // the whole model is computed
    inputs_only,  // what touches a parameter is computed on meta: shapes, no values
  };
  Session(std::unique_ptr<Surroundings> surroundings, Data data);

  ir::Graph& graph() { return graph_; }
  shape::Dims& dims() { return dims_; }
  Surroundings& surroundings() { return *surroundings_; }

  /// The traced tensor that the model is to be called with.
  at::Tensor add_input(const std::string& name, const at::Tensor& real,
                       std::vector<shape::Int> shape);
  /// Parameters and buffers, known by identity. A second name for the same tensor is a tie, of
  /// which only the name is kept.
  void add_weight(const std::string& name, const at::Tensor& tensor, ir::WeightKind kind);
  /// Memory that belongs to the caller and is put back by `restore` if the model writes to it.
  void protect(const at::Tensor& tensor);
  /// The model put another tensor in the place of its buffer, where the next call finds it.
  void replace_buffer(const std::string& name, const at::Tensor& tensor);
  void add_output(const std::string& name, const at::Tensor& tensor);
  void add_output(const std::string& name, const Number& number);
  /// The finished graph: symbols replaced, dead nodes dropped. Call once.
  ir::Graph finish();
  /// Undoes writes of the model to tensors of the caller.
  void restore();
  /// The bytes behind the graph's weights and constants.
  const std::vector<std::pair<ir::ValueId, at::Tensor>>& weight_tensors() const {
    return weight_tensors_;
  }

  /// Further names of weights, by the one that the graph has.
  const std::map<std::string, std::vector<std::string>>& tied_names() const { return tied_names_; }

  // --- conditions on sizes, with the place of the model's code
  ir::PlaceId place();
  shape::Dims::Place dims_place();
  bool settle(const shape::Bool& condition);
  std::int64_t pin(const shape::Int& x);
  double pin(const shape::Real& x);
  std::optional<bool> decide(const shape::Bool& condition) const { return dims_.decide(condition); }

  // --- values behind tensors
  /// The trace of a tensor that the graph knows: traced, a weight, or plain memory that traced
  /// values were written to.
  std::optional<Trace> trace_of(const at::Tensor& tensor);
  /// The graph value that holds the tensor's contents now; plain tensors become constants.
  ir::ValueId value_of(const at::Tensor& tensor);
  ir::ValueId current_value(Trace& trace);
  /// The tensor to compute with: real data, or meta where the data is unknown.
  at::Tensor real_of(const at::Tensor& tensor);
  at::Tensor wrap(at::Tensor real, Trace trace);
  /// A new value with memory of its own.
  at::Tensor wrap(at::Tensor real, ir::ValueId value);

  /// Whether a plain tensor is a weight or memory that holds traced values.
  bool knows(const at::Tensor& plain) { return owner_of(plain) != nullptr; }

  // --- writes
  /// To be called before the real bytes of a tensor change.
  void before_write(const at::Tensor& real);
  /// Plain memory that is about to get traced contents: from here on it is a value of the graph.
  void promote(const at::Tensor& plain);
  /// For a view that the graph has of plain memory: it stays plain until somebody writes to it.
  std::optional<Trace> trace_of_plain(const at::Tensor& plain);
  /// Makes plain memory that the graph has views of a value of the graph; whether it did.
  bool promote_if_viewed(const at::Tensor& plain);
  /// The contents of `tensor` become `value`: the memory's base is rebuilt through the chain of
  /// views.
  void write(const at::Tensor& tensor, ir::ValueId value);

  ir::ValueId add_node(std::string_view op, std::vector<ir::NamedArg> args, ir::TensorType type);
  [[noreturn]] void fail(Code code, std::string what, std::vector<std::string> ways_out);
  /// For questions about values that this capture does not compute.
  [[noreturn]] void fail_without_weights(std::string_view what);
  /// The first error of ours in this capture: on its way through torch and the model it may have
  /// become another.
  void keep_error(const ExportError& error) {
    if (!error_) error_ = error;
  }
  const std::optional<ExportError>& take_error() const { return error_; }

 private:
  struct Owner {
    at::Tensor tensor;
    std::shared_ptr<Memory> memory;
    std::optional<ir::ValueId> buffer;  // of the model, where writes are mutations
    at::Tensor on_meta;                 // stands for the tensor where its data is not to be used
  };
  struct KeptConstant {
    ir::ValueId value;
    std::size_t slot;  // in weight_tensors_
  };
  Owner* owner_of(const at::Tensor& plain);
  std::optional<Trace> trace_in(const Owner& owner, const at::Tensor& plain);
  Owner owner_of_plain(const at::Tensor& plain);
  /// Whether a tensor shares memory with another is part of what the program is valid for once a
  /// write made a difference of it.
  void ask_what_is_shared(const Trace& trace);
  std::optional<Trace> strided_view(const Owner& owner, const at::Tensor& plain);
  ir::ValueId constant_for(const at::Tensor& plain);
  void assume_numbers();
  /// A number or a size that the data decides and that something else took the place of: whoever
  /// gives it keeps its symbol, and a condition says what it has to be.
  struct ReplacedByData {
    ir::ValueId giver;
    std::size_t axis = 0;  // of a tensor
    shape::Guard condition;
  };
  std::vector<ReplacedByData> data_that_was_replaced() const;
  std::set<ir::ValueId> constants_that_are_true() const;
  void keep_conditions_on_data(const std::vector<ReplacedByData>& replaced);

  ir::Graph graph_;
  shape::Dims dims_;
  std::unique_ptr<Surroundings> surroundings_;
  Data data_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> owners_by_tensor_;
  std::unordered_map<const c10::StorageImpl*, std::vector<std::size_t>> owners_by_storage_;
  std::vector<Owner> owners_;
  std::map<std::string, std::vector<std::string>> tied_names_;
  std::unordered_map<const c10::StorageImpl*, Owner> viewed_;  // plain memory behind views
  std::vector<std::pair<ir::ValueId, at::Tensor>> weight_tensors_;
  std::unordered_map<const c10::StorageImpl*, std::vector<KeptConstant>> constants_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> protected_;  // memory of the caller
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;               // (tensor, contents before)
  int constant_count_ = 0;
  std::optional<ExportError> error_;
};

/// While alive, every operator called on this thread lands in the session.
class Recording {
 public:
  explicit Recording(std::shared_ptr<Session> session);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  static Session* current();

 private:
  std::shared_ptr<Session> session_;
  Session* outer_;
  bool outer_mode_;
};

/// While alive, operators of this thread run as if there were no capture.
class Paused {
 public:
  Paused();
  ~Paused();
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

 private:
  bool mode_;
};

/// The other way round, inside the recorder: operators are recorded again.
class Resumed {
 public:
  Resumed();
  ~Resumed();
  Resumed(const Resumed&) = delete;
  Resumed& operator=(const Resumed&) = delete;

 private:
  bool mode_;
};

}  // namespace modelport::capture
