// What a capture at another size says about the sizes that the first one stands for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shape/dims.h"

namespace modelport::shape {

/// Nothing where it cannot be computed: a division by zero, a symbol without a value, data.
std::optional<bool> holds(const Bool& condition, const Values& values);

/// The size near the example's, within its range, at which a condition does not hold and as many of
/// the others as possible do.
std::optional<std::int64_t> size_against(const Bool& condition, const Dim& dim,
                                         const std::vector<Guard>& others, Values example);

/// Dimensions and conditions of a program.
struct Validity {
  std::vector<Dim>& dims;
  std::vector<Guard>& guards;
};

struct OtherCapture {
  const Dims& dims;                  // of a trial, with what it met
  std::vector<std::string> widened;  // the symbols that had another size in it
  const std::vector<Guard>& known;   // what the first capture met, which was tested or kept already
  Values example;                    // the sizes of the first capture
};

/// Takes over the sizes of the other capture, which does the same as the program: the ranges of the
/// symbols that were widened reach as far as the next bound that the other capture met, and what
/// else it asked for the first time is a limit from now on. Gives these. Nothing, and nothing is
/// changed, where it asked what is false in the first capture, which did not come to ask it
/// (`n > 6 and n % 2 == 0`): the other side of that was never seen.
std::optional<std::vector<Guard>> widen(Validity program, const OtherCapture& other);

/// A condition that was asked at other sizes than the example's: `if n > 8 and m % 2 == 0`.
struct AskedElsewhere {
  Guard guard;
  Bindings sizes;
};

/// A condition that a capture asked, that does not follow from the program's ranges and conditions
/// any more, and whose other side no trial saw: where it is false, nothing is known. That a trial
/// saw other data says nothing.
struct OpenCondition {
  Guard guard;
  Bindings broken_at;  // sizes near the smallest at which it is false; empty where none were found
};
std::vector<OpenCondition> open_conditions(Validity program, const Dims& capture,
                                           const std::vector<AskedElsewhere>& elsewhere,
                                           const std::vector<Guard>& tried);
/// The condition becomes part of what the program is valid for.
void require(Validity program, const Guard& guard);

}  // namespace modelport::shape
