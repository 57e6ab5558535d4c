#include "shape/program_dims.h"

#include <algorithm>
#include <set>
#include <string>

#include "shape/expression.h"
#include "shape/widen.h"

namespace modelport::shape {

bool depends_on_data(const Bool& condition, const std::vector<Dim>& dims) {
  if (detail::reads_data(condition)) return true;
  std::set<std::string, std::less<>> symbols;
  collect_symbols(condition, symbols);
  return std::ranges::any_of(symbols, [&](const std::string& name) {
    const auto dim = std::ranges::find(dims, name, &Dim::name);
    return dim == dims.end() || dim->from_data;
  });
}

Dims dims_of(const std::vector<Dim>& dims) {
  Dims own;
  for (const Dim& dim : dims) own.declare(dim.name, dim.hint, dim.range);
  return own;
}

Dims dims_of(const std::vector<Dim>& dims, const std::vector<Guard>& guards) {
  Dims own = dims_of(dims);
  for (const Guard& guard : guards) {
    if (holds(guard.condition, own.values()).value_or(false)) own.settle(guard.condition, {});
  }
  return own;
}

}  // namespace modelport::shape
