#include "passes/executorch_lowering.h"
#include "passes/lower_targets.h"

namespace modelport::passes {
namespace {

class ToKernels : public ExecutorchLowering {
 public:
  ToKernels(const ir::Graph& source, const ExecutorchTarget& asked)
      : ExecutorchLowering(source), lower_(target(), dims(), asked.storing) {}

 private:
  ops::executorch::Lower& emitter() override { return lower_; }

  ops::executorch::Lower lower_;
};

}  // namespace

ir::Graph lower_to_executorch(const ir::Graph& graph, const ExecutorchTarget& target) {
  return ToKernels(graph, target).run();
}

}  // namespace modelport::passes
