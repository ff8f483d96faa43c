/// A program as code in the user's binary: no interpreter, all sizes constant.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <partita/backend/code/elementwise_ops.hpp>
#include <partita/backend/code/frozen.hpp>
#include <partita/backend/code/products.hpp>
#include <partita/backend/code/reductions.hpp>
#include <partita/run/device/shards.hpp>
#include <partita/run/kernels/library.hpp>
#if !defined(PARTITA_SEPARATE)
#include <partita/run/kernels/table.hpp>
#endif
#include <partita/run/transport/collective_run.hpp>

namespace partita {

namespace backend_detail {

/// The memory of one call of a compiled program, for all devices of its mesh.
struct compiled_state {
  std::byte* memory = nullptr;
  const std::byte* const* in = nullptr;
  std::byte* const* out = nullptr;
  run_detail::transport* transport = nullptr;
  run_detail::thread_pool* threads = nullptr;
  std::vector<scratch>* spare = nullptr;
  scratch* messages = nullptr;
  std::vector<run_detail::collective_run>* collectives = nullptr;
};

/// The steps of a frozen program, as functions.
template <auto Thunk, bool SameBits>
struct compiled_steps {
  static constexpr const frozen_program& f = frozen<Thunk>;
  // Constants of their own, so that the binary has these and not all of the frozen program.
  static constexpr partita::mesh mesh = f.mesh;
  template <std::size_t Count>
  static constexpr auto first_of(const frozen_argument* all) {
    std::array<frozen_argument, Count> list;
    for (std::size_t i = 0; i < Count; ++i) list[i] = all[i];
    return list;
  }
  static constexpr auto inputs = first_of<static_cast<std::size_t>(f.input_count)>(f.inputs);
  static constexpr auto outputs = first_of<static_cast<std::size_t>(f.output_count)>(f.outputs);

  /// Where device `c` has a value.
  template <code_place Place, tensor_type Type>
  EIGEN_ALWAYS_INLINE static auto* at(const compiled_state& s, std::int64_t c) {
    using type = cpp_type<Type.element>;
    constexpr std::int64_t bytes = run_detail::padded_bytes(Type);
    if constexpr (Place.where == code_place::kind::input)
      return reinterpret_cast<const type*>(s.in[Place.at] + c * bytes);
    else if constexpr (Place.where == code_place::kind::output)
      return reinterpret_cast<type*>(s.out[Place.at] + c * bytes);
    else
      return reinterpret_cast<type*>(s.memory + Place.at + c * bytes);
  }
  template <int Operand>
  EIGEN_ALWAYS_INLINE static auto operand(const compiled_state& s, std::int64_t c) {
    constexpr frozen_operand x = f.operands[Operand];
    const auto* p = at<x.place, x.type>(s, c);
    return p;
  }
  template <int Result>
  EIGEN_ALWAYS_INLINE static auto* result(const compiled_state& s, std::int64_t c) {
    constexpr frozen_result x = f.results[Result];
    return at<x.place, x.type>(s, c);
  }

  template <int Step>
  EIGEN_ALWAYS_INLINE static void run(const compiled_state& s) {
    constexpr frozen_step step = f.steps[Step];
    if constexpr (step.what == code_step::kind::collective) {
      exchange<Step, step.op>(s);
    } else {
      for (std::int64_t c = 0; c < f.copies; ++c) {
        if constexpr (step.what == code_step::kind::loop) {
          for (std::int64_t i = 0; i < step.elements; i += code::lanes)
            members<step.op, step.ops, 0>(s, c, i);
        } else if constexpr (step.what == code_step::kind::start) {
          start<step.op>(s, c);
        } else {
          kernel<step.op>(s, c);
        }
      }
    }
  }

  // ---- Loops -----------------------------------------------------------------------------------

