// Quantized weights as tensors.
#include "weights/quantize/quantize.h"

#include <ATen/ops/empty.h>
#include <pybind11/stl.h>

#include <cstring>

#include "base/error.h"
#include "binding/program.h"
#include "capture/torch_dtype.h"

namespace modelport::binding {

namespace {

/// Puts what is written into the memory of a tensor.
class TensorSink final : public weights::Sink {
 public:
  explicit TensorSink(const weights::TensorForm& form)
      : tensor_(at::empty(form.shape, at::dtype(capture::to_torch(form.dtype)))) {}
  const at::Tensor& tensor() const { return tensor_; }

 protected:
  void append(std::span<const std::byte> bytes) override {
    if (written() + bytes.size() > tensor_.nbytes()) {
      throw InternalError("more bytes than a quantized tensor has");
    }
    std::memcpy(static_cast<std::byte*>(tensor_.mutable_data_ptr()) + written(), bytes.data(),
                bytes.size());
  }

 private:
  at::Tensor tensor_;
};

weights::Scheme scheme_of(const std::string& layout, int bits, std::int64_t group, bool zero_points,
                          const std::string& choice, std::optional<at::ScalarType> scales) {
  const auto parsed = weights::parse_layout(layout);
  if (!parsed) throw InternalError("no quantized layout is named " + layout);
  if (choice != "range" && choice != "search") {
    throw InternalError("scales are chosen by range or search, not by " + choice);
  }
  weights::Scheme scheme{.layout = *parsed, .bits = bits, .group = group};
  scheme.zero_points = zero_points;
  scheme.choice = choice == "range" ? weights::ScaleChoice::range : weights::ScaleChoice::search;
  if (scales) scheme.scales = capture::from_torch(*scales);
  return scheme;
}

/// (codes, scales, zero points or None, error of the weights, error of the output or None)
py::tuple quantize(const std::string& name, const at::Tensor& tensor, const weights::Scheme& scheme,
                   const std::vector<float>& input_energies) {
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  weights::Weight weight{.name = name, .dtype = capture::from_torch(dense.scalar_type())};
  weight.shape.assign(dense.sizes().begin(), dense.sizes().end());
  weight.bytes = {static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()};
  const weights::QuantizedForm form = weights::quantized_form(weight, scheme);
  TensorSink codes(form.codes);
  TensorSink scales(form.scales);
  std::optional<TensorSink> zero_points;
  if (form.zero_points) zero_points.emplace(*form.zero_points);
  weights::QuantizationReport report;
  {
    const py::gil_scoped_release unlocked;
    report =
        weights::quantize(weight, scheme, {&codes, &scales, zero_points ? &*zero_points : nullptr},
                          {.input_energies = input_energies});
  }
  return py::make_tuple(codes.tensor(), scales.tensor(),
                        zero_points ? py::cast(zero_points->tensor()) : py::none(),
                        report.weight_error, report.output_error);
}

}  // namespace

void bind_quantize(py::module_& module) {
  py::class_<weights::Scheme>(module, "QuantizationScheme")
      .def(py::init(&scheme_of), py::kw_only(), py::arg("layout"), py::arg("bits"),
           py::arg("group"), py::arg("zero_points"), py::arg("choice"), py::arg("scales"));
  module.def("quantize", &quantize);
}

}  // namespace modelport::binding
