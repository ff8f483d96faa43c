/// Writes functions of a module: names values, and adds the functions that other functions call.
#pragma once

#include <partita/ir/mesh.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>
#include <partita/stablehlo/module_text.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/place_table.hpp>

namespace partita::stablehlo_detail {

class body_writer;

/// Shardings of values inside a program, for a partitioner that reads it: `<@mesh, [{"B"}, {}]>`.
class inner_shardings {
 public:
  /// Adds the sharding of result `result` of the op with this number (op_marks::source).
  constexpr void add(int number, int result, const text& sharding) {
    while (static_cast<int>(first_.size()) <= number) first_.push_back(-1);
    list_.push_back({result, first_[number], sharding});
    first_[number] = static_cast<int>(list_.size()) - 1;
  }
  constexpr const text* find(int number, int result) const {
    const bool known = number >= 0 && number < static_cast<int>(first_.size());
    for (int i = known ? first_[number] : -1; i >= 0; i = list_[i].next)
      if (list_[i].result == result) return &list_[i].sharding;
    return nullptr;
  }

 private:
  struct entry {
    int result = 0, next = -1;
    text sharding;
  };
  vec<int> first_;  ///< by number
  vec<entry> list_;
};

/// A partly written module: the functions that other functions call, and the first error.
class module_writer {
 public:
  text functions;  ///< complete ones
  failure error;
  const partita::mesh* mesh = nullptr;         ///< of a device-local program
  const inner_shardings* shardings = nullptr;  ///< of values of the program
  /// Writes ops that only a device-local program has; false for other ops.
  bool (*write_more)(body_writer&, op_id) = nullptr;

  /// Returns an unused name for a function.
  constexpr text new_name(std::string_view of) { return concat("partita.", of, '.', ++names_); }

  /// Returns the name of the function with this key, or null if it is not written yet.
  constexpr const text* find(std::string_view key) const {
    const int i = table_.find(hash_of(key), [&](int k) { return keys_[k].view() == key; });
    return i < 0 ? nullptr : &values_[i];
  }
  constexpr void remember(const text& key, const text& name) {
    keys_.push_back(key);
    values_.push_back(name);
    table_.insert(static_cast<int>(keys_.size()) - 1,
                  [&](int k) { return hash_of(keys_[k].view()); });
  }

 private:
  int names_ = 0;
  vec<text> keys_, values_;
  place_table table_;
};

/// A function being written: its text, and the last number used for a name.
struct function_writer {
  text out;
  int last = -1;
  int depth = 2;
};

/// Writes the ops of a program into a function, including those of nested programs.
class body_writer {
 public:
  module_writer& m;
  function_writer& f;
  const program& p;
  vec<ssa> names;        ///< by value
  vec<ssa> coordinates;  ///< by axis of the mesh: this device's position; index -2: unset
  bool own;              ///< true for ops of the program itself, false for those of a decomposition

  constexpr body_writer(module_writer& module, function_writer& function, const program& of,
                        bool own_ops = false)
      : m(module), f(function), p(of), names(of.types.size(), ssa{}), own(own_ops) {}

  // ---- Parts of the text -----------------------------------------------------------------------

  constexpr text& out() { return f.out; }
  constexpr void indent() {
    for (int i = 0; i < f.depth && i < 32; ++i) f.out << "  ";
  }
  constexpr ssa fresh() { return {++f.last, -1}; }
  /// Writes `%5 = `.
  constexpr ssa begin() {
    indent();
    const ssa v = fresh();
    f.out << v << " = ";
    return v;
  }
  /// Writes `%5:2 = ` for all results of an op.
  constexpr void begin(op_id o) {
    indent();
    const op_node& n = p.op(o);
    const ssa v = fresh();
    f.out << v;
    if (n.result_count > 1) f.out << ':' << n.result_count;
    f.out << " = ";
    for (int r = 0; r < n.result_count; ++r)
      names[static_cast<std::size_t>(n.result + r)] = {v.number, n.result_count > 1 ? r : -1};
  }
  constexpr void type(const tensor_type& t) { write_type(f.out, t); }
  constexpr const tensor_type& type_of(op_id o, int i) const { return p.type(p.operand(o, i)); }
  constexpr const tensor_type& result_type(op_id o) const { return p.type(p.op(o).result); }
  constexpr ssa operand(op_id o, int i) const {
    return names[static_cast<std::size_t>(p.operand(o, i))];
  }
  /// Writes ` : (tensor<f32>, tensor<f32>) -> tensor<f32>` and the end of the line.
  constexpr void signature(span<const tensor_type> from, span<const tensor_type> to) {
    f.out << " : (";
    append_list(f.out, static_cast<int>(from.size()),
                [&](int i) { type(from[static_cast<std::size_t>(i)]); });
    f.out << ") -> ";
    if (to.size() != 1) f.out << '(';
    append_list(f.out, static_cast<int>(to.size()),
                [&](int i) { type(to[static_cast<std::size_t>(i)]); });
    if (to.size() != 1) f.out << ')';
    f.out << '\n';
  }
  constexpr vec<tensor_type> operand_types(op_id o) const {
    vec<tensor_type> list;
    for (value_id v : p.operands(o)) list.push_back(p.type(v));
    return list;
  }
  constexpr vec<tensor_type> result_types(op_id o) const {
    vec<tensor_type> list;
    const op_node& n = p.op(o);
    for (int r = 0; r < n.result_count; ++r) list.push_back(p.type(n.result + r));
    return list;
  }
  constexpr void signature(op_id o) {
    const auto from = operand_types(o), to = result_types(o);
    signature({from.data(), from.size()}, {to.data(), to.size()});
  }
  /// Writes `%1, %2`.
  constexpr void operands(op_id o) {
    append_list(f.out, p.op(o).operand_count, [&](int i) { f.out << operand(o, i); });
  }