  /// The members of a loop from number `M` on; `made`: the results of the ones before it.
  template <int First, int Count, int M, class... Made>
  EIGEN_ALWAYS_INLINE static void members(const compiled_state& s, std::int64_t c, std::int64_t i,
                                          const Made&... made) {
    if constexpr (M < Count) {
      constexpr frozen_op o = f.ops[First + M];
      constexpr frozen_result r = f.results[o.result];
      using to = cpp_type<r.type.element>;
      constexpr std::int64_t attr = o.attrs > 0 ? f.attrs[o.attr] : 0;
      const auto all = std::tie(made...);
      const auto value = [&]<int... I>(std::integer_sequence<int, I...>)
          __attribute__((always_inline)) {
        return apply_op_on_lanes<o.id, to, attr>(element<o.operand + I>(s, c, i, all)...);
      }
      (std::make_integer_sequence<int, o.operands>{});
      if constexpr (r.place.where != code_place::kind::nowhere)
        code::store(value, result<o.result>(s, c), i);
      members<First, Count, M + 1>(s, c, i, made..., value);
    }
  }
  template <int Operand, class All>
  EIGEN_ALWAYS_INLINE static auto element(const compiled_state& s, std::int64_t c, std::int64_t i,
                                          const All& made) {
    constexpr frozen_operand x = f.operands[Operand];
    constexpr code_access a = x.access;
    if constexpr (a.how == code_access::kind::local)
      return std::get<a.source>(made);
    else if constexpr (a.how == code_access::kind::splat)
      return code::splat_bits<cpp_type<x.type.element>>(a.bits);
    else if constexpr (a.how == code_access::kind::scalar)
      return code::splat(*read<Operand>(s, c));
    else if constexpr (a.how == code_access::kind::repeat)
      return code::repeat<a.count, a.inner>(read<Operand>(s, c), i);
    else
      return code::load(read<Operand>(s, c), i);
  }
  /// The memory that a loop reads for an operand: the source may have another shape.
  template <int Operand>
  EIGEN_ALWAYS_INLINE static auto read(const compiled_state& s, std::int64_t c) {
    constexpr frozen_operand x = f.operands[Operand];
    constexpr tensor_type source{x.type.element, shape{x.source_elements}};
    const auto* p = at<x.place, source>(s, c);
    return p;
  }

  // ---- Kernels ---------------------------------------------------------------------------------

  template <int Op>
  static constexpr auto attributes_of() {
    constexpr frozen_op o = f.ops[Op];
    std::array<std::int64_t, static_cast<std::size_t>(o.attrs)> list{};
    for (int i = 0; i < o.attrs; ++i) list[static_cast<std::size_t>(i)] = f.attrs[o.attr + i];
    return list;
  }
  template <int Op>
  static constexpr std::array attributes = attributes_of<Op>();
  template <int Op>
  struct types_of {
    static constexpr frozen_op o = f.ops[Op];
    tensor_type operands[static_cast<std::size_t>(o.operands) + 1],
        results[static_cast<std::size_t>(o.results) + 1];
    constexpr types_of() {
      for (int i = 0; i < o.operands; ++i) operands[i] = f.operands[o.operand + i].type;
      for (int i = 0; i < o.results; ++i) results[i] = f.results[o.result + i].type;
    }
  };
  template <int Op>
  static constexpr types_of<Op> types{};

