// Errors that users read: what is wrong, at which line of the model, and a way out. All of one kind
// are collected and thrown together.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace modelport {

/// A line of the model's own code (never ours).
struct SourceLine {
  std::string file;      // "modeling_qwen3.py", or an absolute path outside site-packages
  int line = 0;          // 0: unknown
  std::string function;  // "Qwen3Attention.forward"
  bool known() const { return line > 0; }
  bool operator==(const SourceLine&) const = default;
};

/// Stable numbers: they are printed as E0203 and listed in docs/errors.md.
enum class Code : std::uint16_t {
  bad_text = 101,        // IR text or expression that does not parse
  bad_graph = 102,       // a graph that breaks a rule of the IR
  bad_file = 103,        // a safetensors, pt2, json ... file that is corrupt or truncated
  missing_weight = 104,  // a weight the graph names is not in the checkpoint
  unknown_op = 201,      // an operator without a row that cannot be decomposed or learned
  bad_operands = 202,    // a shape rule found operands that do not fit
  unsupported_op = 203,  // a target has no rule for an operator
  data_dependent = 204,  // Python control flow that depends on the data and cannot be captured
  capture_failed = 205,  // the model could not be recorded for another reason
  needs_weights = 206,   // the capture without weights met a question that only their values answer
  bad_input = 301,       // inputs that the model or the graph does not take
  pinned_axis = 302,     // an axis asked to be dynamic that the model pins to one size
  bad_dynamic_shapes = 303,  // a dynamic_shapes argument that does not fit the inputs
  guard_failed = 304,        // inputs outside what the captured graph is valid for
  value_mismatch = 401,      // values differ from eager
};

std::string code_label(Code code);  // "E0203"

struct Diagnostic {
  Code code = Code::bad_graph;
  std::string what;
  SourceLine where;
  std::string module_path;
  std::vector<std::string> notes;
  std::vector<std::string> ways_out;
};

/// One error as users see it; `same_elsewhere` counts further places with the same code and line.
std::string print(const Diagnostic& diagnostic, std::size_t same_elsewhere = 0);

class ExportError : public std::runtime_error {
 public:
  explicit ExportError(std::vector<Diagnostic> diagnostics);
  explicit ExportError(Diagnostic diagnostic);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

/// Collects problems so that all of them are reported at once.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic) { found_.push_back(std::move(diagnostic)); }
  bool empty() const { return found_.empty(); }
  const std::vector<Diagnostic>& all() const { return found_; }
  void throw_if_any();

 private:
  std::vector<Diagnostic> found_;
};

/// A broken invariant of ours, never the user's fault.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(std::string_view what)
      : std::logic_error("internal error, please report: " + std::string(what)) {}
};

}  // namespace modelport
