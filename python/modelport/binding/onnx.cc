// ONNX models: programs lowered and written.
#include <pybind11/stl.h>

#include <algorithm>

#include "backends/onnx/value_names.h"
#include "backends/onnx/writer.h"
#include "base/mapped_file.h"
#include "binding/program.h"
#include "capture/torch_dtype.h"
#include "ir/text.h"
#include "passes/onnx_pipeline.h"
#include "signature/limits.h"

namespace modelport::binding {

namespace {

/// A lowered program: the graph in ONNX's operators, and the program whose weights it uses.
struct OnnxGraph {
  ir::Graph graph;
  std::shared_ptr<Program> program;
  int opset = 0;
  std::vector<passes::FusionNote> notes = {};  // on fusions for onnxruntime
  std::optional<ir::Graph> tables = {};        // computes the weights that these added
};

/// Weights without axes whose number is in memory.
ops::fusions::KnownNumbers known_numbers(const Program& program) {
  ops::fusions::KnownNumbers known;
  for (const ir::ValueId id : program.graph.weights) {
    const ir::Value& weight = program.graph.value(id);
    const auto found = program.weights.find(weight.name);
    if (!weight.tensor().shape.empty() || found == program.weights.end()) continue;
    const at::Tensor& tensor = found->second;
    if (tensor.defined() && tensor.is_cpu() && !tensor.is_complex())
      known.emplace(weight.name, tensor.item<double>());
  }
  return known;
}

passes::InputCodes inputs_of(const std::string& form) {
  if (form == "dynamic") return passes::InputCodes::per_call;
  if (form == "static") return passes::InputCodes::fixed;
  return form == "measured" ? passes::InputCodes::measured : passes::InputCodes::none;
}

passes::WeightQuantization quantization_of(const py::dict& given) {
  std::vector<passes::Range> ranges;
  if (given.contains("ranges") && !given["ranges"].is_none())
    for (const auto& [low, high] :
         py::cast<std::vector<std::pair<double, double>>>(given["ranges"]))
      ranges.push_back({low, high});
  std::map<std::string, passes::StoredCodes> stored;
  if (given.contains("stored"))
    for (const auto& [name, form] :
         py::cast<std::map<std::string, std::tuple<int, std::int64_t, bool>>>(given["stored"]))
      stored[name] = {std::get<0>(form), std::get<1>(form), std::get<2>(form)};
  return {.bits = py::cast<int>(given["bits"]),
          .block = py::cast<std::int64_t>(given["block_size"]),
          .zero_points = !py::cast<bool>(given["symmetric"]),
          .search = py::cast<std::string>(given["method"]) != "range",
          .accuracy_level = py::cast<int>(given["accuracy_level"]),
          .inputs = inputs_of(py::cast<std::string>(given["form"])),
          .ranges = std::move(ranges),
          .stored = std::move(stored),
          .only_stored = given.contains("only_stored") && py::cast<bool>(given["only_stored"]),
          .layers = py::cast<std::map<std::string, int>>(given["layers"])};
}

void rename(OnnxGraph& lowered, const Names& inputs, const Names& outputs) {
  for (const ir::ValueId id : lowered.graph.inputs) {
    const auto found = inputs.find(lowered.graph.value(id).name);
    if (found != inputs.end()) lowered.graph.rename_input(id, found->second);
  }
  for (ir::Output& output : lowered.graph.outputs) {
    const auto found = outputs.find(output.name);
    if (found != outputs.end()) output.name = found->second;
  }
}

std::shared_ptr<OnnxGraph> lower_to_onnx(std::shared_ptr<Program> program, int opset, bool optimize,
                                         const Names& inputs, const Names& outputs,
                                         const Names& dims, bool keep_weights, bool limits_in_graph,
                                         bool last_logits, const std::string& operators,
                                         const std::string& processor, std::int64_t context_length,
                                         const std::optional<py::dict>& quantization) {
  const auto in_few_bits = quantization ? std::optional(quantization_of(*quantization))
                                        : std::optional<passes::WeightQuantization>();
  passes::FusionContext context{.known = known_numbers(*program), .context_length = context_length};
  const py::gil_scoped_release no_gil;
  auto lowered = std::make_shared<OnnxGraph>();
  ir::Graph source = program->graph;
  shape::Substitution renamed;
  for (const auto& [name, other] : dims) renamed.emplace(name, shape::Int::symbol(other));
  source.substitute(renamed);
  const auto chosen =
      operators == "onnxruntime" ? passes::Operators::onnxruntime : passes::Operators::standard;
  const auto laid_out_for =
      processor == "x86_64" ? passes::Processor::x86_64 : passes::Processor::any;
  lowered->graph = passes::to_onnx(source,
                                   {.opset = opset,
                                    .operators = chosen,
                                    .processor = laid_out_for,
                                    .optimize = optimize,
                                    .keep_weights = keep_weights,
                                    .quantization = in_few_bits,
                                    .limits_in_graph = limits_in_graph,
                                    .last_logits = last_logits},
                                   context);
  lowered->notes = std::move(context.notes);
  lowered->tables = std::move(context.tables);
  rename(*lowered, inputs, outputs);
  lowered->program = std::move(program);
  lowered->opset = opset;
  return lowered;
}

/// Nodes as the file has them: constants and weights that are stored transposed are initializers.
std::size_t node_count(const OnnxGraph& lowered) {
  const ir::Graph& graph = lowered.graph;
  const auto stored = [&](const ir::Node& node) {
    if (node.op == "onnx.Constant" || node.op == "modelport.quantized" ||
        node.op == "modelport.joined")
      return true;
    if (node.op != "onnx.Transpose") return false;
    const ir::ArgList& inputs = *node.find("inputs")->get<ir::ArgList>();
    const ir::Value& value = graph.value(*inputs[0].get<ir::ValueId>());
    return value.origin == ir::Origin::weight && value.tensor().shape.size() == 2;
  };
  return graph.nodes().size() -
         static_cast<std::size_t>(std::ranges::count_if(graph.nodes(), stored));
}

/// (fusion, why not or nothing, module path) for each place that was looked at.
py::list fusions(const OnnxGraph& lowered) {
  py::list notes;
  for (const passes::FusionNote& note : lowered.notes)
    notes.append(py::make_tuple(note.fusion, note.objection, note.module_path));
  return notes;
}

std::vector<std::string> input_names(const OnnxGraph& lowered) {
  std::vector<std::string> names;
  for (const ir::ValueId id : lowered.graph.inputs) names.push_back(lowered.graph.value(id).name);
  return names;
}

std::vector<std::string> output_names(const OnnxGraph& lowered) {
  std::vector<std::string> names;
  for (const ir::Output& output : lowered.graph.outputs) names.push_back(output.name);
  return names;
}

/// What the file is valid for, in the names that it has for everything.
std::string limits_of_graph(const OnnxGraph& lowered,
                            const std::vector<std::pair<std::string, py::object>>& frozen) {
  const ir::Graph& graph = lowered.graph;
  signature::Limits limits = signature::limits_of(graph);
  for (const auto& [name, value] : frozen) limits.frozen.push_back({name, constant_of(value)});
  const onnx::ValueNames names(graph);
  for (const ir::Assumption& assumption : graph.assumptions) {
    const ir::Place& place = graph.place(assumption.place);
    limits.checks.push_back(
        {names.of(assumption.value), assumption.what, place.where, place.module_path});
  }
  for (const ir::Mutation& mutation : graph.mutations)
    limits.state.push_back({names.of(mutation.buffer), names.of(mutation.value)});
  return signature::to_json(limits);
}

std::vector<at::ScalarType> output_dtypes(const OnnxGraph& lowered) {
  std::vector<at::ScalarType> dtypes;
  for (const ir::Output& output : lowered.graph.outputs)
    dtypes.push_back(
        capture::to_torch(lowered.graph.value(*output.value.get<ir::ValueId>()).tensor().dtype));
  return dtypes;
}

onnx::OnnxOptions options_of(const OnnxGraph& lowered, const py::dict& given) {
  onnx::OnnxOptions options{.opset = lowered.opset};
  const std::string weights = py::cast<std::string>(given["weights"]);
  options.weights = weights == "beside"   ? onnx::WeightLayout::beside
                    : weights == "inside" ? onnx::WeightLayout::inside
                    : weights == "linked" ? onnx::WeightLayout::linked
                                          : onnx::WeightLayout::left_out;
  options.shard_bytes = py::cast<std::uint64_t>(given["shard_bytes"]);
  options.weights_as_inputs = py::cast<bool>(given["weights_as_inputs"]);
  options.transpose_weights = py::cast<bool>(given["transpose_weights"]);
  options.data_suffix = py::cast<std::string>(given["data_suffix"]);
  options.home = py::cast<std::string>(given["home"]);
  options.producer_version = py::cast<std::string>(given["producer_version"]);
  options.metadata = py::cast<std::vector<std::pair<std::string, std::string>>>(given["metadata"]);
  return options;
}

/// From (file, offset, columns) by weight: as many numbers of the order, then energies, then rows
/// of the factor.
std::map<std::string, weights::InputFacts> inputs_of_products(const py::dict& given) {
  std::map<std::string, std::shared_ptr<const MappedFile>> open;
  std::map<std::string, weights::InputFacts> found;
  for (const auto& [name, value] : py::cast<py::dict>(given["inputs_of_products"])) {
    const auto [path, offset, columns] =
        py::cast<std::tuple<std::string, std::size_t, std::size_t>>(value);
    auto& file = open[path];
    if (file == nullptr) file = std::make_shared<const MappedFile>(MappedFile::open(path));
    const std::byte* bytes = file->bytes().subspan(offset, 4 * columns * (columns + 2)).data();
    const auto* numbers = reinterpret_cast<const float*>(bytes) + columns;
    found[py::cast<std::string>(name)] = {
        .energies = {numbers, columns},
        .order = {reinterpret_cast<const std::uint32_t*>(bytes), columns},
        .upper = {numbers + columns, columns * columns},
        .keep_alive = file};
  }
  return found;
}

onnx::OnnxRequest request_of(const OnnxGraph& lowered, const weights::WeightStore& store,
                             const py::dict& given) {
  return {.graph = lowered.graph,
          .weights = store,
          .options = options_of(lowered, given),
          .inputs = inputs_of_products(given)};
}

weights::WeightStore weights_of(const OnnxGraph& lowered, const py::dict& places,
                                const py::dict& made) {
  weights::WeightStore store = store_of(*lowered.program, lowered.graph, sources_of(places, made));
  if (lowered.tables) add_computed(*lowered.tables, store);
  return store;
}

py::tuple write_graph(const OnnxGraph& lowered, const std::string& path, const py::dict& given,
                      const py::dict& places, const py::dict& made) {
  const weights::WeightStore store = weights_of(lowered, places, made);
  const onnx::OnnxRequest request = request_of(lowered, store, given);
  onnx::OnnxWritten written;
  {
    const py::gil_scoped_release no_gil;
    written = onnx::write_onnx(request, path);
  }
  py::list files;
  for (const auto& file : written.files) files.append(file.string());
  py::list losses;
  for (const weights::ConversionLoss& loss : written.losses)
    losses.append(py::make_tuple(loss.name, std::string(name(loss.from)),
                                 std::string(name(loss.to)), loss.counts.overflows,
                                 loss.counts.underflows));
  return py::make_tuple(files, losses);
}

py::bytes bytes_of(const OnnxGraph& lowered, const py::dict& given, const py::dict& places,
                   const py::dict& made) {
  const weights::WeightStore store = weights_of(lowered, places, made);
  return onnx::onnx_bytes(request_of(lowered, store, given));
}

}  // namespace

void bind_onnx(py::module_& module) {
  py::class_<OnnxGraph, std::shared_ptr<OnnxGraph>>(module, "OnnxGraph")
      .def("__str__", [](const OnnxGraph& lowered) { return ir::print(lowered.graph); })
      .def_property_readonly("node_count", &node_count)
      .def("fusions", &fusions)
      .def("inputs", &input_names)
      .def("outputs", &output_names)
      .def("output_dtypes", &output_dtypes)
      .def("limits", &limits_of_graph)
      .def("dims", [](const OnnxGraph& lowered) { return dims_list(lowered.graph); })
      .def("write", &write_graph)
      .def("bytes", &bytes_of);
  module.def("lower_onnx", &lower_to_onnx, py::arg("program"), py::arg("opset"),
             py::arg("optimize"), py::arg("inputs") = Names{}, py::arg("outputs") = Names{},
             py::arg("dims") = Names{}, py::arg("keep_weights") = false,
             py::arg("limits_in_graph") = false, py::arg("last_logits") = false,
             py::arg("operators") = "standard", py::arg("processor") = "any",
             py::arg("context_length") = 0, py::arg("quantization") = py::none());
}

}  // namespace modelport::binding