  template <int Op>
  EIGEN_ALWAYS_INLINE static void kernel(const compiled_state& s, std::int64_t c) {
    constexpr frozen_op o = f.ops[Op];
    if constexpr (o.id == def<op::dot_general>.id)
      product<Op>(s, c);
    else if constexpr (o.id == def<op::reduce>.id)
      reduction<Op>(s, c);
    else
      call<Op>(s, c);
  }
  template <int Op>
  static void call(const compiled_state& s, std::int64_t c) {
    constexpr frozen_op o = f.ops[Op];
    static const kernel_function run = kernel_with_number(o.id);
    [&]<int... I, int... R>(std::integer_sequence<int, I...>, std::integer_sequence<int, R...>) {
      const std::array<const std::byte*, sizeof...(I)> in{
          reinterpret_cast<const std::byte*>(operand<o.operand + I>(s, c))...};
      const std::array<std::byte*, sizeof...(R)> to{
          reinterpret_cast<std::byte*>(result<o.result + R>(s, c))...};
      scratch& memory = (*s.spare)[0];
      memory.reset();
      run({{types<Op>.operands, sizeof...(I)},
           types<Op>.results[0],
           attributes<Op>,
           in,
           to[0],
           memory,
           {types<Op>.results, sizeof...(R)},
           to});
    }
    (std::make_integer_sequence<int, o.operands>{}, std::make_integer_sequence<int, o.results>{});
  }
  static kernel_function kernel_with_number(std::uint64_t id) {
    for (const op_def* d : registry)
      if (d->id == id) return run_detail::find_library_kernel(d);
    return nullptr;
  }
  static constexpr bool is_plain_float(dtype t) { return t == dtype::f32 || t == dtype::f64; }
  template <int Op>
  static void product(const compiled_state& s, std::int64_t c) {
    constexpr frozen_op o = f.ops[Op];
    constexpr tensor_type x = f.operands[o.operand].type, y = f.operands[o.operand + 1].type,
                          z = f.results[o.result].type;
    constexpr run_detail::dot_plan plan(x.shape, y.shape, attributes<Op>);
    if constexpr (!is_plain_float(z.element) || z.shape.elements() == 0 || plan.depth == 0 ||
                  plan.left.packed || plan.right.packed || plan.batch.count > 1) {
      call<Op>(s, c);
    } else {
      using type = cpp_type<z.element>;
      constexpr run_detail::matrix_view l = plan.left, r = plan.right;
      constexpr run_detail::dot_dim batch = plan.batch.at[0];
      using left = code::matrix_of<type, l.rows, l.columns, l.row_stride, l.column_stride>;
      using right = code::matrix_of<type, r.rows, r.columns, r.row_stride, r.column_stride>;
      for (std::int64_t b = 0; b < plan.batches; ++b) {
        const left matrix{operand<o.operand>(s, c) + b * batch.a};
        const right other{operand<o.operand + 1>(s, c) + b * batch.b};
        type* const to = result<o.result>(s, c) + b * plan.rows * plan.columns;
        if constexpr (!SameBits && code::is_small_product<type, left, right>)
          code::multiply_small(matrix, other, to);
        else
          code::multiply(matrix, other, to);
      }
    }
  }
  template <int Op>
  static void reduction(const compiled_state& s, std::int64_t c) {
    constexpr frozen_op o = f.ops[Op];
    constexpr tensor_type x = f.operands[o.operand].type;
    constexpr reduce_plan plan(x.shape, {attributes<Op>.data(), attributes<Op>.size()});
    if constexpr (o.operands != 1 || !plan.direct || x.shape.elements() == 0 ||
                  run_detail::is_half(x.element))
      call<Op>(s, c);
    else
      code::reduce<combiner_for(static_cast<combiner>(attributes<Op>[0]), x.element), plan.outer,
                   plan.reduced, plan.inner>(operand<o.operand>(s, c), result<o.result>(s, c));
  }

  // ---- Devices ---------------------------------------------------------------------------------

