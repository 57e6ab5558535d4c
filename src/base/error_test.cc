// The text of an error is an interface: users read it and tools grep it. These are its golden
// forms.
#include "base/error.h"

#include <doctest/doctest.h>

#include <string>

namespace modelport {
namespace {

Diagnostic no_rule_for_unfold(std::string module_path) {
  return {.code = Code::unsupported_op,
          .what = "onnx has no rule for aten.unfold",
          .where = {.file = "modeling_foo.py", .line = 312, .function = "FooAttention.forward"},
          .module_path = std::move(module_path),
          .notes = {"shapes  hidden: f16[batch, seq, 64]"},
          .ways_out = {"export to pt2", "add a row: docs/adding-an-operator.md"}};
}

TEST_CASE("a code prints as E and four digits") {
  CHECK(code_label(Code::bad_text) == "E0101");
  CHECK(code_label(Code::unsupported_op) == "E0203");
  CHECK(code_label(Code::value_mismatch) == "E0401");
}

TEST_CASE("an error prints what, where, the module, notes and every way out") {
  CHECK(print(no_rule_for_unfold("model.layers.0.attn")) ==
        "error[E0203]: onnx has no rule for aten.unfold\n"
        "  --> modeling_foo.py:312 in FooAttention.forward\n"
        "   = module  model.layers.0.attn\n"
        "   = shapes  hidden: f16[batch, seq, 64]\n"
        "   way out   export to pt2\n"
        "   way out   add a row: docs/adding-an-operator.md");
}

TEST_CASE("what is not known is left out, not printed empty") {
  CHECK(print({.code = Code::bad_file,
               .what = "model.safetensors ends inside its header",
               .where = {},
               .module_path = "",
               .notes = {},
               .ways_out = {}}) == "error[E0103]: model.safetensors ends inside its header");
}

TEST_CASE("a line without a function prints the line alone") {
  Diagnostic d = no_rule_for_unfold("");
  d.where.function.clear();
  d.notes.clear();
  d.ways_out.clear();
  CHECK(print(d) ==
        "error[E0203]: onnx has no rule for aten.unfold\n"
        "  --> modeling_foo.py:312");
}

TEST_CASE("the same problem on the same line in several modules prints once with a count") {
  const ExportError error({no_rule_for_unfold("model.layers.0.attn"),
                           no_rule_for_unfold("model.layers.1.attn"),
                           no_rule_for_unfold("model.layers.2.attn")});
  CHECK(std::string(error.what()) ==
        "error[E0203]: onnx has no rule for aten.unfold\n"
        "  --> modeling_foo.py:312 in FooAttention.forward\n"
        "   = module  model.layers.0.attn   (same line in 2 more places)\n"
        "   = shapes  hidden: f16[batch, seq, 64]\n"
        "   way out   export to pt2\n"
        "   way out   add a row: docs/adding-an-operator.md");
  CHECK(error.diagnostics().size() == 3);
}

TEST_CASE("different problems are separated by an empty line and keep their order") {
  Diagnostic first = no_rule_for_unfold("");
  Diagnostic second = no_rule_for_unfold("");
  first.notes.clear();
  first.ways_out.clear();
  second.notes.clear();
  second.ways_out.clear();
  second.where.line = 7;
  CHECK(std::string(ExportError({first, second}).what()) ==
        "error[E0203]: onnx has no rule for aten.unfold\n"
        "  --> modeling_foo.py:312 in FooAttention.forward\n"
        "\n"
        "error[E0203]: onnx has no rule for aten.unfold\n"
        "  --> modeling_foo.py:7 in FooAttention.forward");
}

TEST_CASE("collected problems are thrown together, and nothing is thrown when there are none") {
  Diagnostics found;
  CHECK_NOTHROW(found.throw_if_any());
  found.add(no_rule_for_unfold("a"));
  found.add(no_rule_for_unfold("b"));
  CHECK_FALSE(found.empty());
  try {
    found.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const ExportError& error) {
    CHECK(error.diagnostics().size() == 2);
  }
}

TEST_CASE("a broken invariant of ours asks to be reported") {
  CHECK(std::string(InternalError("value 3 has no producer").what()) ==
        "internal error, please report: value 3 has no producer");
}

}  // namespace
}  // namespace modelport
