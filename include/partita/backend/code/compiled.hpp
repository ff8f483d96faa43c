/// A program as code in the user's binary: no interpreter, all sizes constant.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <partita/backend/code/device.hpp>
#include <partita/backend/code/frozen.hpp>
#include <partita/backend/code/lanes.hpp>
#include <partita/backend/code/products.hpp>
#include <partita/run/device/shards.hpp>
#include <partita/run/kernels/elementwise_table.hpp>
#include <partita/run/kernels/library.hpp>
#if !defined(PARTITA_SEPARATE)
#include <partita/run/kernels/table.hpp>
#endif

namespace partita {

namespace backend_detail {

/// The C++ type of elements.
template <dtype T>
using cpp_type = std::tuple_element_t<
    static_cast<std::size_t>(T),
    std::tuple<float, double, bf16, f16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
               std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>>;
/// The comparison of a direction.
template <ops::direction D>
using comparison =
    std::tuple_element_t<static_cast<std::size_t>(D),
                         std::tuple<std::equal_to<>, std::not_equal_to<>, std::less<>,
                                    std::less_equal<>, std::greater<>, std::greater_equal<>>>;

/// An elementwise op on lanes. `First`: its first attribute, if it has one.
template <std::uint64_t Id, class To, std::int64_t First, class X, class... Rest>
EIGEN_ALWAYS_INLINE code::pack<To> apply_op_on_lanes(const X& x, const Rest&... rest) {
  constexpr auto is = [](std::string_view name) { return Id == ir_detail::number_of(name); };
  if constexpr (is("convert"))
    return code::convert<To>(x);
  else if constexpr (is("select"))
    return code::select(x, rest...);
  else if constexpr (is("random_bits"))
    return code::random_bits(x, rest...);
  else if constexpr (is("compare"))
    return code::map<run_detail::compare_lanes<comparison<static_cast<ops::direction>(First)>>,
                     bool>(x, rest...);
  else
    return code::map<typename std::tuple_element_t<run_detail::elementwise_row(Id),
                                                   run_detail::elementwise_kernels>::lanes,
                     To>(x, rest...);
}

/// One call of a compiled program, for all devices of its mesh.
struct compiled_call {
  code::device& device;
  const std::byte* const* in;
  std::byte* const* out;

  /// The memory of a value, `offset` bytes from the first device's.
  template <class T>
  EIGEN_ALWAYS_INLINE T* at(const code_place& p, std::int64_t offset) const {
    if (p.where == code_place::kind::input)
      return reinterpret_cast<T*>(const_cast<std::byte*>(in[p.at]) + offset);
    if (p.where == code_place::kind::output) return reinterpret_cast<T*>(out[p.at] + offset);
    return device.memory<T>(p.at + offset);
  }
};

/// The steps of a frozen program, as functions.
template <auto Thunk, bool SameBits>
struct compiled_steps {
  static constexpr const frozen_program& f = frozen<Thunk>;
  template <int Operand>
  EIGEN_ALWAYS_INLINE static auto operand(const compiled_call& s, std::int64_t c) {
    constexpr code_value x = f.operands[Operand];
    const auto* p = s.at<cpp_type<x.type.element>>(x.place, c * x.bytes);
    return p;
  }
  template <int Result>
  EIGEN_ALWAYS_INLINE static auto* result(const compiled_call& s, std::int64_t c) {
    constexpr code_value x = f.results[Result];
    return s.at<cpp_type<x.type.element>>(x.place, c * x.bytes);
  }

  template <int Step>
  EIGEN_ALWAYS_INLINE static void run(const compiled_call& s) {
    constexpr code_step step = f.steps[Step];
    for (std::int64_t c = 0; c < (step.what == code_step::kind::collective ? 1 : f.copies); ++c) {
      if constexpr (step.what == code_step::kind::loop) {
        for (std::int64_t i = 0; i < step.elements; i += code::lanes)
          members<step.op, step.ops, 0>(s, c, i);
      } else if constexpr (step.what == code_step::kind::start) {
        start<step.op>(s, c);
      } else if constexpr (f.ops[step.op].def == &def<op::dot_general>) {
        product<step.op>(s, c);
      } else if constexpr (f.ops[step.op].def == &def<op::reduce>) {
        reduction<step.op>(s, c);
      } else {
        call<step.op>(s, c);
      }
    }
  }

