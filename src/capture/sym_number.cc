#include "capture/sym_number.h"

#include "capture/session.h"

namespace modelport::capture {

using shape::Bool;
using shape::Compare;
using shape::Int;
using shape::Real;

namespace {

WrapperReader wrapper_reader = [](const c10::SymNode&) { return c10::SymNode(); };

bool is_real(const Number& x) { return std::holds_alternative<Real>(x); }

Int as_int(const Number& x) {
  if (const Int* i = std::get_if<Int>(&x)) return *i;
  if (const Bool* b = std::get_if<Bool>(&x)) return shape::select(*b, Int(1), Int(0));
  return shape::trunc(std::get<Real>(x));
}

Real as_real(const Number& x) {
  if (const Real* r = std::get_if<Real>(&x)) return *r;
  return Real(as_int(x));
}

Bool as_bool(const Number& x) {
  if (const Bool* b = std::get_if<Bool>(&x)) return *b;
  if (const Int* i = std::get_if<Int>(&x)) return Bool::compare(Compare::ne, *i, Int(0));
  return Bool::compare(Compare::ne, std::get<Real>(x), Real(0.0));
}

Number compare(Compare op, const Number& a, const Number& b) {
  if (is_real(a) || is_real(b)) return Bool::compare(op, as_real(a), as_real(b));
  return Bool::compare(op, as_int(a), as_int(b));
}

Number power(const Number& a, const Number& b) {
  const Int* exponent = std::get_if<Int>(&b);
  const auto plain = exponent ? exponent->constant() : std::nullopt;
  if (!is_real(a) && plain && *plain >= 0) return shape::pow(as_int(a), *plain);
  return Real::binary(Real::Op::pow, as_real(a), as_real(b));
}

}  // namespace

void set_wrapper_reader(WrapperReader reader) { wrapper_reader = reader; }

Number number_of(const c10::SymNode& node) {
  if (auto* ours = dynamic_cast<SymNumber*>(node.get())) return ours->number();
  if (const c10::SymNode inside = wrapper_reader(node)) return number_of(inside);
  if (const auto value = node->constant_int()) return Int(*value);
  if (const auto value = node->constant_bool()) return Bool(*value);
  if (node->is_float()) return Real(node->guard_float(__FILE__, __LINE__));
  throw InternalError("a symbolic number of another tracer: " + node->str());
}

Number number_of(const c10::SymInt& value) {
  if (const auto plain = value.maybe_as_int()) return Int(*plain);
  return number_of(value.toSymNode());
}

Number number_of(const c10::SymFloat& value) {
  return value.is_symbolic() ? number_of(value.toSymNodeImpl())
                             : Number(Real(value.expect_float()));
}

Number number_of(const c10::SymBool& value) {
  return value.is_heap_allocated() ? number_of(value.toSymNodeImpl())
                                   : Number(Bool(value.expect_bool()));
}

Int int_of(const c10::SymInt& value) { return as_int(number_of(value)); }

c10::SymInt to_symint(const std::shared_ptr<Session>& session, const Int& value) {
  if (const auto plain = value.constant()) return c10::SymInt(*plain);
  return c10::SymInt(c10::SymNode(c10::make_intrusive<SymNumber>(session, value)));
}

c10::SymFloat to_symfloat(const std::shared_ptr<Session>& session, const Real& value) {
  if (const auto plain = value.constant()) return c10::SymFloat(*plain);
  return c10::SymFloat(c10::SymNode(c10::make_intrusive<SymNumber>(session, value)));
}

c10::SymBool to_symbool(const std::shared_ptr<Session>& session, const Bool& value) {
  if (const auto plain = value.constant()) return c10::SymBool(*plain);
  return c10::SymBool(c10::SymNode(c10::make_intrusive<SymNumber>(session, value)));
}

c10::SymNode SymNumber::make(Number number) const {
  return c10::make_intrusive<SymNumber>(session_, std::move(number));
}

c10::SymNode SymNumber::add(const c10::SymNode& other) {
  const Number b = number_of(other);
  if (is_real(number_) || is_real(b)) {
    return make(Real::binary(Real::Op::add, as_real(number_), as_real(b)));
  }
  return make(as_int(number_) + as_int(b));
}

c10::SymNode SymNumber::sub(const c10::SymNode& other) {
  const Number b = number_of(other);
  if (is_real(number_) || is_real(b)) {
    return make(Real::binary(Real::Op::sub, as_real(number_), as_real(b)));
  }
  return make(as_int(number_) - as_int(b));
}

c10::SymNode SymNumber::mul(const c10::SymNode& other) {
  const Number b = number_of(other);
  if (is_real(number_) || is_real(b)) {
    return make(Real::binary(Real::Op::mul, as_real(number_), as_real(b)));
  }
  return make(as_int(number_) * as_int(b));
}

c10::SymNode SymNumber::truediv(const c10::SymNode& other) {
  return make(Real::binary(Real::Op::div, as_real(number_), as_real(number_of(other))));
}

c10::SymNode SymNumber::pow(const c10::SymNode& other) {
  return make(power(number_, number_of(other)));
}

c10::SymNode SymNumber::floordiv(const c10::SymNode& other) {
  const Number b = number_of(other);
  if (is_real(number_) || is_real(b)) {
    const Real quotient = Real::binary(Real::Op::div, as_real(number_), as_real(b));
    return make(Real(shape::floor(quotient)));
  }
  return make(shape::floor_div(as_int(number_), as_int(b)));
}

c10::SymNode SymNumber::mod(const c10::SymNode& other) {
  return make(shape::mod(as_int(number_), as_int(number_of(other))));
}

c10::SymNode SymNumber::eq(const c10::SymNode& o) {
  return make(compare(Compare::eq, number_, number_of(o)));
}
c10::SymNode SymNumber::ne(const c10::SymNode& o) {
  return make(compare(Compare::ne, number_, number_of(o)));
}
c10::SymNode SymNumber::gt(const c10::SymNode& o) {
  return make(compare(Compare::gt, number_, number_of(o)));
}
c10::SymNode SymNumber::lt(const c10::SymNode& o) {
  return make(compare(Compare::lt, number_, number_of(o)));
}
c10::SymNode SymNumber::le(const c10::SymNode& o) {
  return make(compare(Compare::le, number_, number_of(o)));
}
c10::SymNode SymNumber::ge(const c10::SymNode& o) {
  return make(compare(Compare::ge, number_, number_of(o)));
}

c10::SymNode SymNumber::ceil() {
  return is_real(number_) ? make(shape::ceil(as_real(number_))) : clone();
}
c10::SymNode SymNumber::floor() {
  return is_real(number_) ? make(shape::floor(as_real(number_))) : clone();
}
c10::SymNode SymNumber::trunc() {
  return is_real(number_) ? make(shape::trunc(as_real(number_))) : clone();
}
c10::SymNode SymNumber::round() {
  return is_real(number_) ? make(shape::round(as_real(number_))) : clone();
}
c10::SymNode SymNumber::apply(Real::Op op) { return make(Real::unary(op, as_real(number_))); }

c10::SymNode SymNumber::neg() {
  if (is_real(number_)) return make(Real::unary(Real::Op::neg, as_real(number_)));
  return make(-as_int(number_));
}

c10::SymNode SymNumber::sym_min(const c10::SymNode& other) {
  const Number b = number_of(other);
  if (is_real(number_) || is_real(b)) {
    return make(Real::binary(Real::Op::min, as_real(number_), as_real(b)));
  }
  return make(shape::min(as_int(number_), as_int(b)));
}

c10::SymNode SymNumber::sym_max(const c10::SymNode& other) {
  const Number b = number_of(other);
  if (is_real(number_) || is_real(b)) {
    return make(Real::binary(Real::Op::max, as_real(number_), as_real(b)));
  }
  return make(shape::max(as_int(number_), as_int(b)));
}

c10::SymNode SymNumber::sym_or(const c10::SymNode& o) {
  return make(as_bool(number_) || as_bool(number_of(o)));
}
c10::SymNode SymNumber::sym_and(const c10::SymNode& o) {
  return make(as_bool(number_) && as_bool(number_of(o)));
}
c10::SymNode SymNumber::sym_not() { return make(!as_bool(number_)); }

c10::SymNode SymNumber::sym_ite(const c10::SymNode& then_value, const c10::SymNode& else_value) {
  const Number a = number_of(then_value);
  const Number b = number_of(else_value);
  if (is_real(a) || is_real(b)) return make(Real::select(as_bool(number_), as_real(a), as_real(b)));
  return make(shape::select(as_bool(number_), as_int(a), as_int(b)));
}

c10::SymNode SymNumber::clone() { return make(number_); }
c10::SymNode SymNumber::sym_float() { return make(as_real(number_)); }
c10::SymNode SymNumber::wrap_int(int64_t value) { return make(Int(value)); }
c10::SymNode SymNumber::wrap_float(double value) { return make(Real(value)); }
c10::SymNode SymNumber::wrap_bool(bool value) { return make(Bool(value)); }

int64_t SymNumber::guard_int(const char*, int64_t) { return session_->pin(as_int(number_)); }
bool SymNumber::guard_bool(const char*, int64_t) { return session_->settle(as_bool(number_)); }
double SymNumber::guard_float(const char*, int64_t) { return session_->pin(as_real(number_)); }

bool SymNumber::guard_or_false(const char* file, int64_t line) {
  if (const auto known = session_->decide(as_bool(number_))) return *known;
  return session_->dims().depends_on_data(as_bool(number_)) ? false : guard_bool(file, line);
}

bool SymNumber::guard_or_true(const char* file, int64_t line) {
  if (const auto known = session_->decide(as_bool(number_))) return *known;
  return session_->dims().depends_on_data(as_bool(number_)) ? true : guard_bool(file, line);
}

bool SymNumber::statically_known_true(const char*, int64_t) {
  return session_->decide(as_bool(number_)).value_or(false);
}

std::string SymNumber::str() {
  return std::visit([](const auto& x) { return shape::print(x); }, number_);
}

std::optional<int64_t> SymNumber::constant_int() {
  const Int* i = std::get_if<Int>(&number_);
  return i ? i->constant() : std::nullopt;
}

std::optional<bool> SymNumber::constant_bool() {
  const Bool* b = std::get_if<Bool>(&number_);
  return b ? b->constant() : std::nullopt;
}

bool SymNumber::is_constant() {
  return std::visit([](const auto& x) { return x.constant().has_value(); }, number_);
}

}  // namespace modelport::capture
