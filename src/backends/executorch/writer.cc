#include "backends/executorch/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backends/executorch/flatbuffer.h"
#include "backends/executorch/layout.h"
#include "backends/executorch/plan.h"
#include "base/json.h"

namespace modelport::executorch {
namespace {

/// A piece of a segment, and what is written there.
struct Piece {
  std::uint64_t offset = 0;
  const Blob* blob = nullptr;
};

class SegmentList {
 public:
  /// Begins a segment; what is added goes into it.
  std::size_t begin() {
    segments_.push_back({aligned(end_, kSegmentAlignment), 0});
    return segments_.size() - 1;
  }
  /// The offset in the segment.
  std::uint64_t add(const Blob& blob, std::uint64_t alignment) {
    Segment& segment = segments_.back();
    const std::uint64_t offset = aligned(segment.bytes, alignment);
    pieces_.push_back({segment.offset + offset, &blob});
    segment.bytes = offset + blob.bytes;
    end_ = segment.offset + segment.bytes;
    return offset;
  }
  /// A segment that is a part of another one.
  void begin_within(std::size_t segment, std::uint64_t offset, std::uint64_t bytes) {
    segments_.push_back({segments_[segment].offset + offset, bytes});
  }
  const std::vector<Segment>& all() const { return segments_; }

  /// Behind the tables, whose length is the beginning of the first segment.
  void write(weights::Sink& sink) const {
    const std::uint64_t base = sink.written();
    for (const Piece& piece : pieces_) {
      pad_to(sink, base + piece.offset);
      piece.blob->write(sink);
      if (sink.written() != base + piece.offset + piece.blob->bytes)
        throw InternalError("a tensor has another length than its type says");
    }
  }

