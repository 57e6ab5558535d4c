#include "shape/widen.h"

#include <algorithm>
#include <set>

namespace modelport::shape {
namespace {

using Names = std::set<std::string, std::less<>>;

Dim* find(std::vector<Dim>& dims, std::string_view name) {
  const auto found = std::ranges::find(dims, name, &Dim::name);
  return found == dims.end() ? nullptr : &*found;
}

class Widening {
 public:
  Widening(Validity program, const OtherCapture& other)
      : program_(program), other_(other), reach_(other.dims) {
    reach_.set_trial(false);
  }

  void run() {
    const std::size_t before = reach_.guards().size();
    for (const Guard& met : other_.dims.met()) {
      if (mentions_widened(met.condition)) {
        reach_.settle(met.condition, {met.where, met.module_path});
      } else {
        learn(met);
      }
    }
    for (const std::string& name : other_.widened) unite(name);
    for (std::size_t i = before; i < reach_.guards().size(); ++i) {
      if (reach_.guards()[i].effect == Guard::Effect::kept) learn(reach_.guards()[i]);
    }
  }

 private:
  bool mentions_widened(const Bool& condition) const {
    Names names;
    collect_symbols(condition, names);
    return std::ranges::any_of(other_.widened,
                               [&](const std::string& name) { return names.contains(name); });
  }

  void unite(const std::string& name) {
    Dim* mine = find(program_.dims, name);
    const Dim* theirs = reach_.find(name);
    if (mine == nullptr || theirs == nullptr) return;
    const Range& reach = theirs->range;
    if (reach.lo < mine->range.lo && reach.hi >= mine->range.lo - 1) {
      mine->range.lo = std::max(reach.lo, mine->declared.lo);
      mine->lo_where = theirs->lo_where;
    }
    if (reach.hi > mine->range.hi && reach.lo <= mine->range.hi + 1) {
      mine->range.hi = std::min(reach.hi, mine->declared.hi);
      mine->hi_where = theirs->hi_where;
    }
  }

  bool is_known(const Bool& condition) const {
    const auto same = [&](const Guard& guard) { return guard.condition == condition; };
    return std::ranges::any_of(other_.known, same) || std::ranges::any_of(program_.guards, same);
  }

  /// A condition that the first capture never met. Where it is false there, both sides were tried.
  void learn(const Guard& guard) {
    if (is_known(guard.condition) || !holds_in_example(guard.condition)) return;
    Dims own;
    for (const Dim& dim : program_.dims) own.declare(dim.name, example_of(dim), dim.range);
    own.settle(guard.condition, {guard.where, guard.module_path});
    for (Dim& dim : program_.dims) {
      const Dim& narrowed = *own.find(dim.name);
      if (narrowed.range.lo > dim.range.lo) dim.lo_where = guard.where;
      if (narrowed.range.hi < dim.range.hi) dim.hi_where = guard.where;
      dim.range = narrowed.range;
    }
    for (Guard kept : own.guards()) {
      const bool stays =
          kept.effect == Guard::Effect::kept || kept.effect == Guard::Effect::unified;
      kept.effect = Guard::Effect::kept;
      if (stays) program_.guards.push_back(std::move(kept));
    }
  }

  std::int64_t example_of(const Dim& dim) const {
    const auto found = other_.example.ints.find(dim.name);
    return found == other_.example.ints.end() ? dim.hint : found->second;
  }

  /// False too where the data has a say: such conditions belong to the graph that they come from.
  bool holds_in_example(const Bool& condition) const {
    Names names;
    collect_symbols(condition, names);
    const auto has_size = [&](const std::string& name) {
      const Dim* dim = find(program_.dims, name);
      return dim != nullptr && !dim->from_data;
    };
    if (!std::ranges::all_of(names, has_size)) return false;
    try {
      return evaluate(condition, other_.example);
    } catch (const ExportError&) {
      return false;
    }
  }

  Validity program_;
  const OtherCapture& other_;
  Dims reach_;
};

}  // namespace

void widen(Validity program, const OtherCapture& other) { Widening(program, other).run(); }

}  // namespace modelport::shape