  // ---- Loops -----------------------------------------------------------------------------------

  /// The members of a loop from number `M` on; `made`: the results of the ones before it.
  template <int First, int Count, int M, class... Made>
  EIGEN_ALWAYS_INLINE static void members(const compiled_call& s, std::int64_t c, std::int64_t i,
                                          const Made&... made) {
    if constexpr (M < Count) {
      constexpr code_op o = f.ops[First + M];
      constexpr code_value r = f.results[o.result];
      constexpr std::int64_t attr = o.attrs > 0 ? f.attrs[o.attr] : 0;
      const auto all = std::tie(made...);
      const auto value = [&]<int... I>(std::integer_sequence<int, I...>)
          __attribute__((always_inline)) {
        return apply_op_on_lanes<o.def->id, cpp_type<r.type.element>, attr>(
            element<o.operand + I>(s, c, i, all)...);
      }
      (std::make_integer_sequence<int, o.operands>{});
      if constexpr (r.place.where != code_place::kind::nowhere)
        code::store(value, result<o.result>(s, c), i);
      members<First, Count, M + 1>(s, c, i, made..., value);
    }
  }
  template <int Operand, class All>
  EIGEN_ALWAYS_INLINE static auto element(const compiled_call& s, std::int64_t c, std::int64_t i,
                                          const All& made) {
    constexpr code_value x = f.operands[Operand];
    constexpr code_access a = x.access;
    using kind = code_access::kind;
    if constexpr (a.how == kind::local)
      return std::get<x.member>(made);
    else if constexpr (a.how == kind::splat)
      return code::splat_bits<cpp_type<x.type.element>>(a.bits);
    else if constexpr (a.how == kind::scalar)
      return code::splat(*operand<Operand>(s, c));
    else if constexpr (a.how == kind::repeat)
      return code::repeat<a.count, a.inner>(operand<Operand>(s, c), i);
    else
      return code::load(operand<Operand>(s, c), i);
  }

  // ---- Other ops -------------------------------------------------------------------------------

  // Constants of their own, so that the binary has these and not all of the frozen program.
  template <int Op>
  static constexpr auto attributes = [] {
    std::array<std::int64_t, static_cast<std::size_t>(f.ops[Op].attrs)> list{};
    for (int i = 0; i < f.ops[Op].attrs; ++i)
      list[static_cast<std::size_t>(i)] = f.attrs[f.ops[Op].attr + i];
    return list;
  }();

