// The extension module: one line a topic, no logic.
#include "binding/program.h"

PYBIND11_MODULE(_modelport, module) {
  using namespace modelport::binding;
  bind_errors(module);
  bind_session(module);
  bind_program(module);
  bind_symbols(module);
  bind_pt2(module);
  bind_onnx(module);
  bind_lower_executorch(module);
#ifdef MODELPORT_WITH_EXECUTORCH
  bind_executorch(module);
#endif
  bind_samples(module);
  bind_quantize(module);
}
