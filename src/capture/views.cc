// Views and writes in a functional graph: a stale view is read by replaying its chain of view
// operators on the memory's newest base; a write through a view rebuilds the base from the inside
// out.
#include <algorithm>
#include <utility>

#include "capture/session.h"
#include "ops/table/names.h"
#include "ops/table/op.h"

namespace modelport::capture {

using shape::Int;

namespace {

ir::Arg value_arg(ir::ValueId id) { return ir::Arg{id}; }

ir::Arg size_list(const std::vector<Int>& sizes) {
  ir::ArgList list;
  for (const Int& size : sizes) list.push_back({size});
  return {std::move(list)};
}

const ir::Arg* find(const ViewStep& step, std::string_view name) {
  for (const ir::NamedArg& arg : step.args) {
    if (arg.name == name) return &arg.arg;
  }
  return nullptr;
}

Int int_arg(const ViewStep& step, std::string_view name, std::int64_t otherwise) {
  const ir::Arg* arg = find(step, name);
  const Int* value = arg ? arg->get<Int>() : nullptr;
  return value ? *value : Int(otherwise);
}

std::int64_t axis_arg(const ViewStep& step, std::string_view name, std::int64_t otherwise) {
  const std::int64_t axis = int_arg(step, name, otherwise).constant().value_or(0);
  return axis < 0 ? axis + static_cast<std::int64_t>(step.from.shape.size()) : axis;
}

std::vector<std::int64_t> inverse_permutation(const ViewStep& step) {
  std::vector<std::int64_t> inverse(step.from.shape.size());
  const ir::ArgList& dims = *find(step, "dims")->get<ir::ArgList>();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    std::int64_t from = *dims[i].get<Int>()->constant();
    if (from < 0) from += static_cast<std::int64_t>(inverse.size());
    inverse[from] = static_cast<std::int64_t>(i);
  }
  return inverse;
}

/// Where a piece of a list (split, chunk) starts and ends along its axis.
std::pair<Int, Int> piece_bounds(const ViewStep& step, std::int64_t axis) {
  Int start = 0;
  const auto size = [&](std::size_t i) {
    return std::get<ir::TensorType>(step.results[i]).shape[axis];
  };
  for (std::size_t i = 0; i < step.result; ++i) start += size(i);
  return {start, start + size(step.result)};
}

/// One write through one view: `parent` with the viewed part replaced by `piece`.
class WriteBack {
 public:
  WriteBack(Session& session, const ViewStep& step, ir::ValueId parent, ir::ValueId piece)
      : session_(session), step_(step), parent_(parent), piece_(piece) {}

  ir::ValueId run() {
    const ops::OpDef* row = ops::find_op(step_.op);
    const ops::PutBack put_back = row == nullptr ? ops::PutBack{} : row->put_back;
    switch (put_back.how) {
      case ops::PutBack::How::unknown:
        break;
      case ops::PutBack::How::reshape:
        return emit(ops::names::kReshape, {self(piece_), {"shape", size_list(step_.from.shape)}});
      case ops::PutBack::How::itself:
        return emit(step_.op, with_self(piece_));
      case ops::PutBack::How::inverse:
        return emit(put_back.op, {self(piece_)});
      case ops::PutBack::How::permute:
        return unpermute();
      case ops::PutBack::How::scatter:
        return scatter(put_back.op);
      case ops::PutBack::How::narrow:
        return narrow();
      case ops::PutBack::How::unbind:
        return unbind();
      case ops::PutBack::How::split:
        return split();
    }
    session_.fail(Code::capture_failed, "the model writes through a view made by " + step_.op,
                  {"write to a copy instead: x = x.clone() before the assignment"});
  }

 private:
  static ir::NamedArg self(ir::ValueId id) { return {"self", value_arg(id)}; }
  std::vector<ir::NamedArg> with_self(ir::ValueId id) const {
    std::vector<ir::NamedArg> args{{step_.self_name, value_arg(id)}};
    args.insert(args.end(), step_.args.begin(), step_.args.end());
    return args;
  }
  ir::ValueId emit(std::string_view op, std::vector<ir::NamedArg> args) {
    return session_.add_node(op, std::move(args), step_.from);
  }
  ir::ValueId scatter(std::string_view op) {
    std::vector<ir::NamedArg> args{self(parent_), {"src", value_arg(piece_)}};
    args.insert(args.end(), step_.args.begin(), step_.args.end());
    return emit(op, std::move(args));
  }
  ir::ValueId slice(std::int64_t axis, const Int& start, const Int& end) {
    return emit(ops::names::kSliceScatter, {self(parent_),
                                            {"src", value_arg(piece_)},
                                            {"dim", {Int(axis)}},
                                            {"start", {start}},
                                            {"end", {end}}});
  }
  ir::ValueId unpermute() {
    ir::ArgList dims;
    for (const std::int64_t axis : inverse_permutation(step_)) dims.push_back({Int(axis)});
    return emit(ops::names::kPermute, {self(piece_), {"dims", {std::move(dims)}}});
  }
  ir::ValueId narrow() {
    const Int start = int_arg(step_, "start", 0);
    return slice(axis_arg(step_, "dim", 0), start, start + int_arg(step_, "length", 0));
  }
  ir::ValueId unbind() {
    return emit(ops::names::kSelectScatter,
                {self(parent_),
                 {"src", value_arg(piece_)},
                 {"dim", {Int(axis_arg(step_, "dim", 0))}},
                 {"index", {Int(static_cast<std::int64_t>(step_.result))}}});
  }
  ir::ValueId split() {
    const std::int64_t axis = axis_arg(step_, "dim", 0);
    const auto [start, end] = piece_bounds(step_, axis);
    return slice(axis, start, end);
  }

