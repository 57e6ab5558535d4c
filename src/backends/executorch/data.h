// The tensors that a program brings along, of all its methods: constants, each stored once, and
// state with its initial values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "weights/sink.h"
#include "weights/store.h"
#include "weights/stream.h"

namespace modelport::executorch {

/// Bytes of a known length that somebody can put into a sink.
struct Blob {
  std::uint64_t bytes = 0;
  std::function<void(weights::Sink&)> write;
};
/// Borrows nothing: the text is kept.
Blob blob_of(std::string text);

struct ConstantEntry {
  std::string key;  // of the weight; unique among constants
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  Blob blob;
};

struct StateEntry {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // in the arena of state
  std::size_t initial = 0;   // into initial_values()
};

class ProgramData {
 public:
  struct Options {
    /// Large tensors in memory are compared too. Methods that are captured one by one may have
    /// copies of a weight; within one method there are none.
    bool compare_all = false;
  };
  /// `losses` is told what converting weights to the graph's type lost, when they are written.
  explicit ProgramData(std::vector<weights::ConversionLoss>& losses) : losses_(losses) {}
  ProgramData(std::vector<weights::ConversionLoss>& losses, Options options)
      : losses_(losses), options_(options) {}

  /// A tensor as the graph has it: its type there, and the weight behind it.
  struct Source {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<std::int64_t> shape;
    const weights::Weight* weight = nullptr;
  };
  /// Entries with the same contents, type and shape are one.
  std::size_t constant(const Source& source);
  std::size_t constant(Dtype dtype, std::vector<std::int64_t> shape, std::string bytes);
  /// State of the same name is the same state, whichever method asks.
  std::size_t state(const Source& source);

  const std::vector<ConstantEntry>& constants() const { return constants_; }
  const std::vector<StateEntry>& states() const { return states_; }
  /// Each distinct one once.
  const std::vector<Blob>& initial_values() const { return initial_values_; }
  std::uint64_t state_bytes() const { return state_bytes_; }

 private:
  std::string identity_of(const Source& source) const;
  Blob blob_of_weight(const Source& source) const;
  std::size_t add_constant(const std::string& identity, ConstantEntry entry);
  std::size_t initial_value(const Source& source);

  std::vector<weights::ConversionLoss>& losses_;
  Options options_;
  std::vector<ConstantEntry> constants_;
  std::vector<StateEntry> states_;
  std::vector<Blob> initial_values_;
  std::map<std::string, std::size_t> by_identity_;
  std::map<std::string, std::size_t> keys_;
  std::map<std::string, std::size_t> states_by_name_;
  std::map<std::string, std::size_t> initial_by_identity_;
  std::size_t zeros_ = SIZE_MAX;  // the entry of initial_values_ that is nothing but zeros
  std::uint64_t state_bytes_ = 0;
};

}  // namespace modelport::executorch
