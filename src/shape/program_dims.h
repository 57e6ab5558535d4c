// Questions to the dimensions that a program declares, once nothing is recorded any more.
#pragma once

#include <vector>

#include "shape/dims.h"

namespace modelport::shape {

/// Whether numbers that are known only when the program runs have a part in the condition: symbols
/// that the data decides, floats and bools, which no dimension declares.
bool depends_on_data(const Bool& condition, const std::vector<Dim>& dims);

/// The dimensions with their examples and ranges, without what a capture asked of them.
Dims dims_of(const std::vector<Dim>& dims);
/// The same with the conditions that can be told from sizes and hold in the example.
Dims dims_of(const std::vector<Dim>& dims, const std::vector<Guard>& guards);

}  // namespace modelport::shape
