// Rows of a quantized table as numbers, by standard operators: for runtimes without
// GatherBlockQuantized, such as onnxruntime in browsers.
#pragma once

#include "passes/rebuild.h"

namespace modelport::passes {

/// A table as `modelport.quantized` gives it, in blocks of a row.
struct CodeTable {
  ir::ValueId codes;        // u8 [rows, bytes]: two codes a byte where they have 4 bits
  ir::ValueId scales;       // [rows, blocks]
  ir::ValueId zero_points;  // u8 [rows, bytes] as codes, or none: the middle of the codes
  int bits = 4;
  std::int64_t blocks = 1;
  std::int64_t block = 32;
};

/// The rows at these indices, of type `type`.
ir::ValueId rows_of_codes(Rebuild& rebuild, const CodeTable& table, ir::ValueId indices,
                          const ir::TensorType& type, ir::PlaceId place);

}  // namespace modelport::passes
