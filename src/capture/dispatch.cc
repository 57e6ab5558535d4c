// The entry from torch: a fallback on a mode key that lies above every other, so that it sees each
// operator that the model calls, whole and once.
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <utility>

#include "capture/recorder.h"
#include "capture/recurrences.h"

namespace modelport::capture {

namespace {

constexpr c10::DispatchKey kMode = c10::DispatchKey::TESTING_ONLY_GenericMode;
thread_local Session* current_session = nullptr;

/// Operators on plain tensors only: they run as they are, and their results stay plain.
void run_plain(Session& session, const c10::OperatorHandle& op, const OpFacts& facts,
               torch::jit::Stack* stack) {
  const Paused paused;
  const std::size_t count = op.schema().arguments().size();
  for (const std::size_t index : facts.written) {
    const c10::IValue& target = torch::jit::peek(*stack, index, count);
    if (target.isTensor() && target.toTensor().defined()) session.before_write(target.toTensor());
  }
  op.callBoxed(stack);
}

void on_operator(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  Session* session = Recording::current();
  const std::size_t count = op.schema().arguments().size();
  const c10::ArrayRef<c10::IValue> operands(stack->data() + stack->size() - count, count);
  if (session == nullptr) {
    const Paused paused;
    op.callBoxed(stack);
    return;
  }
  if (has_functorch_wrapper(operands)) {
    // vmap: its rules call operators on the tensors inside, which come here again.
    op.redispatchBoxed(keys.remove(kMode), stack);
    return;
  }
  const OpFacts& facts = facts_of(op);
  for (const std::size_t index : facts.written) {
    if (operands[index].isTensor() && operands[index].toTensor().defined())
      session->promote_if_viewed(operands[index].toTensor());
  }
  const bool makes_noise = facts.random && facts.handling == Handling::record;
  if (!concerns_graph(*session, operands) && !makes_noise)
    return run_plain(*session, op, facts, stack);
  if (facts.handling == Handling::decompose) {
    op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
    return;
  }
  try {
    const Paused paused;  // what the recorder itself computes is not part of the model
    Recorder(*session, op, *stack).run();
  } catch (const ExportError& error) {
    session->keep_error(error);
    throw;
  }
}

}  // namespace

Recording::Recording(std::shared_ptr<Session> session)
    : session_(std::move(session)),
      outer_(std::exchange(current_session, session_.get())),
      outer_mode_(c10::impl::tls_is_dispatch_key_included(kMode)) {
  c10::impl::tls_set_dispatch_key_included(kMode, true);
}

Recording::~Recording() {
  c10::impl::tls_set_dispatch_key_included(kMode, outer_mode_);
  current_session = outer_;
}

Session* Recording::current() { return current_session; }

Paused::Paused() : mode_(c10::impl::tls_is_dispatch_key_included(kMode)) {
  c10::impl::tls_set_dispatch_key_included(kMode, false);
}
Paused::~Paused() { c10::impl::tls_set_dispatch_key_included(kMode, mode_); }

Resumed::Resumed() : mode_(c10::impl::tls_is_dispatch_key_included(kMode)) {
  c10::impl::tls_set_dispatch_key_included(kMode, true);
}
Resumed::~Resumed() { c10::impl::tls_set_dispatch_key_included(kMode, mode_); }

}  // namespace modelport::capture

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&modelport::capture::on_operator>());
}

// Composite, so that what a gradient of them is need not be said.
TORCH_LIBRARY_FRAGMENT(modelport, library) {
  using namespace modelport::capture;
  library.def("linear_recurrence(Tensor decay, Tensor input, Tensor? state, int dim) -> Tensor",
              &linear_recurrence);
  library.def("maximum_recurrence(Tensor decay, Tensor input, Tensor? state, int dim) -> Tensor",
              &maximum_recurrence);
}
