#include "weights/quantize/search_ahead.h"

#include "binding/artifact/search_ahead.h"

namespace modelport::binding {

namespace py = pybind11;

namespace {

using weights::SearchAhead;

/// Numbers in the memory of a search, which lives as long as somebody has them. The other extension
/// takes them as a buffer: classes of this one are not known there.
struct Numbers {
  std::shared_ptr<SearchAhead> keep_alive;
  std::span<const std::byte> bytes;
};

std::shared_ptr<SearchAhead> search_ahead(const std::string& checkpoint, int bits,
                                          std::int64_t block, bool zero_points, bool halves) {
  const Dtype scales = halves ? Dtype::f16 : Dtype::f32;
  return std::make_shared<SearchAhead>(weights::Checkpoint::open(checkpoint),
                                       weights::scheme_of_search(bits, block, zero_points, scales),
                                       SearchAhead::Options{});
}

/// (bits, block, whether scales are halves, columns, scales, zero points) by (file, offset).
py::dict found(const std::shared_ptr<SearchAhead>& ahead) {
  std::vector<SearchAhead::Found> all;
  {
    const py::gil_scoped_release no_gil;
    all = ahead->found();
  }
  py::dict by_place;
  for (const auto& [tensor, fits] : all)
    by_place[py::make_tuple(tensor->file->path().string(), tensor->entry.offset)] =
        py::make_tuple(fits.scheme.bits, fits.scheme.group, fits.scheme.scales == Dtype::f16,
                       fits.columns, Numbers{ahead, std::as_bytes(fits.scales)},
                       Numbers{ahead, std::as_bytes(fits.zero_points)});
  return by_place;
}

}  // namespace

void bind_search_ahead(py::module_& module) {
  py::class_<Numbers>(module, "Numbers", py::buffer_protocol()).def_buffer([](Numbers& numbers) {
    return py::buffer_info(reinterpret_cast<const std::uint8_t*>(numbers.bytes.data()),
                           static_cast<py::ssize_t>(numbers.bytes.size()));
  });
  py::class_<SearchAhead, std::shared_ptr<SearchAhead>>(module, "SearchAhead")
      .def(py::init(&search_ahead), py::arg("checkpoint"), py::kw_only(), py::arg("bits"),
           py::arg("block_size"), py::arg("zero_points"), py::arg("halves"))
      .def("finish", &SearchAhead::finish, py::call_guard<py::gil_scoped_release>())
      .def("found", &found);
}

}  // namespace modelport::binding
