// The dimensions of one program: its symbols with their ranges and their values in the example run,
// and what the model was seen to demand of them (guards).
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "shape/int.h"
#include "shape/real.h"

namespace modelport::shape {

struct Dim {
  std::string name;
  Range range;             // as declared, then narrowed by guards
  Range declared;          // as declared
  std::int64_t hint = 0;   // the size in the example run
  bool from_data = false;  // known only when the program runs: nonzero, item
  SourceLine lo_where;     // the line of the model that narrowed the range from below
  SourceLine hi_where;     // and from above
  bool operator==(const Dim&) const = default;
};

/// As bounds() takes them.
Ranges ranges_of(const std::vector<Dim>& dims);

struct Guard {
  enum class Effect {
    unified,  // one symbol was replaced by an expression of others
    pinned,   // a symbol became a number
    bounded,  // a range was narrowed
    kept,     // neither: must be tested when the program runs
  };
  Bool condition;  // true in the example run
  Effect effect = Effect::kept;
  SourceLine where;
  std::string module_path;
};

class Dims {
 public:
  Int declare(std::string_view name, std::int64_t hint, Range range);
  /// A new symbol `stem`0, `stem`1, ... for a size or a number that the data decides.
  Int fresh(std::string_view stem, std::int64_t hint, Range range);
  /// The same for floats and bools.
  Real fresh_real(double hint);
  Bool fresh_bool(bool hint);

  /// With unified and pinned symbols replaced.
  Int simplify(const Int& x) const;
  Real simplify(const Real& x) const;
  Bool simplify(const Bool& x) const;

  /// The value in the example run.
  std::int64_t hint(const Int& x) const { return evaluate(x, values_); }
  double hint(const Real& x) const { return evaluate(x, values_); }
  bool hint(const Bool& x) const { return evaluate(x, values_); }

  /// Whether the condition is already known for all admissible values, by form and range.
  std::optional<bool> decide(const Bool& condition) const;

  struct Place {
    SourceLine where;
    std::string module_path;
  };
  /// Whether numbers that are known only when the program runs have a part in it.
  bool depends_on_data(const Bool& condition) const;

  /// The truth of the condition in the example run. Where that does not follow already, it is
  /// recorded as a guard: an equality that can be solved unifies or pins a symbol, a bound on one
  /// symbol narrows its range.
  bool settle(const Bool& condition, const Place& place);
  /// A trial at other sizes: of conditions between sizes only equalities that the model demands are
  /// recorded, so that a size at the edge of a range (1, where the model asks `seq > 1`) stays a
  /// symbol and the graph can be compared with that of another size. Conditions on data belong to
  /// the graph, and are recorded as ever.
  void set_trial(bool trial) { trial_ = trial; }
  /// Every condition that was asked for, as it held, once: those that were recorded, in a trial
  /// those that were not, and those that followed from others.
  const std::vector<Guard>& met() const { return met_; }
  void meet(const Bool& condition, const Place& place);
  bool settle_equal(const Int& a, const Int& b, const Place& place) {
    return settle(Bool::compare(Compare::eq, a, b), place);
  }
  /// Pins the expression to its value in the example run and gives that value.
  std::int64_t pin(const Int& x, const Place& place);

  const std::vector<Dim>& all() const {
    return dims_;
  }  // in order of declaration, replaced ones included
  const Dim* find(std::string_view name) const;
  const std::vector<Guard>& guards() const { return guards_; }
  const Substitution& replacements() const { return replacements_; }
  const Values& values() const { return values_; }

 private:
  bool trial_ = false;
  std::vector<Guard> met_;
  std::unordered_set<std::size_t> met_hashes_;
  /// A condition that is known to hold but could not be built into symbols and ranges.
  struct Fact {
    Bool condition;
    std::size_t guard;  // that it comes from
  };
  /// What a recording goes back to: a place in the model, or a guard whose fact has become usable
  /// since.
  struct Cause {
    const Place* place = nullptr;
    std::optional<std::size_t> guard;
  };

  const Dim& dim(std::string_view name) const { return dims_[index_.find(name)->second]; }
  void set_range(std::string_view name, const Range& range);
  Substitution lower_bounds(const Int& x) const;

  std::optional<bool> decide_simplified(const Bool& condition) const;
  std::optional<bool> decide_comparison(Compare op, const Int& difference) const;
  std::optional<bool> prove_comparison(Compare op, const Int& difference) const;
  bool proves_at_least_zero(const Int& x, int& budget) const;
  bool relaxed_at_least_zero(const Int& x, int& budget) const;
  bool facts_give_at_least_zero(const Int& x) const;
  Int reduced_by_facts(Int x) const;
  Int without_positive_factors(const Int& x) const;

  std::size_t note(const Bool& condition, Guard::Effect effect, const Cause& cause);
  void settle_true(const Bool& condition, const Cause& cause);
  void record(const Bool& condition, const Cause& cause);
  void record_equal(const Int& difference, const Cause& cause);
  void record_unequal(const Int& difference, const Cause& cause);
  void record_bound(const Int& difference, const Cause& cause);
  bool record_parts(const Int& difference, const Cause& cause);
  void narrow(std::string_view name, const Range& range, const Bool& condition, const Cause& cause);
  std::optional<std::string> symbol_to_replace(const Int& difference) const;
  void replace(const std::string& name, const Int& value, std::size_t guard);
  void use_facts_again();

  std::vector<Dim> dims_;
  std::map<std::string, std::size_t, std::less<>> index_;
  Ranges ranges_;              // of dims_, as bounds() takes them
  Substitution replacements_;  // fully reduced: no replacement mentions a replaced symbol
  std::uint64_t replaced_bits_ = 0;
  std::vector<Guard> guards_;
  std::vector<Fact> facts_;
  Values values_;
  int fresh_count_ = 0;
};

}  // namespace modelport::shape

// Compiled in dims.cc alone.
extern template class std::vector<modelport::shape::Dim>;
extern template class std::vector<modelport::shape::Guard>;