  // ---- Auxiliary ops ---------------------------------------------------------------------------

  constexpr ssa constant(const tensor_type& t, std::int64_t kept) {
    const ssa v = begin();
    f.out << "stablehlo.constant ";
    write_splat(f.out, t, kept);
    f.out << " : ";
    type(t);
    f.out << '\n';
    return v;
  }
  /// Repeats a scalar to a shape. (`broadcast` is used only here; the program's own repetitions are
  /// written as `broadcast_in_dim`, so that the reader can distinguish them.)
  constexpr ssa everywhere(const ssa& scalar, dtype t, const shape& to) {
    const ssa v = begin();
    f.out << "stablehlo.broadcast " << scalar << ", sizes = ";
    write_list(f.out, {to.extents, static_cast<std::size_t>(to.rank)});
    signature_of_one({t, {}}, {t, to});
    return v;
  }
  constexpr void signature_of_one(const tensor_type& from, const tensor_type& to) {
    f.out << " : (";
    type(from);
    f.out << ") -> ";
    type(to);
    f.out << '\n';
  }
  /// Writes `%5 = stablehlo.add %1, %2 : tensor<f32>`.
  constexpr ssa apply(std::string_view name, const ssa& x, const ssa& y, const tensor_type& t) {
    const ssa v = begin();
    f.out << "stablehlo." << name << ' ' << x << ", " << y << " : ";
    type(t);
    f.out << '\n';
    return v;
  }
  constexpr ssa compare(std::string_view direction, const ssa& x, const ssa& y,
                        const tensor_type& t, std::string_view how = {}) {
    const ssa v = begin();
    f.out << "stablehlo.compare  " << direction << ", " << x << ", " << y;
    if (!how.empty()) f.out << ",  " << how;
    const tensor_type from[] = {t, t}, to[] = {{dtype::boolean, t.shape}};
    signature(from, to);
    return v;
  }
  constexpr ssa select(const ssa& predicate, const ssa& x, const ssa& y, const tensor_type& t,
                       const shape& of_predicate) {
    const ssa v = begin();
    f.out << "stablehlo.select " << predicate << ", " << x << ", " << y << " : ";
    type({dtype::boolean, of_predicate});
    f.out << ", ";
    type(t);
    f.out << '\n';
    return v;
  }
  constexpr ssa convert(const ssa& x, const tensor_type& from, dtype to) {
    if (from.element == to) return x;
    const ssa v = begin();
    f.out << "stablehlo.convert " << x;
    signature_of_one(from, {to, from.shape});
    return v;
  }
  constexpr ssa reshape(const ssa& x, const tensor_type& from, const tensor_type& to) {
    if (from == to) return x;
    const ssa v = begin();
    f.out << "stablehlo.reshape " << x;
    signature_of_one(from, to);
    return v;
  }
  constexpr void return_values(std::string_view op, span<const ssa> values,
                               span<const tensor_type> types) {
    indent();
    f.out << op;
    if (!values.empty()) f.out << ' ';
    append_list(f.out, static_cast<int>(values.size()),
                [&](int i) { f.out << values[static_cast<std::size_t>(i)]; });
    if (!values.empty()) f.out << " : ";
    append_list(f.out, static_cast<int>(types.size()),
                [&](int i) { type(types[static_cast<std::size_t>(i)]); });
    f.out << '\n';
  }
  /// Writes `^bb0(%1: tensor<f32>, %2: tensor<f32>):` and indents the following ops one level
  /// deeper.
  template <class Type>
  constexpr vec<ssa> block(int count, const Type& type_at) {
    vec<ssa> list;
    indent();
    f.out << "^bb0(";
    append_list(f.out, count, [&](int i) {
      list.push_back(fresh());
      f.out << list.back() << ": ";
      type(type_at(i));
    });
    f.out << "):\n";
    ++f.depth;
    return list;
  }
  /// Writes `({ ^bb0(%a, %b): %c = add %a, %b; return %c })` for scalars.
  constexpr void combiner_region(std::string_view name, dtype t) {
    const tensor_type scalar{t, {}};
    f.out << " ({\n";
    const vec<ssa> x = block(2, [&](int) { return scalar; });
    const ssa made = apply(name, x[0], x[1], scalar);
    return_values("stablehlo.return", {&made, 1}, {&scalar, 1});
    --f.depth;
    indent();
    f.out << "})";
  }

