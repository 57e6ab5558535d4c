// One call of an operator as its shape rule sees it: arguments by name with the schema's defaults,
// and the dimensions of the program, where a rule settles what it must know about symbolic sizes.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ops/table/op.h"
#include "ops/table/schema.h"

namespace modelport::ops {

using shape::Int;
using Shape = std::vector<Int>;

class Call {
 public:
  struct Site {
    const ir::Graph& graph;  // types of the values that arguments name
    shape::Dims& dims;
    shape::Dims::Place place;
    /// Sizes of the results in the example run, where it was run: hints for sizes that depend on
    /// data.
    std::span<const std::vector<std::int64_t>> observed = {};
    std::size_t result_count =
        0;  // of the example run, for operators that return lists; 0: unknown
    /// The number that the example run read out of a tensor (`item`).
    std::variant<std::monostate, bool, std::int64_t, double> observed_number = {};
  };
  Call(const OpDef& op, std::span<const ir::NamedArg> args, Site site);

  const OpDef& op() const { return op_; }
  /// The argument, or the schema's default (None if it has none).
  const ir::Arg& arg(std::string_view name) const;
  bool has(std::string_view name) const { return !arg(name).is_none(); }

  const ir::TensorType& tensor(std::string_view name) const;
  bool is_tensor(std::string_view name) const;  // and not a number in a tensor's place
  /// The type torch gives a plain number (bool, i64, f32); nothing for what is no number.
  std::optional<Dtype> number_dtype(std::string_view name) const;
  const Shape& shape(std::string_view name) const { return tensor(name).shape; }
  Dtype dtype_of(std::string_view name) const { return tensor(name).dtype; }
  std::int64_t rank(std::string_view name) const {
    return static_cast<std::int64_t>(shape(name).size());
  }
  /// A list of tensors; entries that are None are null.
  std::vector<const ir::TensorType*> tensors(std::string_view name) const;
  Int integer(std::string_view name) const;
  std::vector<Int> ints(std::string_view name) const;  // a single number is a list of one
  std::optional<std::vector<Int>> optional_ints(std::string_view name) const;
  std::optional<Int> optional_integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  /// An integer that a rule needs as a number; symbolic ones are pinned.
  std::int64_t number(std::string_view name) const;
  std::optional<Dtype> dtype(std::string_view name) const;
  std::string_view string(std::string_view name) const;

  /// Settles conditions on sizes: the truth in the example run, guarded where it is not certain.
  bool equal(const Int& a, const Int& b);
  bool at_least(const Int& a, const Int& b);  // a >= b
  bool less(const Int& a, const Int& b) { return !at_least(a, b); }
  std::int64_t pin(const Int& x) { return site_.dims.pin(x, site_.place); }
  std::int64_t hint(const Int& x) const { return site_.dims.hint(x); }
  /// A size that only the data decides: result `result`, axis `axis`.
  Int unknown_size(std::size_t result, std::size_t axis,
                   shape::Range range = {0, shape::Range::kUnbounded});
  std::size_t result_count() const { return site_.result_count; }
  const Site& site() const { return site_; }
  shape::Dims& dims() { return site_.dims; }

  /// Operands that do not fit: throws ExportError (Code::bad_operands) with the place and the
  /// operand shapes.
  [[noreturn]] void fail(std::string_view what) const;
  void require(bool truth, std::string_view what) const {
    if (!truth) fail(what);
  }

 private:
  const OpDef& op_;
  const Schema& schema_;
  std::span<const ir::NamedArg> args_;
  Site site_;
};

/// The types of the results of a node of the graph, by its row's rule.
Results infer(const OpDef& op, std::span<const ir::NamedArg> args, Call::Site site);

}  // namespace modelport::ops