  Session& session_;
  const ViewStep& step_;
  ir::ValueId parent_;
  ir::ValueId piece_;
};

std::vector<const ViewStep*> steps_from_base(const std::shared_ptr<const ViewStep>& last) {
  std::vector<const ViewStep*> steps;
  for (const ViewStep* step = last.get(); step != nullptr; step = step->before.get())
    steps.push_back(step);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

ir::ValueId replay(Session& session, const ViewStep& step, ir::ValueId from) {
  std::vector<ir::NamedArg> args{{step.self_name, value_arg(from)}};
  args.insert(args.end(), step.args.begin(), step.args.end());
  const ir::NodeId node =
      session.graph().add_node(step.op, std::move(args), step.results, session.place());
  return session.graph().node(node).results[step.result];
}

}  // namespace

void Session::ask_what_is_shared(const Trace& trace) {
  Memory& memory = *trace.memory;
  std::vector<std::shared_ptr<const CopiedWhere>> asked = std::exchange(memory.asked_when_read, {});
  if (trace.version != memory.version) {
    const auto stale = std::exchange(memory.asked_when_stale, {});
    asked.insert(asked.end(), stale.begin(), stale.end());
    for (const ViewStep* step = trace.view.get(); step != nullptr; step = step->before.get())
      asked.push_back(step->copied_where);
  }
  for (const std::shared_ptr<const CopiedWhere>& where : asked) {
    if (where == nullptr) continue;
    for (const shape::Bool& condition : *where) settle(condition);
  }
}

ir::ValueId Session::current_value(Trace& trace) {
  ask_what_is_shared(trace);
  if (trace.version == trace.memory->version) return trace.value;
  ir::ValueId value = trace.memory->base;
  for (const ViewStep* step : steps_from_base(trace.view)) value = replay(*this, *step, value);
  trace.value = value;
  trace.version = trace.memory->version;
  return value;
}

void Session::write(const at::Tensor& tensor, ir::ValueId value) {
  std::optional<Trace> found = trace_of(tensor);
  if (!found) throw InternalError("a write to a tensor that the graph does not know");
  Trace trace = *found;
  for (const auto& [storage, owner] : viewed_) {
    if (owner.memory != trace.memory) continue;
    promote_if_viewed(owner.tensor);
    break;
  }
  const std::vector<const ViewStep*> steps = steps_from_base(trace.view);
  std::vector<ir::ValueId> parents{trace.memory->base};
  for (std::size_t i = 0; i + 1 < steps.size(); ++i)
    parents.push_back(replay(*this, *steps[i], parents.back()));
  ir::ValueId rebuilt = value;
  for (std::size_t i = steps.size(); i-- > 0;)
    rebuilt = WriteBack(*this, *steps[i], parents[i], rebuilt).run();
  trace.memory->base = rebuilt;
  ++trace.memory->version;
  for (const Memory::Copy& copy : trace.memory->copies) {
    if (const auto other = copy.other.lock()) other->asked_when_read.push_back(copy.where);
  }
  for (const ViewStep* step : steps) {
    if (step->copied_where != nullptr) trace.memory->asked_when_stale.push_back(step->copied_where);
  }
  if (TracedTensor* traced = as_traced(tensor)) {
    traced->trace().value = value;
    traced->trace().version = trace.memory->version;
  }
}

Session::Owner Session::owner_of_plain(const at::Tensor& plain) {
  // The whole memory becomes a value, so that other tensors which look at it see the write.
  const at::Tensor base =
      plain.is_contiguous() && plain.storage_offset() == 0 &&
              plain.numel() * static_cast<std::int64_t>(plain.itemsize()) ==
                  static_cast<std::int64_t>(plain.storage().nbytes())
          ? plain
          : plain.as_strided(
                {static_cast<std::int64_t>(plain.storage().nbytes() / plain.itemsize())}, {1}, 0);
  return {base, std::make_shared<Memory>(Memory{.base = constant_for(base)}), std::nullopt, {}};
}

void Session::promote(const at::Tensor& plain) {
  if (promote_if_viewed(plain)) return;
  owners_by_storage_[plain.storage().unsafeGetStorageImpl()].push_back(owners_.size());
  owners_.push_back(owner_of_plain(plain));
}

bool Session::promote_if_viewed(const at::Tensor& plain) {
  if (!plain.has_storage()) return false;
  auto found = viewed_.extract(plain.storage().unsafeGetStorageImpl());
  if (found.empty()) return false;
  owners_by_storage_[found.key()].push_back(owners_.size());
  owners_.push_back(std::move(found.mapped()));
  return true;
}

std::optional<Trace> Session::trace_of_plain(const at::Tensor& plain) {
  if (!plain.has_storage() || plain.is_meta()) return std::nullopt;
  const c10::StorageImpl* storage = plain.storage().unsafeGetStorageImpl();
  auto found = viewed_.find(storage);
  if (found == viewed_.end()) found = viewed_.emplace(storage, owner_of_plain(plain)).first;
  return trace_in(found->second, plain);
}

}  // namespace modelport::capture
