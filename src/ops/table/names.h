// Names of the operators that graphs are put together from by others than rows: the recorder, which
// writes down what memory it saw change.
#pragma once

#include <string_view>

namespace modelport::ops::names {

inline constexpr std::string_view kAsStrided = "aten.as_strided";
inline constexpr std::string_view kClone = "aten.clone";
inline constexpr std::string_view kExpand = "aten.expand";
inline constexpr std::string_view kItem = "aten.item";
inline constexpr std::string_view kPermute = "aten.permute";
inline constexpr std::string_view kReshape = "aten.reshape";
inline constexpr std::string_view kSelectScatter = "aten.select_scatter";
inline constexpr std::string_view kSliceScatter = "aten.slice_scatter";
inline constexpr std::string_view kToDtype = "aten.to.dtype";

}  // namespace modelport::ops::names
