// New files in the place of old ones where whole folders cannot be swapped.
#pragma once

#include <string>
#include <vector>

#include "driver/earlier_export.h"

namespace modelport::driver {

/// One model and its weights, in a folder that has other files: at every moment the model is the
/// old one with its weights, or the new one with its own. Gives the new files, the model first.
std::vector<Path> replace_model(const Path& staged, const Path& target, const std::string& name);

/// All files of an export, one by one. What was there is kept until the last is in its place, and
/// comes back after a failure; after a kill, `take_back` brings it back.
void replace_files(const Path& staged, const Path& target, const EarlierExport& earlier);

/// Whether `replace_files` was stopped.
bool is_half_replaced(const Path& staged);
void take_back(const Path& staged, const Path& target);

}  // namespace modelport::driver
