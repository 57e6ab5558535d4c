// The weights of a program as writers take them.
#include <map>

#include "base/mapped_file.h"
#include "binding/program.h"
#include "capture/torch_dtype.h"

namespace modelport::binding {

weights::WeightStore store_of(const Program& program, const WeightFiles& files) {
  weights::WeightStore store;
  std::map<std::string, std::shared_ptr<const MappedFile>> open;
  for (const ir::ValueId id : program.graph.weights) {
    const std::string& name = program.graph.value(id).name;
    const auto found = program.weights.find(name);
    if (found == program.weights.end()) continue;
    if (const auto stored = files.find(name); stored != files.end()) {
      const auto& [file, offset] = stored->second;
      std::shared_ptr<const MappedFile>& mapped = open[file];
      if (!mapped) mapped = std::make_shared<const MappedFile>(MappedFile::open(file));
      const at::Tensor& tensor = found->second;
      weights::Weight weight{.name = name, .dtype = capture::from_torch(tensor.scalar_type())};
      weight.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
      weight.bytes = mapped->bytes().subspan(offset, tensor.nbytes());
      weight.file = mapped;
      weight.file_offset = offset;
      store.add_borrowed(std::move(weight));
      continue;
    }
    auto dense = std::make_shared<at::Tensor>(found->second.detach().cpu().contiguous());
    const auto* bytes = static_cast<const std::byte*>(dense->const_data_ptr());
    weights::Weight weight{.name = name, .dtype = capture::from_torch(dense->scalar_type())};
    weight.shape.assign(dense->sizes().begin(), dense->sizes().end());
    weight.bytes = {bytes, dense->nbytes()};
    weight.keep_alive = dense;
    store.add_borrowed(std::move(weight));
  }
  return store;
}

}  // namespace modelport::binding