  /// A call of a kernel for device `c`, or of a collective for all devices.
  template <int Op>
  static void call(const compiled_call& s, std::int64_t c) {
    constexpr code_op o = f.ops[Op];
    [&]<int... I, int... R>(std::integer_sequence<int, I...>, std::integer_sequence<int, R...>) {
      const std::array<code::tensor, sizeof...(I)> from{
          code::tensor{f.operands[o.operand + I].type, operand<o.operand + I>(s, c)}...};
      const std::array<code::tensor, sizeof...(R)> to{
          code::tensor{f.results[o.result + R].type, result<o.result + R>(s, c)}...};
      if constexpr (o.def->collective) {
        s.device.exchange(Op, o.def->describe, &run_detail::find_combine, attributes<Op>, from, to);
      } else {
        static const kernel_function run = run_detail::find_library_kernel(o.def);
        s.device.call(run, attributes<Op>, from, to);
      }
    }
    (std::make_integer_sequence<int, o.operands>{}, std::make_integer_sequence<int, o.results>{});
  }
  template <int Op>
  static void product(const compiled_call& s, std::int64_t c) {
    constexpr code_op o = f.ops[Op];
    constexpr tensor_type x = f.operands[o.operand].type, y = f.operands[o.operand + 1].type;
    constexpr run_detail::dot_plan plan(x.shape, y.shape, attributes<Op>);
    if constexpr (!code::multiplies(plan, x.element)) {
      call<Op>(s, c);
    } else {
      constexpr run_detail::matrix_view l = plan.left, r = plan.right;
      constexpr run_detail::dot_dim batch = plan.batch.at[0];
      for (std::int64_t b = 0; b < plan.batches; ++b) {
        const auto left = code::matrix<l.rows, l.columns, l.row_stride, l.column_stride>(
            operand<o.operand>(s, c) + b * batch.a);
        const auto right = code::matrix<r.rows, r.columns, r.row_stride, r.column_stride>(
            operand<o.operand + 1>(s, c) + b * batch.b);
        auto* const to = result<o.result>(s, c) + b * plan.rows * plan.columns;
        if constexpr (!SameBits &&
                      code::is_small_product<cpp_type<x.element>, decltype(left), decltype(right)>)
          code::multiply_small(left, right, to);
        else
          code::multiply(left, right, to);
      }
    }
  }
  template <int Op>
  static void reduction(const compiled_call& s, std::int64_t c) {
    constexpr code_op o = f.ops[Op];
    constexpr tensor_type x = f.operands[o.operand].type;
    constexpr run_detail::reduction_sizes sizes(x.shape, attributes<Op>);
    if constexpr (!code::reduces(sizes, o.operands, x))
      call<Op>(s, c);
    else
      code::reduce<static_cast<combiner>(attributes<Op>[0]), sizes.outer, sizes.reduced,
                   sizes.inner>(operand<o.operand>(s, c), result<o.result>(s, c));
  }
  template <int Op>
  static void start(const compiled_call& s, std::int64_t c) {
    constexpr code_op o = f.ops[Op];
    using type = cpp_type<f.results[o.result].type.element>;
    const span<const std::int64_t> list(attributes<Op>);
    *result<o.result>(s, c) =
        static_cast<type>(s.device.block(list.subspan(1), c) * op::shard_start::distance(list));
  }
};

}  // namespace backend_detail

/// A program that `Thunk` returns (traced, partitioned, or of a device), compiled into the user's
/// binary: one function, in which all sizes, places and calls are constants. On a mesh it runs all
/// devices, as `emulate` does. For steps below a millisecond, where the interpreter takes longer to
/// find out what to do than to do it.
///
/// ```cpp
/// pt::compiled<step> run;
/// const auto next = run(w1, w2, x, y);   // arrays, as evaluate and emulate take and give them
/// ```
///
/// One call at a time: the object has the memory of a call. Calls on one device allocate only
/// outputs, and these only if the arrays of the last two calls are still in use. Bits: those of the
/// interpreter if `SameBits`.
///
/// Cost      compile time: about that of `check<Thunk>` and 20 ms for each op
/// Errors    (compile time) those of the program; E020 an op has no kernel of the library; E023 too
///           many ops, inputs or outputs; E024 an op with nested programs; (run time) R001 number
///           of arrays, R002 shape, R003 element type
template <auto Thunk, bool SameBits = false>
class compiled {
  static constexpr bool compiles = report_static_error<backend_detail::frozen_error<Thunk>>();
  using steps = backend_detail::compiled_steps<Thunk, SameBits>;
  static constexpr const backend_detail::frozen_program& f = backend_detail::frozen<Thunk>;
  static constexpr auto inputs = static_cast<std::size_t>(f.inputs.count);
  static constexpr auto outputs = static_cast<std::size_t>(f.outputs.count);
  // Constants of their own, so that the binary has these and not all of the frozen program.
  static constexpr partita::mesh mesh = f.mesh;
  template <std::size_t Count>
  static constexpr auto first_of(const backend_detail::frozen_argument* all) {
    std::array<backend_detail::frozen_argument, Count> list;
    std::copy_n(all, Count, list.begin());
    return list;
  }
  static constexpr auto input_list = first_of<inputs>(f.inputs.at);
  static constexpr auto output_list = first_of<outputs>(f.outputs.at);

 public:
  /// Bytes that a call needs beside inputs and outputs, of all devices.
  static constexpr std::int64_t memory_bytes = f.memory_bytes;
  static constexpr std::size_t input_count = inputs, output_count = outputs;

  compiled() : transport_(mesh), device_(transport_, memory_bytes) {}
  compiled(const compiled&) = delete;
  compiled& operator=(const compiled&) = delete;

