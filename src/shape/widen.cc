#include "shape/widen.h"

#include <algorithm>
#include <optional>
#include <set>

#include "shape/program_dims.h"

namespace modelport::shape {

namespace {

using Names = std::set<std::string, std::less<>>;

Dim* find(std::vector<Dim>& dims, std::string_view name) {
  const auto found = std::ranges::find(dims, name, &Dim::name);
  return found == dims.end() ? nullptr : &*found;
}

/// Conditions on data belong to the graph that they come from.
bool is_about_sizes(const Bool& condition, const std::vector<Dim>& dims) {
  Names names;
  collect_symbols(condition, names);
  return !names.empty() && !depends_on_data(condition, dims);
}

/// Whether data have a part in the condition, and all of its numbers are there when the program
/// runs. Floats and bools, which no dim declares, always are.
bool is_computed(const Bool& condition, std::vector<Dim>& dims, const Dims& capture) {
  Names names;
  collect_symbols(condition, names);
  return !names.empty() && std::ranges::all_of(names, [&](const std::string& name) {
    return find(dims, name) != nullptr || capture.find(name) == nullptr;
  });
}

bool contains(const std::vector<Guard>& guards, const Bool& condition) {
  return std::ranges::any_of(guards,
                             [&](const Guard& guard) { return guard.condition == condition; });
}

/// Sizes at which a condition is false: all of its symbols at their smallest, or one of them near
/// its example while the others stay there.
Bindings sizes_against(const Bool& condition, const std::vector<Dim>& dims) {
  Names names;
  collect_symbols(condition, names);
  Values example;
  Values smallest;
  for (const Dim& dim : dims) {
    example.ints[dim.name] = dim.hint;
    smallest.ints[dim.name] = names.contains(dim.name) ? dim.range.lo : dim.hint;
  }
  const auto of_names = [&](const Values& values) {
    Bindings sizes;
    for (const std::string& name : names) sizes[name] = values.ints.at(name);
    return sizes;
  };
  for (const Dim& dim : dims) {
    if (!names.contains(dim.name)) continue;
    if (const auto size = size_against(condition, dim, {}, example)) return {{dim.name, *size}};
  }
  if (holds(condition, smallest) == false) return of_names(smallest);
  return {};
}

class Widening {
 public:
  Widening(Validity program, const OtherCapture& other)
      : program_(program), other_(other), reach_(other.dims) {
    reach_.set_trial(false);
  }

  std::optional<std::vector<Guard>> run() {
    if (asked_what_the_first_did_not()) return std::nullopt;
    for (const Guard& met : other_.dims.met()) {
      if (mentions_widened(met.condition)) {
        reach_.settle(met.condition, {met.where, met.module_path});
      } else {
        learn(met);
      }
    }
    for (const std::string& name : other_.widened) unite(name);
    // Those too that the trial recorded when it met them: the equalities.
    for (const Guard& guard : reach_.guards()) {
      if (guard.effect == Guard::Effect::kept) learn(guard);
    }
    return std::move(learned_);
  }

 private:
  bool mentions_widened(const Bool& condition) const {
    Names names;
    collect_symbols(condition, names);
    return std::ranges::any_of(other_.widened,
                               [&](const std::string& name) { return names.contains(name); });
  }

  /// Bounds of the symbols that are widened say by themselves how far the trial reaches.
  bool asked_what_the_first_did_not() const {
    Dims reach;  // not a copy: equalities that the trial demanded are recorded there
    for (const Dim& dim : other_.dims.all()) reach.declare(dim.name, dim.hint, dim.declared);
    std::vector<Bool> answered;  // in both captures
    std::vector<Bool> unknown;
    std::vector<std::size_t> recorded;  // guards of `reach` that are bounds, as far as they go
    for (const Guard& met : other_.dims.met()) {
      if (!is_about_sizes(met.condition, program_.dims)) continue;
      const bool known = holds(met.condition, other_.example).value_or(true) ||
                         contains(other_.known, !met.condition);
      const std::size_t before = reach.guards().size();
      if (known || is_about_widened(met.condition)) reach.settle(met.condition, {});
      (known ? answered : unknown).push_back(met.condition);
      if (known) continue;
      for (std::size_t i = before; i < reach.guards().size(); ++i) recorded.push_back(i);
    }
    const bool bounds_only = std::ranges::none_of(
        recorded, [&](std::size_t i) { return reach.guards()[i].effect == Guard::Effect::kept; });
    return std::ranges::any_of(unknown, [&](const Bool& one) {
      return !(bounds_only && reach.decide(one)) && !follows(one, answered);
    });
  }