 private:
  std::vector<Segment> segments_;
  std::vector<Piece> pieces_;
  std::uint64_t end_ = 0;
};

/// The names of the outputs, those of checks included.
std::vector<std::string> output_names(const ir::Graph& graph, bool with_checks) {
  std::vector<std::string> names;
  for (const ir::Output& output : graph.outputs) names.push_back(output.name);
  for (std::size_t i = 0; with_checks && i < graph.assumptions.size(); ++i)
    names.push_back(fmt::format("check.{}", i));
  return names;
}

std::vector<ConstantMethod> records_of(const ExecutorchRequest& request) {
  Json limits = Json::object();
  Json outputs = Json::object();
  for (const MethodSource& source : request.methods) {
    const bool with_checks = request.options.checks_as_outputs;
    limits[source.name] = Json::parse(signature::to_json(limits_of(source, with_checks)));
    outputs[source.name] = output_names(source.graph, with_checks);
  }
  return {{std::string(kLimitsMethod), {limits.dump()}},
          {std::string(kOutputsMethod), {outputs.dump()}}};
}

Method method_of(const ConstantMethod& constant, ProgramData& data) {
  Method method{.name = constant.name};
  for (const ConstantMethod::Item& item : constant.items) {
    const auto* literal = std::get_if<TensorLiteral>(&item);
    if (literal != nullptr) {
      Tensor tensor{
          .dtype = literal->dtype, .sizes = literal->shape, .storage = method.storages.size()};
      for (const std::int64_t size : literal->shape) tensor.shape.emplace_back(size);
      method.storages.push_back(
          {.kind = Storage::Kind::constant,
           .entry = data.constant(literal->dtype, literal->shape, literal->bytes),
           .bytes = literal->bytes.size()});
      method.outputs.push_back(method.add_value(std::move(tensor)));
    } else if (const auto* number = std::get_if<std::int64_t>(&item)) {
      method.outputs.push_back(method.add_value(*number));
    } else if (const auto* truth = std::get_if<bool>(&item)) {
      method.outputs.push_back(method.add_value(*truth));
    } else if (const auto* real = std::get_if<double>(&item)) {
      method.outputs.push_back(method.add_value(*real));
    } else {
      method.outputs.push_back(method.add_value(std::get<std::string>(item)));
    }
  }
  return method;
}

void refuse_names_taken_twice(const ExecutorchRequest& request) {
  std::set<std::string_view> names{kLimitsMethod, kOutputsMethod};
  const auto take = [&](const std::string& name) {
    if (!name.empty() && names.insert(name).second) return;
    throw ExportError({.code = Code::bad_input,
                       .what = fmt::format("two methods are called '{}'", name),
                       .ways_out = {"give each method a name of its own"}});
  };
  for (const MethodSource& source : request.methods) take(source.name);
  for (const ConstantMethod& constant : request.constant_methods) take(constant.name);
}

MethodWritten report_of(const Method& method) {
  MethodWritten report{.name = method.name,
                       .arena_bytes = method.arena_bytes,
                       .least_arena_bytes = least_arena_bytes(method),
                       .instructions = method.instructions.size(),
                       .assumed_bounds = method.assumed_bounds};
  for (const Storage& storage : method.storages) {
    if (storage.kind == Storage::Kind::state) report.state_bytes += storage.bytes;
  }
  return report;
}

std::vector<Method> methods_of(const ExecutorchRequest& request, ProgramData& data,
                               ExecutorchWritten& written) {
  const EmitOptions options{.external_constants = request.options.weights_beside,
                            .payloads = request.delegates.size(),
                            .checks_as_outputs = request.options.checks_as_outputs};
  std::vector<Method> methods;
  for (const MethodSource& source : request.methods) {
    Method& method = methods.emplace_back(emit(source, options, data));
    plan(method);
    written.methods.push_back(report_of(method));
  }
  for (const ConstantMethod& constant : request.constant_methods)
    methods.push_back(method_of(constant, data));
  if (!request.options.with_limits) return methods;
  for (const ConstantMethod& record : records_of(request))
    methods.push_back(method_of(record, data));
  return methods;
}

/// Constants come first, as segment 0, even where there are none.
ProgramLayout layout_of(const ExecutorchRequest& request, const ProgramData& data,
                        SegmentList& segments) {
  ProgramLayout layout;
  segments.begin();
  if (!request.options.weights_beside) {
    for (const ConstantEntry& constant : data.constants())
      layout.constants.push_back(segments.add(constant.blob, kTensorAlignment));
  }
  if (!data.initial_values().empty()) layout.initial_segment = segments.begin();
  for (const Blob& initial : data.initial_values())
    layout.initial_values.push_back(segments.add(initial, kTensorAlignment));
  layout.first_delegate = segments.all().size();
  for (const Delegate& delegate : data.delegates()) {
    segments.begin();
    segments.add(delegate.payload, kTensorAlignment);
  }
  layout.first_named = segments.all().size();
  for (const NamedBlob& named : data.named_data()) {
    // A weight that a kernel and a delegate have in common is in the file once.
    const auto constant = data.find_constant(named);
    if (constant && !request.options.weights_beside) {
      segments.begin_within(0, layout.constants[*constant], named.blob.bytes);
      continue;
    }
    segments.begin();
    segments.add(named.blob, kTensorAlignment);
  }
  layout.segments = segments.all();
  return layout;
}

void write_data(const std::vector<ConstantEntry>& constants, weights::Sink& sink) {
  SegmentList segments;
  for (const ConstantEntry& constant : constants) {
    segments.begin();
    segments.add(constant.blob, kTensorAlignment);
  }
  sink.write(data_tables(constants, segments.all()));
  segments.write(sink);
}

}  // namespace

signature::Limits limits_of(const MethodSource& source, bool with_checks) {
  signature::Limits limits = signature::limits_of(source.graph);
  limits.frozen = source.frozen;
  const Bounds bounds(source.graph, source.bounds);
  for (shape::Dim& dim : limits.dims) {
    const auto range = bounds.ranges().find(dim.name);
    if (range != bounds.ranges().end()) dim.range.hi = range->second.hi;
  }
  for (std::size_t i = 0; with_checks && i < source.graph.assumptions.size(); ++i) {
    const ir::Assumption& assumption = source.graph.assumptions[i];
    const ir::Place& place = source.graph.place(assumption.place);
    limits.checks.push_back(
        {fmt::format("check.{}", i), assumption.what, place.where, place.module_path});
  }
  return limits;
}

MethodWritten measure(const MethodSource& source) {
  std::vector<weights::ConversionLoss> losses;
  ProgramData data(losses);
  Method method = emit(source, {}, data);
  plan(method);
  return report_of(method);
}

ExecutorchWritten write_executorch(const ExecutorchRequest& request,
                                   const std::filesystem::path& path) {
  refuse_names_taken_twice(request);
  ExecutorchWritten written;
  ProgramData data(written.losses, {.compare_all = request.methods.size() > 1});
  for (const Delegate& delegate : request.delegates) data.add_delegate(delegate);
  for (const NamedBlob& named : request.named_data) data.add_named(named);
  const std::vector<Method> methods = methods_of(request, data, written);
  SegmentList segments;
  const ProgramLayout layout = layout_of(request, data, segments);
  weights::AtomicFile program(path);
  program.write(program_tables(methods, data, layout));
  segments.write(program);
  program.finish();
  written.files.push_back(path);
  if (request.options.weights_beside) {
    std::filesystem::path beside = path;
    weights::AtomicFile weights(beside.replace_extension(".ptd"));
    write_data(data.constants(), weights);
    weights.finish();
    // Both are whole: now they take their places, the program last.
    weights.commit();
    written.files.push_back(weights.path());
  }
  program.commit();
  return written;
}

}  // namespace modelport::executorch
