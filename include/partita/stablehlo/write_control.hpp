/// Writers of loops, branches, calls, barriers and places.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/stablehlo/write_composite.hpp>

namespace partita::stablehlo_detail {

constexpr void write_while(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "\"stablehlo.while\"(";
  w.operands(o);
  w.out() << ") (";
  w.region(w.p.region(o, 0));
  w.out() << ", ";
  w.region(w.p.region(o, 1));
  w.out() << ')';
  w.signature(o);
}
/// Each branch calls a function, which receives its arguments in order.
constexpr void write_case(body_writer& w, op_id o) {
  const op_node& n = w.p.op(o);
  const auto from = w.operand_types(o), to = w.result_types(o);
  vec<ssa> arguments;
  for (int i = 1; i < n.operand_count; ++i) arguments.push_back(w.operand(o, i));
  vec<text> functions;
  for (const auto& branch : w.p.regions_of(o)) {
    functions.push_back(w.m.new_name("branch"));
    write_private_function(w.m, functions.back().view(), branch, w.own);
  }
  w.begin(o);
  w.out() << "\"stablehlo.case\"(" << w.operand(o, 0) << ") (";
  for (std::size_t r = 0; r < functions.size(); ++r) {
    w.out() << (r > 0 ? ", {\n" : "{\n");
    ++w.f.depth;
    const ssa made = w.call(functions[r].view(), {arguments.data(), arguments.size()},
                            span<const tensor_type>{from.data(), from.size()}.subspan(1),
                            {to.data(), to.size()});
    vec<ssa> values;
    for (int i = 0; i < n.result_count; ++i)
      values.push_back({made.number, n.result_count > 1 ? i : -1});
    w.return_values("stablehlo.return", {values.data(), values.size()}, {to.data(), to.size()});
    --w.f.depth;
    w.indent();
    w.out() << '}';
  }
  w.out() << ')';
  w.signature({from.data(), 1}, {to.data(), to.size()});
}
constexpr void write_call(body_writer& w, op_id o) {
  const text function = w.m.new_name("call");
  write_private_function(w.m, function.view(), w.p.region(o, 0), w.own);
  write_composite(w, o, function.view());
}
/// A `while` over a counter, the operands and the stacked results, whose body is a function.
class scan_writer {
 public:
  constexpr scan_writer(body_writer& around, op_id o, std::string_view body_name,
                        function_writer& f)
      : p_(around.p),
        o_(o),
        k_(around.p.attrs(o)),
        body_(p_.region(o, 0)),
        body_name_(body_name),
        w_(around.m, f, body_) {}

  /// Writes a function with this name and the operands as arguments.
  constexpr void write(std::string_view name) {
    const op_node& n = p_.op(o_);
    w_.out() << "  func.func private @" << name << '(';
    vec<ssa> values;
    values.push_back({});
    vec<tensor_type> types;
    types.push_back(index_type());
    append_list(w_.out(), n.operand_count, [&](int i) {
      values.push_back({-1 - i, -1});
      types.push_back(p_.type(p_.operand(o_, i)));
      w_.out() << values.back() << ": ";
      w_.type(types.back());
    });
    w_.out() << ") -> (";
    append_list(w_.out(), n.result_count, [&](int r) { w_.type(p_.type(n.result + r)); });
    w_.out() << ") {\n";
    values[0] = w_.constant(index_type(), 0);
    for (int j = 0; j < k_.stacked; ++j) {
      types.push_back(p_.type(n.result + k_.carried + j));
      values.push_back(w_.constant(types.back(), 0));
    }
    // (A loop without iterations has no slices.)
    if (k_.length > 0) loop(values, types);
    vec<ssa> results;
    vec<tensor_type> result_types;
    for (int r = 0; r < n.result_count; ++r) {
      const int at = r < k_.carried ? 1 + k_.constants + r : 1 + n.operand_count + r - k_.carried;
      results.push_back(values[static_cast<std::size_t>(at)]);
      result_types.push_back(types[static_cast<std::size_t>(at)]);
    }
    w_.return_values("return", {results.data(), results.size()},
                     {result_types.data(), result_types.size()});
    w_.out() << "  }\n";
  }

 private:
  const program& p_;
  op_id o_;
  op::scan::counts k_;
  const program& body_;
  std::string_view body_name_;
  body_writer w_;

  static constexpr tensor_type index_type() { return {dtype::i32, {}}; }