  /// Whether a condition holds at all sizes near the trial's at which the others do: `n % 4 == 0`
  /// where `(4 - n % 4) % 4 == 0`.
  bool follows(const Bool& condition, const std::vector<Bool>& from) const {
    constexpr std::int64_t kNear = 64;
    for (const Dim& dim : other_.dims.all()) {
      const auto at_first = other_.example.ints.find(dim.name);
      if (dim.from_data || at_first == other_.example.ints.end() || at_first->second == dim.hint)
        continue;
      Values values = other_.dims.values();
      const std::int64_t end =
          dim.hint > dim.declared.hi - kNear ? dim.declared.hi : dim.hint + kNear;
      for (std::int64_t size = std::max(dim.declared.lo, dim.hint - kNear); size <= end; ++size) {
        values.ints[dim.name] = size;
        const auto is_false = [&](const Bool& one) { return !holds(one, values).value_or(false); };
        if (is_false(condition) && std::ranges::none_of(from, is_false)) return false;
      }
    }
    return true;
  }

  bool is_about_widened(const Bool& condition) const {
    Names names;
    collect_symbols(condition, names);
    return std::ranges::all_of(names, [&](const std::string& name) {
      return std::ranges::find(other_.widened, name) != other_.widened.end();
    });
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
    return contains(other_.known, condition) || contains(program_.guards, condition);
  }

  /// A condition that the first capture never met. Where it is false there, both sides were tried.
  void learn(const Guard& guard) {
    if (is_known(guard.condition) || !is_about_sizes(guard.condition, program_.dims)) return;
    if (!holds(guard.condition, other_.example).value_or(false)) return;
    require(program_, guard);
    learned_.push_back(guard);
  }

  Validity program_;
  const OtherCapture& other_;
  Dims reach_;
  std::vector<Guard> learned_;
};

}  // namespace

std::optional<bool> holds(const Bool& condition, const Values& values) {
  try {
    return evaluate(condition, values);
  } catch (const ExportError&) {
    return std::nullopt;
  }
}

std::optional<std::int64_t> size_against(const Bool& condition, const Dim& dim,
                                         const std::vector<Guard>& others, Values example) {
  constexpr std::int64_t kNear = 64;
  std::optional<std::int64_t> best;
  std::ptrdiff_t fewest = 0;
  for (std::int64_t away = 1; away <= kNear; ++away) {
    for (const std::int64_t size : {dim.hint + away, dim.hint - away}) {
      if (size < dim.range.lo || size > dim.range.hi) continue;
      example.ints[dim.name] = size;
      if (holds(condition, example) != false) continue;
      const auto broken = std::ranges::count_if(
          others, [&](const Guard& guard) { return holds(guard.condition, example) == false; });
      if (best && broken >= fewest) continue;
      best = size;
      fewest = broken;
    }
  }
  return best;
}

std::optional<std::vector<Guard>> widen(Validity program, const OtherCapture& other) {
  return Widening(program, other).run();
}

std::vector<OpenCondition> open_conditions(Validity program, const Dims& capture,
                                           const std::vector<AskedElsewhere>& elsewhere,
                                           const std::vector<Guard>& tried) {
  Dims own = dims_of(program.dims, program.guards);
  std::vector<OpenCondition> open;
  const auto add = [&](const Guard& met, const Bindings& asked_at) {
    Guard guard = met;
    // Not simplified: `min(n, 2) == 2` is true by the bounds of the capture, which may be gone.
    guard.condition = substitute(met.condition, capture.replacements());
    if (own.decide(guard.condition) || contains(program.guards, guard.condition)) return;
    if (is_about_sizes(guard.condition, program.dims)) {
      if (contains(tried, !guard.condition) || contains(tried, !met.condition)) return;
      Bindings broken_at = sizes_against(guard.condition, program.dims);
      if (!broken_at.empty()) broken_at.insert(asked_at.begin(), asked_at.end());
      open.push_back({guard, std::move(broken_at)});
    } else if (is_computed(guard.condition, program.dims, capture)) {
      open.push_back({guard, {}});
    }
  };
  for (const Guard& met : capture.met()) add(met, {});
  for (const AskedElsewhere& one : elsewhere) add(one.guard, one.sizes);
  return open;
}

void require(Validity program, const Guard& guard) {
  Dims own = dims_of(program.dims);
  if (!holds(guard.condition, own.values()).value_or(false)) {
    // Data of another example, or floats and bools, which have no range: to be tested as it is.
    if (!is_about_sizes(guard.condition, program.dims)) program.guards.push_back(guard);
    return;
  }
  own.settle(guard.condition, {guard.where, guard.module_path});
  for (Dim& dim : program.dims) {
    const Dim& narrowed = *own.find(dim.name);
    if (narrowed.range.lo > dim.range.lo) dim.lo_where = guard.where;
    if (narrowed.range.hi < dim.range.hi) dim.hi_where = guard.where;
    dim.range = narrowed.range;
  }
  for (Guard kept : own.guards()) {
    const bool stays = kept.effect == Guard::Effect::kept || kept.effect == Guard::Effect::unified;
    kept.effect = Guard::Effect::kept;
    if (stays && !contains(program.guards, kept.condition))
      program.guards.push_back(std::move(kept));
  }
}

}  // namespace modelport::shape
