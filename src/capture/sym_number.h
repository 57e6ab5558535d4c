// Symbolic numbers as torch sees them: a SymNodeImpl over our expressions. Python's torch.SymInt
// works on top of it.
#pragma once

#include <c10/core/SymBool.h>
#include <c10/core/SymFloat.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymNodeImpl.h>

#include <memory>
#include <variant>

#include "shape/dims.h"

namespace modelport::capture {

class Session;  // session.h: owns the dimensions and the graph of one capture

using Number = std::variant<shape::Int, shape::Real, shape::Bool>;

class SymNumber final : public c10::SymNodeImpl {
 public:
  SymNumber(std::shared_ptr<Session> session, Number number)
      : session_(std::move(session)), number_(std::move(number)) {}

  const Number& number() const { return number_; }
  const std::shared_ptr<Session>& session() const { return session_; }

  bool is_int() override { return std::holds_alternative<shape::Int>(number_); }
  bool is_bool() override { return std::holds_alternative<shape::Bool>(number_); }
  bool is_float() override { return std::holds_alternative<shape::Real>(number_); }

  c10::SymNode add(const c10::SymNode& other) override;
  c10::SymNode sub(const c10::SymNode& other) override;
  c10::SymNode mul(const c10::SymNode& other) override;
  c10::SymNode truediv(const c10::SymNode& other) override;
  c10::SymNode pow(const c10::SymNode& other) override;
  c10::SymNode floordiv(const c10::SymNode& other) override;
  c10::SymNode mod(const c10::SymNode& other) override;
  c10::SymNode eq(const c10::SymNode& other) override;
  c10::SymNode ne(const c10::SymNode& other) override;
  c10::SymNode gt(const c10::SymNode& other) override;
  c10::SymNode lt(const c10::SymNode& other) override;
  c10::SymNode le(const c10::SymNode& other) override;
  c10::SymNode ge(const c10::SymNode& other) override;
  c10::SymNode ceil() override;
  c10::SymNode floor() override;
  c10::SymNode neg() override;
  c10::SymNode sym_min(const c10::SymNode& other) override;
  c10::SymNode sym_max(const c10::SymNode& other) override;
  c10::SymNode sym_or(const c10::SymNode& other) override;
  c10::SymNode sym_and(const c10::SymNode& other) override;
  c10::SymNode sym_not() override;
  c10::SymNode sym_ite(const c10::SymNode& then_value, const c10::SymNode& else_value) override;
  c10::SymNode clone() override;
  c10::SymNode sym_float() override;
  c10::SymNode wrap_int(int64_t value) override;
  c10::SymNode wrap_float(double value) override;
  c10::SymNode wrap_bool(bool value) override;

  int64_t guard_int(const char* file, int64_t line) override;
  bool guard_bool(const char* file, int64_t line) override;
  double guard_float(const char* file, int64_t line) override;
  bool guard_or_false(const char* file, int64_t line) override;
  bool guard_or_true(const char* file, int64_t line) override;
  bool statically_known_true(const char* file, int64_t line) override;
  int64_t int_() override { return guard_int("", 0); }
  bool bool_() override { return guard_bool("", 0); }
  bool has_hint() override { return true; }
  std::string str() override;
  std::optional<int64_t> constant_int() override;
  std::optional<bool> constant_bool() override;
  std::optional<int64_t> maybe_as_int() override { return constant_int(); }
  bool is_constant() override;
  bool is_symbolic() override { return true; }

  /// The methods that torch._C._SymNode does not pass on; the binding adds them.
  c10::SymNode trunc();
  c10::SymNode round();
  c10::SymNode apply(shape::Real::Op op);

 private:
  c10::SymNode make(Number number) const;
  std::shared_ptr<Session> session_;
  Number number_;
};

/// Torch's Python layer hands symbolic floats and bools over in a wrapper of its own; the binding
/// says how to look inside. The reader gives the node in the wrapper, or null.
using WrapperReader = c10::SymNode (*)(const c10::SymNode&);
void set_wrapper_reader(WrapperReader reader);

/// Our number behind a torch symbol; foreign constants (ConstantSymNodeImpl) become plain numbers.
Number number_of(const c10::SymNode& node);
Number number_of(const c10::SymInt& value);
Number number_of(const c10::SymFloat& value);
Number number_of(const c10::SymBool& value);
shape::Int int_of(const c10::SymInt& value);

c10::SymInt to_symint(const std::shared_ptr<Session>& session, const shape::Int& value);
c10::SymFloat to_symfloat(const std::shared_ptr<Session>& session, const shape::Real& value);
c10::SymBool to_symbool(const std::shared_ptr<Session>& session, const shape::Bool& value);

}  // namespace modelport::capture