  constexpr void loop(vec<ssa>& values, const vec<tensor_type>& types) {
    w_.indent();
    const ssa made = w_.fresh();
    w_.out() << made << ':' << values.size() << " = \"stablehlo.while\"(";
    append_list(w_.out(), static_cast<int>(values.size()),
                [&](int i) { w_.out() << values[static_cast<std::size_t>(i)]; });
    w_.out() << ") ({\n";
    const auto type_at = [&](int i) { return types[static_cast<std::size_t>(i)]; };
    const int count = static_cast<int>(values.size());
    const vec<ssa> seen = w_.block(count, type_at);
    const ssa length = w_.constant(index_type(), k_.length);
    const ssa goes_on = w_.compare("LT", seen[0], length, index_type());
    const tensor_type boolean{dtype::boolean, {}};
    w_.return_values("stablehlo.return", {&goes_on, 1}, {&boolean, 1});
    --w_.f.depth;
    w_.indent();
    w_.out() << "}, {\n";
    iteration(w_.block(count, type_at), types);
    --w_.f.depth;
    w_.indent();
    w_.out() << "})";
    w_.signature({types.data(), types.size()}, {types.data(), types.size()});
    for (int i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = {made.number, i};
  }
  constexpr void iteration(const vec<ssa>& x, const vec<tensor_type>& types) {
    const ssa one = w_.constant(index_type(), 1), zero = w_.constant(index_type(), 0);
    ssa position = x[0];
    if (k_.reversed)
      position = w_.apply("subtract", w_.constant(index_type(), k_.length - 1), x[0], index_type());
    vec<ssa> arguments;
    vec<tensor_type> from, to;
    arguments.push_back(position);
    const int whole = 1 + k_.constants + k_.carried;
    for (int i = 1; i < whole + k_.sliced; ++i) {
      const auto at = static_cast<std::size_t>(i);
      arguments.push_back(i < whole ? x[at] : slice(x[at], types[at], position, zero));
    }
    for (int i = 0; i < body_.input_count(); ++i) from.push_back(body_.input_type(i));
    for (int i = 0; i < body_.output_count(); ++i) to.push_back(body_.output_type(i));
    const ssa made = w_.call(body_name_, {arguments.data(), arguments.size()},
                             {from.data(), from.size()}, {to.data(), to.size()});
    const auto given = [&](int i) { return ssa{made.number, to.size() > 1 ? i : -1}; };
    vec<ssa> next = x;
    next[0] = w_.apply("add", x[0], one, index_type());
    for (int i = 0; i < k_.carried; ++i)
      next[static_cast<std::size_t>(1 + k_.constants + i)] = given(i);
    for (int j = 0; j < k_.stacked; ++j) {
      const auto at = static_cast<std::size_t>(whole + k_.sliced + j);
      next[at] = stack(x[at], types[at], given(k_.carried + j), body_.output_type(k_.carried + j),
                       position, zero);
    }
    w_.return_values("stablehlo.return", {next.data(), next.size()}, {types.data(), types.size()});
  }
  constexpr tensor_type one_of(const tensor_type& t) const {
    tensor_type piece = t;
    piece.shape[0] = 1;
    return piece;
  }
  constexpr void starts(const tensor_type& t, const ssa& position, const ssa& zero) {
    for (int d = 0; d < t.shape.rank; ++d) w_.out() << ", " << (d == 0 ? position : zero);
  }
  constexpr void start_types(vec<tensor_type>& list, const tensor_type& t) {
    for (int d = 0; d < t.shape.rank; ++d) list.push_back(index_type());
  }
  constexpr ssa slice(const ssa& x, const tensor_type& t, const ssa& position, const ssa& zero) {
    const tensor_type piece = one_of(t);
    const ssa v = w_.begin();
    w_.out() << "stablehlo.dynamic_slice " << x;
    starts(t, position, zero);
    w_.out() << ", sizes = ";
    write_list(w_.out(), {piece.shape.extents, static_cast<std::size_t>(piece.shape.rank)});
    vec<tensor_type> from;
    from.push_back(t);
    start_types(from, t);
    w_.signature({from.data(), from.size()}, {&piece, 1});
    return w_.reshape(v, piece, op::scan::slice_of(t));
  }
  constexpr ssa stack(const ssa& x, const tensor_type& t, const ssa& given,
                      const tensor_type& given_type, const ssa& position, const ssa& zero) {
    const tensor_type piece = one_of(t);
    const ssa update = w_.reshape(given, given_type, piece);
    const ssa v = w_.begin();
    w_.out() << "stablehlo.dynamic_update_slice " << x << ", " << update;
    starts(t, position, zero);
    vec<tensor_type> from;
    from.push_back(t);
    from.push_back(piece);
    start_types(from, t);
    w_.signature({from.data(), from.size()}, {&t, 1});
    return v;
  }
};
constexpr void write_scan(body_writer& w, op_id o) {
  const text function = w.m.new_name("scan"), body = concat(function, ".body");
  write_private_function(w.m, body.view(), w.p.region(o, 0), w.own);
  function_writer f;
  scan_writer(w, o, body.view(), f).write(function.view());
  w.m.functions << f.out;
  write_composite(w, o, function.view());
}
constexpr void write_barrier(body_writer& w, op_id o) {
  w.begin(o);
  w.out() << "stablehlo.optimization_barrier ";
  w.operands(o);
  w.out() << " : ";
  const auto types = w.operand_types(o);
  append_list(w.out(), static_cast<int>(types.size()),
              [&](int i) { w.type(types[static_cast<std::size_t>(i)]); });
  w.out() << '\n';
}

/// Writes `@annotate_device_placement`, as JAX does.
constexpr void write_place(body_writer& w, op_id o) {
  if (!w.m.places) return write_name(w, o);
  w.begin(o);
  w.out() << "stablehlo.custom_call @annotate_device_placement(" << w.operand(o, 0)
          << ") {backend_config = \"\", has_side_effect = true, mhlo.frontend_attributes = "
             "{_xla_buffer_placement = \""
          << op::place::memories[w.p.attrs(o)[0]] << "\"}}";
  w.signature(o);
}

}  // namespace partita::stablehlo_detail
