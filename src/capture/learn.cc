#include "capture/learn.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>

#include "capture/torch_dtype.h"

namespace modelport::capture {

using shape::Bindings;
using shape::Int;

namespace {

constexpr std::size_t kMostSymbols = 5;  // a box has 2^n corners
constexpr std::int64_t kFurther[] = {3, 16, 61, 1021};

using Shapes = std::vector<std::vector<std::int64_t>>;

class Learner {
 public:
  Learner(Session& session, const c10::OperatorHandle& op, const OpFacts& facts,
          const std::vector<c10::IValue>& operands)
      : session_(session), op_(op), facts_(facts), operands_(operands) {
    for (const c10::IValue& v : operands) collect(v);
  }

  std::vector<ir::Type> learn(const std::vector<at::Tensor>& results) {
    std::vector<ir::Type> types;
    const bool fixed = symbols_.empty();
    if (symbols_.size() > kMostSymbols) refuse("its shape depends on too many dimensions");
    const Bindings base = values_at(std::vector<std::int64_t>(symbols_.size(), 0));
    std::vector<Shapes> corners;
    for (std::size_t corner = 0; !fixed && corner < (std::size_t{1} << symbols_.size()); ++corner) {
      corners.push_back(run_at(values_at(offsets(corner, 1))));
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      ir::TensorType type{from_torch(results[r].scalar_type()), {}};
      for (std::int64_t d = 0; d < results[r].dim(); ++d) {
        const Int size = fixed ? Int(results[r].size(d)) : fit(corners, base, r, d);
        type.shape.push_back(size);
      }
      types.emplace_back(std::move(type));
    }
    if (!fixed) test(types);
    return types;
  }

 private:
  /// Far from the corners, too: `n // 4` is 2 at 8, at 9 and at 11.
  void test(const std::vector<ir::Type>& types) {
    for (const std::int64_t step : kFurther) {
      std::vector<std::int64_t> by;
      for (std::size_t i = 0; i < symbols_.size(); ++i)
        by.push_back(room(i, step * static_cast<std::int64_t>(i + 1)));
      const Bindings outside = values_at(by);
      const Shapes seen = run_at(outside);
      for (std::size_t r = 0; r < types.size(); ++r) {
        const auto& shape = std::get<ir::TensorType>(types[r]).shape;
        bool same = r < seen.size() && seen[r].size() == shape.size();
        for (std::size_t d = 0; same && d < shape.size(); ++d)
          same = shape::evaluate(shape[d], outside) == seen[r][d];
        if (!same) refuse("its shape is no polynomial of its operands' sizes");
      }
    }
  }

  /// As much of a step as the symbol's range has room for.
  std::int64_t room(std::size_t i, std::int64_t step) const {
    const shape::Dim* dim = session_.dims().find(symbols_[i]);
    if (dim == nullptr || dim->range.hi == shape::Range::kUnbounded) return step;
    return std::max<std::int64_t>(std::min(step, dim->range.hi - dim->hint), 0);
  }

  void collect(const c10::IValue& v) {
    std::set<std::string, std::less<>> found;
    if (v.isTensor() && v.toTensor().defined()) {
      for (const c10::SymInt& size : v.toTensor().sym_sizes())
        shape::collect_symbols(session_.dims().simplify(int_of(size)), found);
    } else if (v.isSymInt()) {
      shape::collect_symbols(session_.dims().simplify(int_of(v.toSymInt())), found);
    } else if (v.isList()) {
      for (const c10::IValue& item : v.toList()) collect(item);
    }
    for (const std::string& name : found) {
      if (std::find(symbols_.begin(), symbols_.end(), name) == symbols_.end())
        symbols_.push_back(name);
    }
  }

  static std::vector<std::int64_t> offsets(std::size_t corner, std::int64_t step) {
    std::vector<std::int64_t> by(64, 0);
    for (std::size_t i = 0; i < by.size(); ++i) by[i] = (corner >> i) & 1 ? step : 0;
    return by;
  }

