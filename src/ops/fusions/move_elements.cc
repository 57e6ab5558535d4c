// Elements through operators that move them: where the element at an index comes from.
#include <numeric>

#include "ops/fusions/element_place.h"

namespace modelport::ops::fusions {
namespace {

const ir::ArgList& list_of(const ir::Node& node, std::string_view name) {
  return *node.find(name)->get<ir::ArgList>();
}

}  // namespace

TermId Elements::same(const Place& p) { return at(p.operand("self"), p.index); }

TermId Elements::expanded(const Place& p) {
  const auto rank = static_cast<std::ptrdiff_t>(p.type("self").shape.size());
  return at(p.operand("self"), Index(p.index.end() - rank, p.index.end()));
}

TermId Elements::unsqueezed(const Place& p) {
  Index index = p.index;
  index.erase(index.begin() + static_cast<std::ptrdiff_t>(p.axis("dim", index.size())));
  return at(p.operand("self"), std::move(index));
}

TermId Elements::squeezed(const Place& p) {
  const auto& shape = p.type("self").shape;
  if (shape.size() == p.index.size()) return same(p);
  Index index = p.index;
  index.insert(index.begin() + static_cast<std::ptrdiff_t>(p.axis("dim", shape.size())), 0);
  return at(p.operand("self"), std::move(index));
}

TermId Elements::transposed(const Place& p) {
  Index index = p.index;
  std::swap(index[p.axis("dim0", index.size())], index[p.axis("dim1", index.size())]);
  return at(p.operand("self"), std::move(index));
}

TermId Elements::permuted(const Place& p) {
  Index index = p.index;
  const ir::ArgList& order = list_of(p.node, "dims");
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int64_t axis = order[i].get<shape::Int>()->constant().value_or(0);
    if (axis < 0) axis += static_cast<std::int64_t>(order.size());
    index[static_cast<std::size_t>(axis)] = p.index[i];
  }
  return at(p.operand("self"), std::move(index));
}

TermId Elements::sliced(const Place& p) {
  const auto start = p.size("start", 0);
  const auto step = p.size("step", 1);
  if (!start || !start->constant() || *start->constant() < 0 || !step) return stop(p);
  const std::size_t axis = p.axis("dim", p.index.size());
  // A start behind the end gives nothing: then there is no element to ask for.
  Index index = p.index;
  index[axis] = *start + *step * index[axis];
  return at(p.operand("self"), std::move(index));
}

TermId Elements::selected(const Place& p) {
  const auto chosen = p.size("index", 0);
  if (!chosen || !chosen->constant() || *chosen->constant() < 0) return stop(p);
  Index index = p.index;
  const std::size_t axis = p.axis("dim", p.type("self").shape.size());
  index.insert(index.begin() + static_cast<std::ptrdiff_t>(axis), *chosen);
  return at(p.operand("self"), std::move(index));
}

/// Which part an element is of is known for a plain number between plain sizes.
TermId Elements::joined(const Place& p) {
  const std::size_t axis = p.axis("dim", p.index.size());
  auto where = p.index[axis].constant();
  if (!where) return stop(p);
  for (const ir::Arg& part : list_of(p.node, "tensors")) {
    const ir::ValueId id = *part.get<ir::ValueId>();
    if (type(id).shape.size() != p.index.size()) return stop(p);
    const auto size = type(id).shape[axis].constant();
    if (!size) return stop(p);
    if (*where < *size) {
      Index index = p.index;
      index[axis] = *where;
      return at(id, std::move(index));
    }
    *where -= *size;
  }
  return stop(p);
}

TermId Elements::stacked(const Place& p) {
  const std::size_t axis = p.axis("dim", p.index.size());
  const auto which = p.index[axis].constant();
  if (!which) return stop(p);
  Index index = p.index;
  index.erase(index.begin() + static_cast<std::ptrdiff_t>(axis));
  const ir::Arg& part = list_of(p.node, "tensors")[static_cast<std::size_t>(*which)];
  return at(*part.get<ir::ValueId>(), std::move(index));
}

/// chunk and split: a result starts where those before it end.
TermId Elements::cut(const Place& p) {
  const std::size_t axis = p.axis("dim", p.index.size());
  Index index = p.index;
  for (const ir::ValueId before : p.node.results) {
    if (before == p.value) break;
    index[axis] += type(before).shape[axis];
  }
  return at(p.operand("self"), std::move(index));
}

/// Axes of size 1 come and go; axes at the end that are plain numbers are counted through.
TermId Elements::reshaped(const Place& p) {
  const auto& from = p.type("self").shape;
  const auto& to = p.type().shape;
  std::size_t a = 0;
  std::size_t b = 0;
  Index index(from.size(), 0);
  while (a < from.size() || b < to.size()) {
    if (a < from.size() && from[a] == shape::Int(1)) {
      ++a;
    } else if (b < to.size() && to[b] == shape::Int(1)) {
      ++b;
    } else if (a < from.size() && b < to.size() && from[a] == to[b]) {
      index[a++] = p.index[b++];
    } else {
      break;
    }
  }
  std::int64_t flat = 0;
  for (std::size_t i = b; i < to.size(); ++i) {
    if (!to[i].constant() || !p.index[i].constant()) return stop(p);
    flat = flat * *to[i].constant() + *p.index[i].constant();
  }
  for (std::size_t i = from.size(); i-- > a;) {
    if (!from[i].constant()) return stop(p);
    index[i] = flat % *from[i].constant();
    flat /= *from[i].constant();
  }
  return at(p.operand("self"), std::move(index));
}

TermId Elements::repeated(const Place& p) {
  const auto times = p.size("repeats", 1);
  const ir::Arg* dim = p.node.find("dim");
  if (dim == nullptr || dim->is_none() || !times || !times->constant()) return stop(p);
  Index index = p.index;
  const std::size_t axis = p.axis("dim", index.size());
  if (!index[axis].constant()) return stop(p);
  index[axis] = *index[axis].constant() / *times->constant();
  return at(p.operand("self"), std::move(index));
}

/// Padding by nothing.
TermId Elements::padded(const Place& p) {
  for (const ir::Arg& side : list_of(p.node, "pad")) {
    const auto* by = side.get<shape::Int>();
    if (by == nullptr || !(*by == shape::Int(0))) return stop(p);
  }
  return same(p);
}

/// One index tensor for each of the first axes.
TermId Elements::indexed(const Place& p) {
  const ir::ArgList& indices = list_of(p.node, "indices");
  std::size_t rank = 0;
  for (const ir::Arg& arg : indices) {
    const auto* id = arg.get<ir::ValueId>();
    if (id == nullptr || !is_integral(type(*id).dtype)) return stop(p);
    rank = std::max(rank, type(*id).shape.size());
  }
  const auto end = p.index.begin() + static_cast<std::ptrdiff_t>(rank);
  Index index;
  for (const ir::Arg& arg : indices) {
    const ir::ValueId id = *arg.get<ir::ValueId>();
    const auto own = static_cast<std::ptrdiff_t>(type(id).shape.size());
    const Term& found = terms_[at(id, Index(end - own, end)).index];
    if (found.kind != Term::Kind::number) return stop(p);
    index.push_back(found.number);
  }
  index.insert(index.end(), end, p.index.end());
  return at(p.operand("self"), std::move(index));
}

}  // namespace modelport::ops::fusions
