// What a program brings along, for all its methods: constants, each stored once, state with its
// initial values, and what delegates take over with their data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/executorch/blob.h"
#include "base/dtype.h"
#include "weights/quantize/scheme.h"
#include "weights/sink.h"
#include "weights/store.h"
#include "weights/stream.h"

namespace modelport::executorch {

struct ConstantEntry {
  std::string key;  // of the weight; unique among constants
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape;
  Blob blob;
};

/// What `et.delegate` names: work that a backend of the runtime takes over.
struct Delegate {
  std::string backend;  // "XnnpackBackend"
  Blob payload;
  std::vector<std::pair<std::string, std::string>> compile_specs = {};
};

/// Data that delegates find by name.
struct NamedBlob {
  std::string key;
  Blob blob;
  std::string identity = {};  // of the weight that it is, as it is; ProgramData::find_constant
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
  struct Quantized {
    std::size_t codes = 0;
    std::size_t scales = 0;
    weights::QuantizedForm form;
  };
  /// The two tensors that a quantized weight is made of. Throws what quantized_form() throws.
  Quantized constants(const Source& source, const weights::Scheme& scheme);
  /// State of the same name is the same state, whichever method asks.
  std::size_t state(const Source& source);

  /// Numbers of delegates go on from those that were added.
  std::size_t add_delegate(Delegate delegate);
  /// Data that delegates find by its key, numbered; equal ones are one. With the axes in this
  /// order.
  std::size_t named(const Source& source, const std::vector<std::size_t>& order);
  std::size_t named(std::string bytes);
  Quantized named(const Source& source, const weights::Scheme& scheme);
  struct Folded {
    Source filter;
    std::optional<Source> bias, scale, shift;
    Source mean, variance;
    double eps = 0;
  };
  /// A filter with the norm behind it, its axes in this order, and the bias that goes with it.
  std::pair<std::size_t, std::size_t> named(const Folded& folded,
                                            const std::vector<std::size_t>& order);
  void add_named(NamedBlob named);

  const std::vector<ConstantEntry>& constants() const { return constants_; }
  const std::vector<StateEntry>& states() const { return states_; }
  /// Each distinct one once.
  const std::vector<Blob>& initial_values() const { return initial_values_; }
  std::uint64_t state_bytes() const { return state_bytes_; }
  const std::vector<Delegate>& delegates() const { return delegates_; }
  const std::vector<NamedBlob>& named_data() const { return named_; }
  /// The constant that has the same bytes as a named blob, if there is one.
  std::optional<std::size_t> find_constant(const NamedBlob& named) const;

 private:
  std::string identity_of(const Source& source) const;
  Blob blob_of_weight(const Source& source) const;
  std::size_t add_constant(const std::string& identity, ConstantEntry entry);
  std::size_t initial_value(const Source& source);
  std::size_t add_named(const std::string& identity, NamedBlob named);

  std::vector<weights::ConversionLoss>& losses_;
  Options options_;
  std::vector<ConstantEntry> constants_;
  std::vector<StateEntry> states_;
  std::vector<Blob> initial_values_;
  std::map<std::string, std::size_t> by_identity_;
  std::map<std::string, std::size_t> keys_;
  std::map<std::string, std::size_t> states_by_name_;
  std::map<std::string, std::size_t> initial_by_identity_;
  std::vector<Delegate> delegates_;
  std::vector<NamedBlob> named_;
  std::map<std::string, std::size_t> named_by_identity_;
  std::map<std::string, std::size_t> named_keys_;
  std::size_t zeros_ = SIZE_MAX;  // the entry of initial_values_ that is nothing but zeros
  std::uint64_t state_bytes_ = 0;
};

}  // namespace modelport::executorch
