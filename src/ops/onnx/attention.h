// ONNX cells of attention and of products in groups.
#pragma once

#include "ops/onnx/lower.h"

namespace modelport::ops::onnx {

Values attention(Lower& l);
Values attention_for_cpu(Lower& l);
Values grouped_mm(Lower& l);
/// onnxruntime's own operator, for caches in place.
Values group_query_attention(Lower& l);
/// Whether that kernel finds the tokens where it looks for them.
Values tokens_come_first(Lower& l);
/// The same for linear attention.
Values linear_attention(Lower& l);
/// The same for a mixture of experts; its weights are still floats.
Values experts(Lower& l);

}  // namespace modelport::ops::onnx
