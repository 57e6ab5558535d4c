#include "shape/python_arithmetic.h"

#include <fmt/format.h>

#include <cmath>

#include "shape/checked.h"

namespace modelport::shape::detail {

namespace {

double python_pow(double a, double b) {
  if (a == 0 && b < 0) throw_arithmetic("zero to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::trunc(b)) {
    throw_arithmetic(fmt::format("{} to the power {} is not a real number", a, b));
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
    throw_arithmetic(fmt::format("{} to the power {} is too large", a, b));
  }
  return result;
}

}  // namespace

double python_binary(Real::Op op, double a, double b) {
  using Op = Real::Op;
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::div:
      if (b == 0) throw_arithmetic(fmt::format("division by zero: {}/0", a));
      return a / b;
    case Op::pow:
      return python_pow(a, b);
    case Op::min:
      return b < a ? b : a;
    case Op::max:
      return b > a ? b : a;
    default:
      throw InternalError("not an operator of two reals");
  }
}

double python_unary(Real::Op op, double a) {
  using Op = Real::Op;
  const auto domain = [&](bool holds, const char* what) {
    if (!holds) throw_arithmetic(fmt::format("{} of {}", what, a));
  };
  switch (op) {
    case Op::neg:
      return -a;
    case Op::abs:
      return std::abs(a);
    case Op::sqrt:
      domain(!(a < 0), "square root");
      return std::sqrt(a);
    case Op::exp: {
      const double result = std::exp(a);
      domain(!std::isinf(result) || std::isinf(a), "exponential");
      return result;
    }
    case Op::log:
      domain(!(a <= 0), "logarithm");
      return std::log(a);
    case Op::log2:
      domain(!(a <= 0), "logarithm");
      return std::log2(a);
    case Op::sin:
      domain(!std::isinf(a), "sine");
      return std::sin(a);
    case Op::cos:
      domain(!std::isinf(a), "cosine");
      return std::cos(a);
    case Op::tan:
      domain(!std::isinf(a), "tangent");
      return std::tan(a);
    case Op::tanh:
      return std::tanh(a);
    default:
      throw InternalError("not an operator of one real");
  }
}

bool python_compare(Compare op, double a, double b) {
  switch (op) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
  }
  __builtin_unreachable();
}

std::int64_t to_integer(double whole) {
  constexpr double kLimit = 9223372036854775808.0;  // 2**63
  if (!(whole >= -kLimit && whole < kLimit)) {
    throw_arithmetic(fmt::format("{} cannot be an integer of 64 bits", whole));
  }
  return static_cast<std::int64_t>(whole);
}

}  // namespace modelport::shape::detail
