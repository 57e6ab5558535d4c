// Pools over one and three axes as pools over two: what a window gives can be found axis by axis.
#include "ops/decompositions/neural.h"
#include "ops/decompositions/pieces.h"
#include "ops/rules/windows.h"

namespace modelport::ops::parts {
namespace {

/// A list for two axes out of one for `from` on; `other` for the axis that is not there.
Shape pair_of(const Shape& list, const Int& other) { return {other, list[0]}; }
Shape last_two(const Shape& list) { return {list[1], list[2]}; }
Shape first_of(const Shape& list, const Int& other) { return {list[0], other}; }

Shape line_as_plane(const Shape& shape) {
  return with_axis(shape, static_cast<std::int64_t>(shape.size()) - 1, 1);
}

/// [..., channels * depth, height, width], so that a plane is pooled at a time.
Shape planes(const Shape& shape) {
  const std::int64_t rank = static_cast<std::int64_t>(shape.size());
  return joined(leading(shape, rank - 4), {shape[at(rank - 4)] * shape[at(rank - 3)],
                                           shape[at(rank - 2)], shape[at(rank - 1)]});
}

/// [..., channels, depth, height * width]
Shape columns(const Shape& volume, const Shape& plane) {
  const std::int64_t rank = static_cast<std::int64_t>(volume.size());
  return joined(leading(volume, rank - 2), {plane[plane.size() - 2] * plane.back()});
}

struct Pool {
  Shape kernel, stride, padding, dilation;

  template <class Change>
  Pool changed(Change change) const {
    return {change(kernel, 1), change(stride, 1), change(padding, 0), change(dilation, 1)};
  }
};

Pool pool_of(Emitter& e, std::size_t axes, bool dilated) {
  Call& call = e.call();
  const Shape kernel = per_axis(call, "kernel_size", axes);
  return {kernel, per_axis(call, "stride", axes, kernel), per_axis(call, "padding", axes),
          dilated ? per_axis(call, "dilation", axes) : Shape(axes, Int(1))};
}

/// `pool_plane(x, pool, is_last)` on what is there, whatever the number of axes.
template <class PoolPlane>
Value pooled(Emitter& e, Value x, const Pool& pool, PoolPlane pool_plane) {
  const std::size_t axes = pool.kernel.size();
  if (axes == 2) return pool_plane(x, pool, true);
  if (axes == 1) {
    const Value y =
        pool_plane(viewed(e, x, line_as_plane(e.shape(x))), pool.changed(pair_of), true);
    return viewed(e, y, e.result().shape);
  }
  const Shape volume = e.shape(x);
  const Value y =
      pool_plane(viewed(e, x, planes(volume)),
                 pool.changed([](const Shape& list, const Int&) { return last_two(list); }), false);
  const Value z =
      pool_plane(viewed(e, y, columns(volume, e.shape(y))), pool.changed(first_of), true);
  return viewed(e, z, e.result().shape);
}

}  // namespace

Value max_pool(Emitter& e) {
  const bool ceil_mode = e.call().flag("ceil_mode");
  const Pool pool = pool_of(e, spatial_axes(e.call()), true);
  return pooled(e, e.tensor("self"), pool, [&](Value x, const Pool& p, bool) {
    return e.call("aten.max_pool2d_with_indices",
                  {x, p.kernel, p.stride, p.padding, p.dilation, ceil_mode});
  });
}

Values max_pool1d_with_indices(Emitter& e) {
  const Pool pool = pool_of(e, 1, true).changed(pair_of);
  const Value x = e.tensor("self");
  Values results = e.calls("aten.max_pool2d_with_indices",
                           {viewed(e, x, line_as_plane(e.shape(x))), pool.kernel, pool.stride,
                            pool.padding, pool.dilation, e.call().flag("ceil_mode")});
  for (std::size_t i = 0; i < 2; ++i) results[i] = viewed(e, results[i], e.result(i).shape);
  return results;
}

Value avg_pool(Emitter& e) {
  const bool ceil_mode = e.call().flag("ceil_mode");
  const bool counts_pads = e.call().flag("count_include_pad");
  const std::size_t axes = spatial_axes(e.call());
  const Operand divisor = axes == 3 ? e.arg("divisor_override") : Operand(std::nullopt);
  const Pool pool = pool_of(e, axes, false);
  return pooled(e, e.tensor("self"), pool, [&](Value x, const Pool& p, bool is_last) {
    const Operand own = !is_last && !divisor.arg.is_none() ? Operand(1) : divisor;
    return e.call("aten.avg_pool2d",
                  {x, p.kernel, p.stride, p.padding, ceil_mode, counts_pads, own});
  });
}

Value adaptive_avg_pool(Emitter& e) {
  const std::size_t axes = spatial_axes(e.call());
  const Value x = e.tensor("self");
  const Shape& result = e.result().shape;
  const auto pool_to = [&](Value plane, const Int& height, const Int& width) {
    return e.call("aten._adaptive_avg_pool2d", {plane, Shape{height, width}});
  };
  if (axes == 2) return pool_to(x, result[result.size() - 2], result.back());
  if (axes == 1)
    return viewed(e, pool_to(viewed(e, x, line_as_plane(e.shape(x))), 1, result.back()), result);
  const Shape volume = e.shape(x);
  const Value y = pool_to(viewed(e, x, planes(volume)), result[result.size() - 2], result.back());
  const Shape standing = columns(volume, e.shape(y));
  return viewed(e, pool_to(viewed(e, y, standing), result[result.size() - 3], standing.back()),
                result);
}

Values adaptive_max_pool(Emitter& e) {
  const std::size_t axes = spatial_axes(e.call());
  if (axes == 3) e.refuse("the runtime has no kernel that tells places in a volume");
  const Value x = e.tensor("self");
  const Shape shape = axes == 1 ? line_as_plane(e.shape(x)) : e.shape(x);
  const Shape wanted = axes == 1 ? line_as_plane(e.result().shape) : e.result().shape;
  Shape kernel;
  for (std::size_t i = shape.size() - 2; i < shape.size(); ++i) {
    const Int size = shape::floor_div(shape[i], wanted[i]);
    if (!surely_equal(e.call(), size * wanted[i], shape[i]))
      e.refuse("windows of different sizes: the result's size must divide the operand's");
    kernel.push_back(size);
  }
  Values results = e.calls("aten.max_pool2d_with_indices", {viewed(e, x, shape), kernel, kernel});
  for (std::size_t i = 0; i < 2; ++i) results[i] = viewed(e, results[i], e.result(i).shape);
  return results;
}

Value max_unpool(Emitter& e) {
  const Value x = e.tensor("self");
  const Shape& result = e.result().shape;
  const std::int64_t rank = static_cast<std::int64_t>(result.size());
  const Shape batch = leading(result, rank - 2);
  const Shape line = joined(batch, {numel(from(e.shape(x), rank - 2))});
  const Value nothing = filled(e, joined(batch, {numel(from(result, rank - 2))}), 0, e.dtype(x));
  const Value y =
      e.call("aten.scatter.src",
             {nothing, rank - 2, viewed(e, e.tensor("indices"), line), viewed(e, x, line)});
  return viewed(e, y, result);
}

}  // namespace modelport::ops::parts