  template <int Op>
  static void start(const compiled_state& s, std::int64_t c) {
    constexpr frozen_op o = f.ops[Op];
    const run_detail::coordinates here = devices().coordinates_of(all_axes(), c);
    const span<const std::int64_t> list{attributes<Op>.data(), attributes<Op>.size()};
    std::int64_t n = 0;
    for (int a : op::shard_start::axes(list)) n = n * mesh.size(a) + here.at[a];
    using type = cpp_type<f.results[o.result].type.element>;
    *result<o.result>(s, c) = static_cast<type>(n * op::shard_start::distance(list));
  }
  static run_detail::device_set devices() { return run_detail::device_set::all(mesh); }
  static axis_set all_axes() {
    axis_set all;
    for (int a = 0; a < mesh.rank; ++a) all |= one_axis(mesh, a);
    return all;
  }
  /// The number of a collective among the steps.
  template <int Step>
  static constexpr std::size_t exchange_number() {
    std::size_t n = 0;
    for (int k = 0; k < Step; ++k) n += f.steps[k].what == code_step::kind::collective;
    return n;
  }
  template <int Step, int Op>
  static void exchange(const compiled_state& s) {
    constexpr frozen_op o = f.ops[Op];
    [&]<int... R>(std::integer_sequence<int, R...>) {
      const std::array<const std::byte*, sizeof...(R)> from{
          reinterpret_cast<const std::byte*>(operand<o.operand + R>(s, 0))...};
      const std::array<std::byte*, sizeof...(R)> to{
          reinterpret_cast<std::byte*>(result<o.result + R>(s, 0))...};
      (*s.collectives)[exchange_number<Step>()].run(*s.transport, from, to, *s.threads, *s.spare,
                                                    *s.messages);
    }
    (std::make_integer_sequence<int, o.results>{});
  }
  static std::vector<run_detail::collective_run> make_collectives() {
    std::vector<run_detail::collective_run> list;
    [&]<int... K>(std::integer_sequence<int, K...>) { (make_collective<K>(list), ...); }
    (std::make_integer_sequence<int, f.step_count>{});
    return list;
  }
  template <int Step>
  static void make_collective([[maybe_unused]] std::vector<run_detail::collective_run>& list) {
    constexpr frozen_step step = f.steps[Step];
    if constexpr (step.what == code_step::kind::collective) {
      const auto& t = types<step.op>;
      std::vector<run_detail::collective_operand> operands;
      for (std::size_t r = 0; r < static_cast<std::size_t>(t.o.results); ++r)
        operands.push_back({t.operands[r], t.results[r], all_axes(), all_axes()});
      list.emplace_back(devices(),
                        describe(t.o.id, {attributes<step.op>.data(), attributes<step.op>.size()}),
                        std::move(operands), &run_detail::find_combine);
    }
  }
  static collective describe(std::uint64_t id, span<const std::int64_t> attrs) {
    for (const op_def* d : {&def<op::all_gather>, &def<op::all_reduce>, &def<op::reduce_scatter>,
                            &def<op::all_to_all>, &def<op::permute>, &def<op::all_slice>})
      if (d->id == id) return d->describe(attrs);
    return {};
  }
  /// Outputs that no step writes where they are wanted.
  static void finish(const compiled_state& s) {
    [&]<std::size_t... I>(std::index_sequence<I...>) { (finish_one<I>(s), ...); }
    (std::make_index_sequence<static_cast<std::size_t>(f.output_count)>{});
  }
  template <std::size_t I>
  static void finish_one(const compiled_state& s) {
    constexpr frozen_argument x = f.outputs[I];
    if constexpr (x.place.where != code_place::kind::output || x.place.at != static_cast<int>(I))
      std::memcpy(s.out[I], at<x.place, x.local>(s, 0),
                  static_cast<std::size_t>(f.copies * run_detail::padded_bytes(x.local)));
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
/// One call at a time: the object has the memory of a call. Calls allocate only outputs, and these
/// only if the arrays of the last two calls are still in use. Bits: those of the interpreter.
///
/// Cost      compile time: about that of `check<Thunk>` and 20 ms for each op
/// Errors    (compile time) those of the program; E023 too many ops, inputs or outputs; E024 an op
///           with nested programs; (run time) R001 number of arrays, R002 shape, R003 element type
template <auto Thunk, bool SameBits = false>
class compiled {
  static constexpr bool compiles = report_static_error<backend_detail::frozen_error<Thunk>>();
  using steps = backend_detail::compiled_steps<Thunk, SameBits>;
  static constexpr const backend_detail::frozen_program& f = backend_detail::frozen<Thunk>;
  static constexpr auto inputs = static_cast<std::size_t>(f.input_count);
  static constexpr auto outputs = static_cast<std::size_t>(f.output_count);

 public:
  /// Bytes that a call needs beside inputs and outputs, of all devices.
  static constexpr std::int64_t memory_bytes = f.memory_bytes;
  static constexpr std::size_t input_count = inputs, output_count = outputs;

  compiled()
      : memory_(run_detail::allocate(f.memory_bytes)),
        transport_(steps::mesh),
        collectives_(steps::make_collectives()) {
    if constexpr (f.copies > 1) {
      for (std::size_t i = 0; i < inputs; ++i)
        shards_[i] =
            run_detail::allocate(f.copies * run_detail::padded_bytes(steps::inputs[i].local));
      for (std::size_t i = 0; i < outputs; ++i)
        made_[i] =
            run_detail::allocate(f.copies * run_detail::padded_bytes(steps::outputs[i].local));
    }
  }
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
    std::array<const std::byte*, inputs> in{};
    std::array<std::byte*, outputs> out{};
    auto results = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<array, outputs>{room(I)...};
    }
    (std::make_index_sequence<outputs>{});
    for (std::size_t i = 0; i < inputs; ++i) {
      check(i, arrays[i]->type());
      in[i] = arrays[i]->bytes();
      if constexpr (f.copies > 1) in[i] = cut(i, *arrays[i]);
    }
    for (std::size_t i = 0; i < outputs; ++i)
      out[i] = f.copies > 1 ? made_[i].get() : const_cast<std::byte*>(results[i].bytes());
    run(in, out);
    if constexpr (f.copies > 1)
      for (std::size_t i = 0; i < outputs; ++i) join(i, results[i]);
    return results;
  }
  /// The same on memory: `in` and `out` point to buffers of `padded_bytes` for each device, which
  /// may be read and written in whole groups of 16 elements. Allocates nothing.
  void run(std::span<const std::byte* const, inputs> in, std::span<std::byte* const, outputs> out) {
    const backend_detail::compiled_state s{memory_.get(), in.data(), out.data(), &transport_,
                                           &threads_,     &spare_,   &messages_, &collectives_};
    [&]<int... K>(std::integer_sequence<int, K...>) { (steps::template run<K>(s), ...); }
    (std::make_integer_sequence<int, f.step_count>{});
    steps::finish(s);
  }

