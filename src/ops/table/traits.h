// What an operator does beside computing: how the recorder handles it, how a write through a view
// that it gives is put back, how its result lies in memory. What it aliases stands in its schema.
#pragma once

#include <cstdint>
#include <string_view>

namespace modelport::ops {

/// How the recorder handles a call.
enum class Handling : std::uint8_t {
  record,        // a node of the graph
  decompose,     // composite, and no row: its parts are recorded
  identity,      // detach, alias: the same value under another handle
  cast,          // to.*: only the dtype matters to the graph
  read_number,   // item
  read_truth,    // is_nonzero
  equal,         // equal: a question about data with a bool for an answer
  all_close,     // allclose: likewise
  copy,          // copy_: the contents become those of another tensor
  size,          // size.int
  reshape_self,  // unsqueeze_, transpose_: the metadata changes in place
  refuse,        // set_, resize_
};

/// What the recorder minds when it records a call.
enum class Recording : std::uint8_t {
  plain,
  bounds,         // slice: symbolic bounds are counted from the front
  strides,        // as_strided: speaks of memory, so its operand is taken in memory order
  view_or_copy,   // reshape: a copy where memory does not allow a view
  dense_or_copy,  // contiguous: has nothing to do at some sizes only, and is recorded at all
};

/// How the tensor that was viewed follows from the view after a write to it.
struct PutBack {
  enum class How : std::uint8_t {
    unknown,
    reshape,  // the view has the same elements in the same order
    itself,   // the operator undoes itself: transpose
    inverse,  // `op` undoes it
    permute,  // the inverse permutation undoes it
    scatter,  // `op` writes a part back, and takes the same arguments
    narrow,   // a slice from `start`, `length` long
    unbind,   // one index of `dim` for each result
    split,    // the results lie side by side along `dim`
  };
  How how = How::unknown;
  std::string_view op = {};
};

/// How the result lies in memory.
enum class Layout : std::uint8_t {
  unknown,
  dense,            // always new and dense; tensors of one type
  dense_rows,       // the same, for rows picked by integers (embedding)
  dense_joined,     // the same, for operands of any types (cat)
  dense_for_dense,  // new, and dense where all operands are
  like_operands,    // pointwise: after its operands, as torch's iterator says
};

}  // namespace modelport::ops