  template <class... Arrays>
  std::array<array, outputs> operator()(const Arrays&... arrays) {
    static_assert(sizeof...(Arrays) == inputs,
                  "compiled: as many arrays as the program has inputs");
    const std::array<const array*, inputs> list{&arrays...};
    return (*this)(std::span<const array* const, inputs>(list));
  }
  std::array<array, outputs> operator()(std::span<const array* const, inputs> arrays) {
    std::array<run_detail::buffer, inputs> shards;
    std::array<run_detail::buffer, outputs> made;
    std::array<const std::byte*, inputs> in{};
    std::array<std::byte*, outputs> out{};
    for (std::size_t i = 0; i < inputs; ++i) {
      const auto& x = input_list[i];
      run_detail::need_input_type("array", {x.name, x.name_size}, arrays[i]->type(), x.global);
      if constexpr (f.copies > 1) shards[i] = cut(x, *arrays[i]);
      in[i] = f.copies > 1 ? shards[i].get() : arrays[i]->bytes();
    }
    for (std::size_t i = 0; i < outputs; ++i) {
      made[i] = room(i);
      out[i] = made[i].get();
    }
    run(in, out);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<array, outputs>{whole(output_list[I], made[I])...};
    }
    (std::make_index_sequence<outputs>{});
  }
  /// The same on memory: `in` and `out` point to buffers of `padded_bytes` for each device, which
  /// may be read and written in whole groups of 16 elements. Allocates nothing.
  void run(std::span<const std::byte* const, inputs> in, std::span<std::byte* const, outputs> out) {
    const backend_detail::compiled_call s{device_, in.data(), out.data()};
    [&]<int... K>(std::integer_sequence<int, K...>) { (steps::template run<K>(s), ...); }
    (std::make_integer_sequence<int, f.steps.count>{});
    for (std::size_t i = 0; i < outputs; ++i)  // that no step writes where they are wanted
      if (const std::byte* from = s.template at<std::byte>(output_list[i].place, 0); from != out[i])
        std::memcpy(out[i], from, run_detail::at(bytes(output_list[i])));
  }

 private:
  /// Of a value of all devices.
  static constexpr std::int64_t bytes(const backend_detail::frozen_argument& x) {
    return f.copies * run_detail::padded_bytes(x.local);
  }
  /// Unused memory for an output: one of two, or new.
  run_detail::buffer room(std::size_t i) {
    for (auto& b : rooms_[i]) {
      if (b.use_count() > 1) continue;
      if (!b) b = run_detail::allocate(bytes(output_list[i]));
      return b;
    }
    std::swap(rooms_[i][0], rooms_[i][1]);
    return rooms_[i][0] = run_detail::allocate(bytes(output_list[i]));
  }
  /// The shards of all devices.
  static run_detail::buffer cut(const backend_detail::frozen_argument& x, const array& global) {
    const array padded = run_detail::resized(global, x.sharding.global(x.local.shape, mesh));
    const auto shards = run_detail::cut(padded, x.sharding, mesh);
    const auto all = run_detail::device_set::all(mesh);
    run_detail::buffer to = run_detail::allocate(bytes(x));
    for (std::int64_t c = 0; c < f.copies; ++c) {
      const auto here = all.coordinates_of(run_detail::all_axes(mesh), c);
      std::memcpy(to.get() + c * run_detail::padded_bytes(x.local),
                  shards.copies[run_detail::at(all.copy_at(shards.axes, here))].bytes(),
                  run_detail::at(x.local.bytes()));
    }
    return to;
  }
  static array whole(const backend_detail::frozen_argument& x, const run_detail::buffer& made) {
    if constexpr (f.copies == 1) return array(x.global, made);
    run_detail::distributed_array shards{{}, run_detail::all_axes(mesh)};
    for (std::int64_t c = 0; c < f.copies; ++c)
      shards.copies.emplace_back(
          x.local, run_detail::buffer(made, made.get() + c * run_detail::padded_bytes(x.local)));
    return run_detail::resized(run_detail::joined(shards, x.sharding, mesh), x.global.shape);
  }

  run_detail::in_process transport_;
  code::device device_;
  std::array<std::array<run_detail::buffer, 2>, outputs> rooms_;
};

}  // namespace partita
