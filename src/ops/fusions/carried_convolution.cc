// All that models write around the convolution is slices, by which columns go that no new token
// needs. Where a slice begins is an expression over sizes, so that the proof is their sum.
#include "ops/fusions/carried_convolution.h"

#include <optional>

#include "ir/users.h"
#include "ops/fusions/pattern.h"
#include "shape/program_dims.h"

namespace modelport::ops::fusions {
namespace {

constexpr std::string_view kConvolution =
    "aten.conv1d(input=joined@aten.cat(tensors=[state, fresh], dim=dim), weight=weight, bias=bias, "
    "padding=padding, groups=groups)";
constexpr std::string_view kSliceOfColumns =
    "aten.slice.Tensor(self=_, dim=dim, start=start, end=_, step=1)";
constexpr std::string_view kActivation = "aten.silu";
constexpr std::size_t kColumnAxis = 2;  // of columns

class CarriedFinder {
 public:
  explicit CarriedFinder(const ir::Graph& graph)
      : graph_(graph), dims_(shape::dims_of(graph.dims)), users_(graph) {}

  std::optional<std::variant<CarriedConvolution, OtherConvolution>> at(ir::NodeId id) {
    static const Pattern pattern = parse_pattern(kConvolution);
    const auto found = find(pattern, graph_, graph_.node(id), kUsesNotAsked);
    if (!found || graph_.value(found->value("state")).origin != ir::Origin::input)
      return std::nullopt;
    CarriedConvolution site{.node = id,
                            .state = found->value("state"),
                            .fresh = found->value("fresh"),
                            .weight = found->value("weight")};
    if (found->is_value("bias")) site.bias = found->value("bias");
    std::string why = shapes(site, *found);
    if (why.empty()) why = columns(site, *found);
    if (why.empty()) return site;
    return OtherConvolution{id, std::move(why)};
  }

 private:
  const ir::TensorType& type(ir::ValueId id) const { return graph_.value(id).tensor(); }
  bool is_certain(const shape::Int& a, shape::Compare how, const shape::Int& b) const {
    return dims_.decide(shape::Bool::compare(how, a, b)) == true;
  }

  std::string shapes(const CarriedConvolution& site, const Found& found) const {
    const auto& state = type(site.state).shape;
    const auto& fresh = type(site.fresh).shape;
    const auto& weight = type(site.weight).shape;
    if (type(site.fresh).dtype != Dtype::f32) return "its kernel takes f32";
    const auto axis = found.number("dim");
    if (state.size() != 3 || (axis != 2 && axis != -1)) return "its state has no columns of tokens";
    if (!(found.arg("groups") == ir::Arg{fresh[1]}) || !(weight[0] == fresh[1]))
      return "it mixes channels";
    if (!state[kColumnAxis].is_constant()) return "its state may have any number of columns";
    if (!is_certain(state[kColumnAxis], shape::Compare::ge, weight[2] - 1))
      return "its state has fewer columns than it looks back";
    return {};
  }

  /// Of the convolution those of new tokens are read, and of what it convolves the last, which are
  /// the next state.
  std::string columns(CarriedConvolution& site, const Found& found) {
    const auto padding = found.integers("padding");
    if (padding.size() != 1) return "its padding is no plain number";
    const shape::Int& carried = type(site.state).shape[kColumnAxis];
    const shape::Int& tokens = type(site.fresh).shape[kColumnAxis];
    for (const ir::NodeId user : users_.nodes(found.value("joined"))) {
      if (user == site.node) continue;
      const auto start = start_of(graph_.node(user));
      const ir::ValueId next = graph_.node(user).results[0];
      const bool last = start && *start == tokens && type(next).shape[kColumnAxis] == carried;
      if (!last || !users_.nodes(next).empty()) return "other nodes read its columns as well";
      site.states.push_back(next);
    }
    if (users_.is_kept(found.value("joined"))) return "other nodes read its columns as well";
    const shape::Int first = carried + padding[0] - (type(site.weight).shape[2] - 1);
    const bool only_new = follow({graph_.node(site.node).results[0], {}}, first, tokens, site);
    return only_new ? "" : "columns before those of new tokens are read as well";
  }

  /// Whether all that is read of these columns is `count` of them from `first` on.
  bool follow(const NewColumns& from, const shape::Int& first, const shape::Int& count,
              CarriedConvolution& site) {
    if (first == shape::Int(0) && type(from.value).shape[kColumnAxis] == count) {
      site.results.push_back(from);
      return true;
    }
    if (users_.is_kept(from.value)) return false;
    for (const ir::NodeId user : users_.nodes(from.value)) {
      NewColumns next{graph_.node(user).results[0], from.activations};
      shape::Int rest = first;
      if (const auto start = start_of(graph_.node(user))) {
        rest = first - *start;
      } else if (graph_.node(user).op == kActivation) {
        next.activations.push_back(user);
      } else {
        return false;
      }
      if (!follow(next, rest, count, site)) return false;
    }
    return true;
  }

  /// The column that a slice of columns begins with; nothing for other nodes.
  std::optional<shape::Int> start_of(const ir::Node& node) const {
    static const Pattern pattern = parse_pattern(kSliceOfColumns);
    const auto found = find(pattern, graph_, node, kUsesNotAsked);
    if (!found || found->number("dim") != static_cast<double>(kColumnAxis)) return std::nullopt;
    if (found->arg("start").is_none()) return shape::Int(0);
    const auto* start = found->arg("start").get<shape::Int>();
    if (start == nullptr) return std::nullopt;
    if (is_certain(*start, shape::Compare::ge, 0)) return *start;
    const shape::Int& size = type(*node.find("self")->get<ir::ValueId>()).shape[kColumnAxis];
    if (is_certain(*start, shape::Compare::lt, 0) &&
        is_certain(size + *start, shape::Compare::ge, 0))
      return size + *start;
    return std::nullopt;
  }

  const ir::Graph& graph_;
  shape::Dims dims_;
  ir::Users users_;
};

}  // namespace

std::vector<std::variant<CarriedConvolution, OtherConvolution>> find_carried_convolutions(
    const ir::Graph& graph) {
  CarriedFinder finder(graph);
  std::vector<std::variant<CarriedConvolution, OtherConvolution>> found;
  for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
    if (auto site = finder.at({i})) found.push_back(std::move(*site));
  }
  return found;
}

}  // namespace modelport::ops::fusions