  // ---- Programs --------------------------------------------------------------------------------

  /// Writes a nested program as a region: `{ ^bb0(...): ... return }`.
  constexpr void region(const program& r) {
    body_writer inner(m, f, r, own);
    f.out << "{\n";
    const vec<ssa> arguments = inner.block(r.input_count(), [&](int i) { return r.input_type(i); });
    for (int i = 0; i < r.input_count(); ++i)
      inner.names[static_cast<std::size_t>(r.inputs[static_cast<std::size_t>(i)])] =
          arguments[static_cast<std::size_t>(i)];
    inner.ops();
    inner.return_outputs("stablehlo.return");
    --f.depth;
    indent();
    f.out << '}';
  }
  constexpr void return_outputs(std::string_view op) {
    vec<ssa> values;
    vec<tensor_type> types;
    for (const auto& each : p.outputs) {
      values.push_back(names[static_cast<std::size_t>(each.value)]);
      types.push_back(p.type(each.value));
    }
    return_values(op, {values.data(), values.size()}, {types.data(), types.size()});
  }
  constexpr void ops();
  /// Writes `%5 = sdy.sharding_constraint %4 <@mesh, [{"B"}, {}]> : tensor<f32>` for each result
  /// with a sharding.
  constexpr void constrain(op_id o) {
    const op_node& n = p.op(o);
    for (int r = 0; r < n.result_count; ++r) {
      const text* sharding = m.shardings->find(n.marks.source, r);
      if (sharding == nullptr) continue;
      ssa& name = names[static_cast<std::size_t>(n.result + r)];
      const ssa plain = name;
      name = begin();
      f.out << "sdy.sharding_constraint " << plain << ' ' << *sharding << " : ";
      type(p.type(n.result + r));
      f.out << '\n';
    }
  }

  /// Writes a call: `%5:2 = func.call @f(%1) : (...) -> (...)`.
  constexpr ssa call(std::string_view name, span<const ssa> values, span<const tensor_type> from,
                     span<const tensor_type> to) {
    indent();
    const ssa v = fresh();
    f.out << v;
    if (to.size() > 1) f.out << ':' << to.size();
    f.out << " = func.call @" << name << '(';
    append_list(f.out, static_cast<int>(values.size()),
                [&](int i) { f.out << values[static_cast<std::size_t>(i)]; });
    f.out << ')';
    signature(from, to);
    return v;
  }
};

/// Writes a program as a private function of a module. `own`: see body_writer.
constexpr void write_private_function(module_writer& m, std::string_view name, const program& p,
                                      bool own = false) {
  function_writer f;
  body_writer body(m, f, p, own);
  f.out << "  func.func private @" << name << '(';
  append_list(f.out, p.input_count(), [&](int i) {
    const ssa argument{-1 - i, -1};
    f.out << argument << ": ";
    write_type(f.out, p.input_type(i));
    body.names[static_cast<std::size_t>(p.inputs[static_cast<std::size_t>(i)])] = argument;
  });
  f.out << ") -> (";
  append_list(f.out, p.output_count(), [&](int i) { write_type(f.out, p.output_type(i)); });
  f.out << ") {\n";
  body.ops();
  body.return_outputs("return");
  f.out << "  }\n";
  m.functions << f.out;
}

}  // namespace partita::stablehlo_detail