 private:
  static void check(std::size_t i, const tensor_type& have) {
    if (have == steps::inputs[i].global) return;
    run_detail::need_input_type("array", {steps::inputs[i].name, steps::inputs[i].name_size}, have,
                                steps::inputs[i].global);
  }
  /// An unused array for an output: one of two, or a new one.
  array room(std::size_t i) {
    for (auto& b : rooms_[i]) {
      if (!b || b.use_count() == 1) {
        if (!b) b = run_detail::allocate(run_detail::padded_bytes(steps::outputs[i].global));
        return array(steps::outputs[i].global, b);
      }
    }
    rooms_[i][1] = std::exchange(
        rooms_[i][0], run_detail::allocate(run_detail::padded_bytes(steps::outputs[i].global)));
    return array(steps::outputs[i].global, rooms_[i][0]);
  }
  const std::byte* cut(std::size_t i, const array& global) {
    const auto& x = steps::inputs[i];
    const array whole = run_detail::resized(global, x.sharding.global(x.local.shape, steps::mesh));
    copy_shards(x, whole.shape(), [&](const std::int64_t* start, std::int64_t shard) {
      run_detail::copy_box(size_of(x.local.element), x.local.shape, whole.shape(), start,
                           whole.bytes(), x.local.shape, nullptr, shards_[i].get() + shard);
    });
    return shards_[i].get();
  }
  void join(std::size_t i, array& global) {
    const auto& x = steps::outputs[i];
    const shape all = x.sharding.global(x.local.shape, steps::mesh);
    array padded = all == x.global.shape ? global : array(tensor_type{x.local.element, all});
    copy_shards(x, all, [&](const std::int64_t* start, std::int64_t shard) {
      run_detail::copy_box(size_of(x.local.element), x.local.shape, x.local.shape, nullptr,
                           made_[i].get() + shard, all, start,
                           const_cast<std::byte*>(padded.bytes()));
    });
    if (!(all == x.global.shape)) global = run_detail::resized(padded, x.global.shape);
  }
  /// Calls f(start, bytes) with the place of each shard in the whole, and in the buffer of shards.
  template <class F>
  static void copy_shards(const backend_detail::frozen_argument& x, const shape&, F each) {
    const run_detail::device_set devices = steps::devices();
    for (std::int64_t c = 0; c < f.copies; ++c)
      each(run_detail::start_of(steps::mesh, x.sharding, x.local.shape,
                                devices.coordinates_of(steps::all_axes(), c))
               .at,
           c * run_detail::padded_bytes(x.local));
  }

  run_detail::buffer memory_;
  run_detail::in_process transport_;
  run_detail::thread_pool threads_{1};
  std::vector<scratch> spare_ = std::vector<scratch>(1);
  scratch messages_;
  std::vector<run_detail::collective_run> collectives_;
  std::array<run_detail::buffer, inputs> shards_;
  std::array<run_detail::buffer, outputs> made_;
  std::array<std::array<run_detail::buffer, 2>, outputs> rooms_;
};

}  // namespace partita
