/// Device programs that are built by hand, and the messages of runs that fail.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <partita/cpu.hpp>

namespace device_programs {

namespace pt = partita;

/// Each device of {"B":2} doubles its element until it is 10 or more. The devices disagree about
/// the condition unless their elements are equal.
inline constexpr const char* doubled_until_10 =
    R"(func @main(%x: tensor<1xf64>) attributes {mesh = {"B":2}} {
  %y = while(%x) do (%h: tensor<1xf64>) {
    %x2 = reduce(%h) {max, dims=[0]} : tensor<f64>
    %x3 = constant {10} : tensor<f64>
    %x4 = compare(%x2, %x3) {lt} : tensor<i1>
    return %x4 : tensor<i1>
  } do (%h: tensor<1xf64>) {
    %x2 = add(%h, %h) : tensor<1xf64>
    return %x2 : tensor<1xf64>
  } : tensor<1xf64>
  return %y : tensor<1xf64>
})";

/// Returns the message of the error that `f` throws, or "no error".
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const pt::error& e) {
    return e.what();
  }
  return "no error";
}

/// Returns a layout that slices dimensions along axes.
inline pt::layout cut(std::initializer_list<std::pair<int, int>> dim_axis) {
  pt::layout l;
  for (auto [dim, axis] : dim_axis) l.push_back(axis, dim);
  return l;
}

/// A device program under construction. Types are global; local types follow from the layouts.
struct device_builder {
  pt::builder b;
  pt::device_program d;

  explicit device_builder(const pt::mesh& m) { d.mesh = m; }
  pt::value_id input(std::string_view name, const pt::tensor_type& t, const pt::layout& l = {}) {
    d.input_types.push_back(t);
    d.inputs.push_back(l);
    return pt::ops::parameter(b, name, {t.element, l.local(t.shape, d.mesh)});
  }
  pt::value_id collective(const pt::op_def& op, pt::value_id x,
                          std::initializer_list<std::int64_t> attrs, const pt::shape& local) {
    return b.emit(op, {x}, attrs, pt::tensor_type{b.type(x).element, local});
  }
  device_builder& output(std::string_view name, pt::value_id v, const pt::shape& global,
                         const pt::layout& l = {}) {
    d.output_types.push_back({b.type(v).element, global});
    d.outputs.push_back(l);
    b.p.outputs.push_back({v, b.p.intern(name)});
    return *this;
  }
  pt::device_program done() {
    d.local = b.p;
    return d;
  }
};

}  // namespace device_programs
