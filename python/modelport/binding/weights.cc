// The weights of a program as writers take them.
#include <malloc.h>

#include <atomic>
#include <map>

#include "base/error.h"
#include "base/mapped_file.h"
#include "binding/program.h"
#include "capture/torch_dtype.h"
#include "weights/quantize/found_fits.h"

namespace modelport::binding {

namespace {

using OpenFiles = std::map<std::string, std::shared_ptr<const MappedFile>>;

weights::Weight described(const std::string& name, at::ScalarType dtype, const at::Tensor& like) {
  weights::Weight weight{.name = name, .dtype = capture::from_torch(dtype)};
  weight.shape.assign(like.sizes().begin(), like.sizes().end());
  return weight;
}

weights::Contents contents_of(const at::Tensor& tensor) {
  auto dense = std::make_shared<at::Tensor>(tensor.detach().cpu().contiguous());
  const auto* bytes = static_cast<const std::byte*>(dense->const_data_ptr());
  return {{bytes, dense->nbytes()}, dense};
}

/// Tensors of up to 32 MiB come from heaps, which keep what was given back: a writer that goes
/// through a checkpoint would grow by a dozen of them. Looking through the heaps takes
/// milliseconds, hence not after each tensor.
void give_back_to_system(std::size_t bytes) {
  constexpr std::size_t kWorthALook = std::size_t{32} << 20;
  static std::atomic<std::size_t> freed = 0;
  if ((freed += bytes) < kWorthALook) return;
  freed = 0;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

weights::Contents made_contents(const at::Tensor& tensor) {
  weights::Contents contents = contents_of(tensor);
  const std::size_t size = contents.bytes.size();
  contents.keep_alive = {nullptr,
                         [held = std::move(contents.keep_alive), size](const void*) mutable {
                           held.reset();
                           give_back_to_system(size);
                         }};
  return contents;
}

void make(weights::Weight& weight, const WeightSources::Made& from) {
  weight.read = [from, name = weight.name] {
    const py::gil_scoped_acquire gil;  // writers run without it
    const auto tensor = py::cast<at::Tensor>((*from.make)());
    if (tensor.scalar_type() != from.dtype)
      throw InternalError("weight " + name + " was made in another type than it should have");
    return made_contents(tensor);
  };
}

void map(weights::Weight& weight, const WeightSources::Place& place, OpenFiles& open) {
  std::shared_ptr<const MappedFile>& file = open[place.file];
  if (!file) file = std::make_shared<const MappedFile>(MappedFile::open(place.file));
  weight.bytes = file->bytes().subspan(place.offset, weight.byte_count());
  weight.file = file;
  weight.file_offset = place.offset;
  weight.fits = place.fits;
}

template <class Number>
std::span<const Number> numbers_in(const py::handle& held) {
  const py::buffer_info info = py::cast<py::buffer>(held).request();
  return {static_cast<const Number*>(info.ptr),
          static_cast<std::size_t>(info.size) / sizeof(Number)};
}

/// What SearchAhead.found() has of a place.
std::shared_ptr<const weights::FoundFits> fits_of(const py::tuple& found) {
  const auto zero_points = numbers_in<std::uint8_t>(found[5]);
  const Dtype scales = py::cast<bool>(found[2]) ? Dtype::f16 : Dtype::f32;
  const weights::FoundFits fits{
      .scheme = weights::scheme_of_search(py::cast<int>(found[0]), py::cast<std::int64_t>(found[1]),
                                          !zero_points.empty(), scales),
      .columns = py::cast<std::int64_t>(found[3]),
      .scales = numbers_in<float>(found[4]),
      .zero_points = zero_points};
  return std::make_shared<const weights::FoundFits>(fits);
}

}  // namespace

WeightSources sources_of(const py::dict& files, const py::dict& made) {
  WeightSources sources;
  for (const auto& [name, value] : files) {
    const auto place = py::cast<py::tuple>(value);
    sources.files[py::cast<std::string>(name)] = {
        py::cast<std::string>(place[0]), py::cast<std::uint64_t>(place[1]),
        py::cast<at::ScalarType>(place[2]), place.size() > 3 ? fits_of(place[3]) : nullptr};
  }
  for (const auto& [name, value] : made) {
    const auto pair = py::cast<py::tuple>(value);
    sources.made[py::cast<std::string>(name)] = {
        py::cast<at::ScalarType>(pair[0]),
        std::make_shared<const py::function>(py::cast<py::function>(pair[1]))};
  }
  return sources;
}

weights::Weight in_memory(const std::string& name, const at::Tensor& tensor) {
  weights::Weight weight = described(name, tensor.scalar_type(), tensor);
  weights::Contents contents = contents_of(tensor);
  weight.bytes = contents.bytes;
  weight.keep_alive = std::move(contents.keep_alive);
  return weight;
}

weights::WeightStore store_of(const Program& program, const WeightSources& sources) {
  weights::WeightStore store;
  OpenFiles open;
  for (const ir::ValueId id : program.graph.weights) {
    const std::string& name = program.graph.value(id).name;
    const auto found = program.weights.find(name);
    if (found == program.weights.end()) continue;
    const at::Tensor& tensor = found->second;
    if (const auto place = sources.files.find(name); place != sources.files.end()) {
      weights::Weight weight = described(name, place->second.dtype, tensor);
      map(weight, place->second, open);
      store.add_borrowed(std::move(weight));
    } else if (const auto made = sources.made.find(name); made != sources.made.end()) {
      weights::Weight weight = described(name, made->second.dtype, tensor);
      make(weight, made->second);
      store.add_borrowed(std::move(weight));
    } else if (!tensor.is_meta()) {  // which has no values
      store.add_borrowed(in_memory(name, tensor));
    }
  }
  return store;
}

weights::WeightStore store_of(const Program& program, const ir::Graph& lowered,
                              const WeightSources& sources) {
  weights::WeightStore store = store_of(program, sources);
  for (const ir::ValueId id : lowered.weights) {
    const ir::Value& value = lowered.value(id);
    const auto made = sources.made.find(value.name);
    if (store.find(value.name) != nullptr || made == sources.made.end()) continue;
    weights::Weight weight{.name = value.name, .dtype = capture::from_torch(made->second.dtype)};
    for (const shape::Int& size : value.tensor().shape) weight.shape.push_back(*size.constant());
    make(weight, made->second);
    store.add_borrowed(std::move(weight));
  }
  return store;
}

}  // namespace modelport::binding