  Bindings values_at(const std::vector<std::int64_t>& by) const {
    Bindings values = session_.dims().values().ints;
    for (std::size_t i = 0; i < symbols_.size(); ++i) values[symbols_[i]] += by[i];
    return values;
  }

  c10::IValue at_size(const c10::IValue& v, const Bindings& values) const {
    if (v.isTensor() && v.toTensor().defined()) {
      std::vector<std::int64_t> sizes;
      for (const c10::SymInt& size : v.toTensor().sym_sizes()) {
        sizes.push_back(shape::evaluate(session_.dims().simplify(int_of(size)), values));
      }
      return at::empty(sizes, at::TensorOptions().dtype(v.toTensor().dtype()).device(at::kMeta));
    }
    if (v.isSymInt())
      return shape::evaluate(session_.dims().simplify(int_of(v.toSymInt())), values);
    if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : v.toTensorVector()) list.push_back(at_size(t, values).toTensor());
      return list;
    }
    if (v.isSymIntList()) {
      c10::List<std::int64_t> list;
      for (const c10::IValue& item : v.toList()) list.push_back(at_size(item, values).toInt());
      return list;
    }
    return v;
  }

  Shapes run_at(const Bindings& values) {
    const at::AutoDispatchBelowADInplaceOrView below;
    torch::jit::Stack stack;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const bool device = facts_.args[i].kind == ArgKind::device && !operands_[i].isNone();
      stack.push_back(device ? c10::IValue(c10::Device(at::kMeta)) : at_size(operands_[i], values));
    }
    try {
      op_.callBoxed(stack);
    } catch (const c10::Error&) {
      refuse("it has no row, is not composite, and does not run on meta tensors");
    }
    Shapes shapes;
    for (const c10::IValue& v : stack) {
      if (v.isTensor()) shapes.push_back(v.toTensor().sizes().vec());
      if (v.isTensorList()) {
        for (const at::Tensor& t : v.toTensorVector()) shapes.push_back(t.sizes().vec());
      }
    }
    return shapes;
  }

  /// The multilinear polynomial through the corners: the coefficient of a product of symbols is the
  /// alternating sum over the corners below it.
  Int fit(const std::vector<Shapes>& corners, const Bindings& base, std::size_t result,
          std::int64_t axis) {
    Int size = 0;
    for (std::size_t subset = 0; subset < corners.size(); ++subset) {
      std::int64_t coefficient = 0;
      for (std::size_t corner = 0; corner < corners.size(); ++corner) {
        if ((corner & subset) != corner) continue;
        if (corners[corner].size() <= result ||
            corners[corner][result].size() <= static_cast<std::size_t>(axis)) {
          refuse("the number of its results depends on sizes");
        }
        const int sign = __builtin_popcountll(subset ^ corner) % 2 == 0 ? 1 : -1;
        coefficient += sign * corners[corner][result][axis];
      }
      if (coefficient == 0) continue;
      Int term = coefficient;
      for (std::size_t i = 0; i < symbols_.size(); ++i) {
        if ((subset >> i) & 1) term *= Int::symbol(symbols_[i]) - Int(base.at(symbols_[i]));
      }
      size += term;
    }
    return size;
  }

  [[noreturn]] void refuse(const std::string& why) {
    session_.fail(Code::unknown_op, "the operator " + facts_.name + " cannot be captured: " + why,
                  {"register a meta kernel for it (torch.library.register_fake)",
                   "add a row (docs/adding-an-operator.md)"});
  }

  Session& session_;
  const c10::OperatorHandle& op_;
  const OpFacts& facts_;
  const std::vector<c10::IValue>& operands_;
  std::vector<std::string> symbols_;
};

}  // namespace

std::vector<ir::Type> learn_types(Session& session, const c10::OperatorHandle& op,
                                  const OpFacts& facts, const std::vector<c10::IValue>& operands,
                                  const std::vector<at::Tensor>& results) {
  return Learner(session, op, facts, operands).learn(results);
}

}  // namespace modelport::capture
