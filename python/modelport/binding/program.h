// A captured program as Python holds it: the graph, the tensors behind its weights, and what the
// capture saw.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding/errors.h"
#include "capture/interpreter.h"
#include "ir/graph.h"
#include "shape/widen.h"
#include "signature/signature.h"
#include "weights/store.h"

namespace modelport::binding {

namespace py = pybind11;

using Names = std::map<std::string, std::string>;  // what is called by another name

struct Program {
  ir::Graph graph;
  capture::WeightTensors weights;
  std::map<std::string, std::vector<std::string>> tied_names;  // of weights, by their first name
  std::vector<shape::Guard> guards;  // all that were met, those that became ranges included
  shape::Substitution replacements;  // symbols that guards unified or pinned
  shape::Dims dims;                  // as the capture left them; a trial's has what it met
  std::vector<shape::Guard> tried;   // what held in other captures that do the same
  std::vector<shape::AskedElsewhere> elsewhere;  // what they asked that this one never met
  std::vector<shape::Bool> decided;              // of the open ones: harmless, or required by now
};

void bind_program(py::module_& module);
void bind_trials(py::class_<Program, std::shared_ptr<Program>>& program);
void bind_session(py::module_& module);
void bind_symbols(py::module_& module);
void bind_pt2(py::module_& module);
void bind_onnx(py::module_& module);
void bind_executorch(py::module_& module);
void bind_lower_executorch(py::module_& module);
void bind_samples(py::module_& module);
void bind_quantize(py::module_& module);

/// A leaf of the model's call that is no tensor.
signature::Constant constant_of(const py::handle& value);
/// One dict a dimension: name, range, hint.
py::list dims_list(const ir::Graph& graph);
/// Where weights come from other than the memory of their tensors, by name; maybe in another type,
/// from which a writer converts them.
struct WeightSources {
  struct Place {
    std::string file;
    std::uint64_t offset = 0;
    at::ScalarType dtype = at::kFloat;
    std::shared_ptr<const weights::FoundFits> fits;
  };
  struct Made {
    at::ScalarType dtype = at::kFloat;
    std::shared_ptr<const py::function> make;  // gives the tensor
  };
  std::map<std::string, Place> files;
  std::map<std::string, Made> made;
};
/// From two dicts by name: (file, offset, dtype) and maybe scales that SearchAhead found, whose
/// memory is the caller's; and (dtype, function).
WeightSources sources_of(const py::dict& files, const py::dict& made);
/// The weights of a program as writers take them: mapped from files, made when they are written, or
/// in the memory of their tensors.
weights::WeightStore store_of(const Program& program, const WeightSources& sources = {});
/// And those that a lowering put in the place of others: they are made, too.
weights::WeightStore store_of(const Program& program, const ir::Graph& lowered,
                              const WeightSources& sources);
/// One whose bytes are those of the tensor.
weights::Weight in_memory(const std::string& name, const at::Tensor& tensor);
/// And those that a lowering added: what `program` computes from 0, 1, 2, ... and weights of the
/// store, by the names of its outputs.
void add_computed(const ir::Graph& program, weights::WeightStore& store);

}  // namespace modelport::binding
