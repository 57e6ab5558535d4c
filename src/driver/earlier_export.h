// Which files of a folder belong to an export: the list that each leaves there, and for folders of
// versions that left none, the names that readers take for parts of a model.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "driver/disk.h"

namespace modelport::driver {

/// The list itself, beside the files that are in it.
inline constexpr const char* kList = ".modelport.json";

/// `base.onnx`'s weights are `base.onnx_data`, `base.onnx_data_1`, ... or, for a moment of a
/// replacement that nothing finished, `base.onnx_data-1f00beef`.
bool is_data_of(const std::string& name, const std::string& model);

/// A folder in which something is written that has not taken its place: `.out.1f00beef.partial`.
bool is_unfinished_name(const std::string& name);

std::vector<Path> read_list(const Path& folder);
void write_list(const Path& folder, const std::vector<Path>& files);

class EarlierExport {
 public:
  /// `parts` are names without `.onnx`, or whole names of files that are no models.
  EarlierExport(const Path& folder, std::vector<std::string> parts);
  bool wrote(const Path& relative) const;

 private:
  std::set<Path> listed_;
  std::vector<std::string> parts_;
};

}  // namespace modelport::driver
