// Quantized weights on their way to a file: rows in pieces, on all cores, in the layout that a
// runtime takes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "weights/quantize/error_feedback.h"
#include "weights/quantize/scheme.h"
#include "weights/sink.h"
#include "weights/store.h"

namespace modelport::weights {

/// Where the tensors of a QuantizedForm go. One that is null is left out: a writer that puts them
/// one after the other keeps the small ones in a MemorySink, or quantizes once for each.
struct QuantizedSinks {
  Sink* codes = nullptr;
  Sink* scales = nullptr;
  Sink* zero_points = nullptr;
};

struct QuantizeOptions {
  /// The mean square of each column's input, from calibration, or none. Errors count in proportion.
  std::span<const float> input_energies;
  /// More of the inputs, in place of their energies: later columns make up for errors of earlier
  /// ones.
  const InputFacts* inputs = nullptr;
  std::size_t piece_bytes = std::size_t{1} << 20;  // of the weight, read at once by a thread
  std::size_t threads = 0;                         // 0: as many as the machine has
  bool measures_error = true;                      // else the report says nothing
};

struct QuantizationReport {
  double weight_error = 0;  // the norm of what quantization changed, relative to that of the weight
  /// The same of the layer's output, from input energies, as if columns were not correlated.
  std::optional<double> output_error;
};

/// Neither number of threads nor size of pieces changes a byte. Throws what quantized_form()
/// throws, and ExportError (Code::bad_input) for weights that are not finite.
QuantizationReport quantize(const Weight& weight, const Scheme& scheme, const QuantizedSinks& sinks,
                            const QuantizeOptions& options = {});

}  // namespace modelport::weights
