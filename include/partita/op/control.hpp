/// while, scan, case and call: ops with nested programs.
///
/// Nested programs are closed: what they use of the program around them is an operand. Their tile
/// maps are not lists of entries but wires (see ir/wires.hpp): an operand, the inputs and outputs
/// that it becomes and the result lie on the mesh alike, and propagation carries a sharding along
/// them, into the nested programs and out again, to a fixed point.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/op/reverse_mode.hpp>

namespace partita::op {

/// What the ops of this file share.
struct control_op {
  static constexpr op_role role = op_role::control;

  /// Errors    S180 number of inputs or outputs, S181 type of an input or output
  template <class Want>
  static constexpr void check_inputs(infer_context& c, std::string_view name, const program& r,
                                     int count, const Want& want) {
    if (r.input_count() != count)
      return c.fail("S180", name, ": a nested program takes ", r.input_count(),
                    " values; it is given ", count);
    for (int i = 0; i < count; ++i)
      if (r.input_type(i) != want(i))
        return c.fail("S181", name, ": input ", i, " of a nested program has type ",
                      r.input_type(i), "; it is given ", want(i));
  }
  /// The types of the first `typed` outputs are known.
  ///
  /// Errors    S180 number of outputs, S182 type of an output
  template <class Want>
  static constexpr void check_outputs(infer_context& c, std::string_view name,
                                      std::string_view what, const program& r, int count, int typed,
                                      const Want& want) {
    if (r.output_count() != count)
      return c.fail("S180", name, ": ", what, " gives ", r.output_count(), " values; it must give ",
                    count);
    for (int i = 0; i < typed; ++i)
      if (r.output_type(i) != want(i))
        return c.fail("S182", name, ": ", what, " gives ", r.output_type(i), " as value ", i, "; ",
                      want(i), " is needed");
  }
  static constexpr void give(infer_context& c, std::string_view name,
                             const vec<tensor_type>& types) {
    if (c.error) return;
    if (types.empty()) return c.fail("S180", name, ": it has no results");
    c.result = types[0];
    for (std::size_t i = 1; i < types.size(); ++i) c.more.push_back(types[i]);
  }
  static constexpr bool regions(infer_context& c, std::string_view name, std::size_t least,
                                std::size_t most) {
    if (c.regions.size() >= least && c.regions.size() <= most) return true;
    c.fail("S180", name, ": ", c.regions.size(), " nested programs; it takes ", least,
           most > least ? " or more" : "");
    return false;
  }
};

/// Repeats the second nested program on the carried values while the first one holds for them.
///
/// Shapes    carried values (...) -> the same; condition (...) -> i1, body (...) -> (...)
/// Errors    S180 numbers of values, S181 types, S182 the body changes a carried type or the
///           condition gives no i1
/// Differs   none from StableHLO; there is no derivative (use scan or for_loop)
struct while_loop : control_op {
  static constexpr std::string_view name = "while";
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 2, 2)) return;
    const int n = static_cast<int>(c.operands.size());
    const auto carried = [&](int i) { return c.operands[static_cast<std::size_t>(i)]; };
    for (const auto& r : c.regions) check_inputs(c, name, r, n, carried);
    check_outputs(c, name, "the condition", c.regions[0], 1, 1, [](int) {
      return tensor_type{dtype::boolean, {}};
    });
    check_outputs(c, name, "the body", c.regions[1], n, n, carried);
    vec<tensor_type> types;
    for (const auto& t : c.operands) types.push_back(t);
    give(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    for (int i = 0; i < p.op(o).operand_count; ++i)
      w.add().operand(i).input(0, i).input(1, i).output(1, i).result(i);
    w.add().output(0, 0);
  }
};

/// Runs a nested program `length` times: over slices of stacked values, with carried values, giving
/// stacked values.
///
/// Attributes: length, reversed (the last slice first), how many constant, carried and sliced
/// operands, and how many stacked results; saved: the last of those are the carried values as each
/// iteration found them, kept for the derivative and dropped where nothing needs them.
///
/// Shapes    constants..., carried..., sliced (length, ...)...
///             -> carried..., stacked (length, ...)...;
///           nested: index (i32), constants..., carried..., slices... -> carried..., slices...
/// Errors    S180 numbers of values, S181, S182 types, S183 length negative or above the greatest
///           i32, S184 extent of a sliced operand
/// Source    no op of StableHLO, where it is written as a while; the semantics are those of
///           jax.lax.scan
struct scan : control_op {
  static constexpr std::string_view name = "scan";
  struct counts {
    std::int64_t length = 0;
    bool reversed = false, saved = false;
    int constants = 0, carried = 0, sliced = 0, stacked = 0;

    constexpr explicit counts(std::span<const std::int64_t> a)
        : length(a[0]),
          reversed(a[1] != 0),
          saved(a[6] != 0),
          constants(static_cast<int>(a[2])),
          carried(static_cast<int>(a[3])),
          sliced(static_cast<int>(a[4])),
          stacked(static_cast<int>(a[5])) {}
  };
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("length");
    f.flag("reversed");
    f.number_or("constants", 0);
    f.number_or("carried", 0);
    f.number_or("sliced", 0);
    f.number_or("stacked", 0);
    f.flag("saved");
  }
  static constexpr tensor_type slice_of(tensor_type t) {
    shape s;
    for (int d = 1; d < t.shape.rank; ++d) s.push_back(t.shape[d]);
    return {t.element, s};
  }
  static constexpr tensor_type stack_of(std::int64_t length, const tensor_type& t) {
    shape s{length};
    for (auto e : t.shape) s.push_back(e);
    return {t.element, s};
  }
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 1, 1)) return;
    if (c.attrs.size() != 7)
      return c.fail("S180", name, ": ", c.attrs.size(), " attributes; 7 are needed");
    const program& body = c.regions[0];
    const auto given = static_cast<std::int64_t>(c.operands.size());
    std::int64_t taken = 0;
    for (int i = 2; i < 5; ++i) {
      const bool fits = c.attrs[i] >= 0 && c.attrs[i] <= given && taken >= 0;
      taken = fits ? taken + c.attrs[i] : -1;
    }
    if (taken != given)
      return c.fail("S180", name, ": ", c.attrs[2], " constant, ", c.attrs[3], " carried and ",
                    c.attrs[4], " sliced values; it is given ", given);
    if (c.attrs[5] < (c.attrs[6] != 0 ? c.attrs[3] : 0) || c.attrs[5] > body.output_count())
      return c.fail("S180", name, ": ", c.attrs[5], " stacked results, ",
                    c.attrs[6] != 0 ? c.attrs[3] : 0, " of them saved; the body gives ",
                    body.output_count(), " values");
    const counts k(c.attrs);
    constexpr std::int64_t most = 0x7fffffff;  // the index is an i32
    if (k.length < 0 || k.length > most)
      return c.fail("S183", name, ": the length is ", k.length, "; it must lie between 0 and ",
                    most);
    const auto operand = [&](int i) { return c.operands[static_cast<std::size_t>(i)]; };
    const int n = static_cast<int>(given);
    for (int i = n - k.sliced; i < n; ++i)
      if (operand(i).shape.rank == 0 || operand(i).shape[0] != k.length)
        return c.fail("S184", name, ": sliced value ", i - (n - k.sliced), " has type ", operand(i),
                      "; its first extent must be the length, ", k.length);
    check_inputs(c, name, body, 1 + n, [&](int i) {
      if (i == 0) return tensor_type{dtype::i32, {}};
      return i - 1 < n - k.sliced ? operand(i - 1) : slice_of(operand(i - 1));
    });
    check_outputs(c, name, "the body", body, k.carried + k.stacked, k.carried,
                  [&](int i) { return operand(k.constants + i); });
    if (c.error) return;
    vec<tensor_type> types;
    for (int i = 0; i < k.carried; ++i) types.push_back(operand(k.constants + i));
    for (int j = k.carried; j < body.output_count(); ++j)
      types.push_back(stack_of(k.length, body.output_type(j)));
    give(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    const counts k(p.attrs(o));
    const int first = k.constants + k.carried;
    w.trips = k.length;
    w.add().input(0, 0);
    for (int i = 0; i < k.constants; ++i) w.add().operand(i).input(0, 1 + i);
    for (int i = 0; i < k.carried; ++i)
      w.add().operand(k.constants + i).input(0, 1 + k.constants + i).output(0, i).result(i);
    for (int i = 0; i < k.sliced; ++i) w.add().operand(first + i, 1).input(0, 1 + first + i);
    for (int j = k.carried; j < k.carried + k.stacked; ++j) w.add().output(0, j).result(j, 1);
  }
  static constexpr void pruned(vec<std::int64_t>& attrs, const vec<char>& operands,
                               const vec<char>& results) {
    const counts k({attrs.data(), attrs.size()});
    const auto kept = [](const vec<char>& list, int begin, int count) {
      std::int64_t n = 0;
      for (int i = begin; i < begin + count; ++i) n += list[static_cast<std::size_t>(i)];
      return n;
    };
    attrs[2] = kept(operands, 0, k.constants);
    attrs[3] = kept(operands, k.constants, k.carried);
    attrs[4] = kept(operands, k.constants + k.carried, k.sliced);
    attrs[5] = kept(results, k.carried, k.stacked);
    attrs[6] = k.saved && kept(results, k.stacked, k.carried) == attrs[3];
  }
  /// Backwards over the same slices, from the carried values that were saved.
  static constexpr void derive(derive_context& c);
};

/// The nested program of the given number, applied to the arguments. A number out of range takes
/// the last one.
///
/// Shapes    index (i32, rank 0), arguments... -> results...;
///           each nested: arguments... -> results...
/// Errors    S180 numbers of values, S181 types, S185 branches disagree, S186 index
struct case_of : control_op {
  static constexpr std::string_view name = "case";
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 1, 1000)) return;
    if (c.operands.empty()) return c.fail("S186", name, ": there is no index");
    const tensor_type index{dtype::i32, {}};
    if (c.operands[0] != index)
      return c.fail("S186", name, ": the index has type ", c.operands[0], "; ", index,
                    " is needed");
    const program& first = c.regions[0];
    for (std::size_t r = 0; r < c.regions.size() && !c.error; ++r) {
      const program& branch = c.regions[r];
      check_inputs(c, name, branch, static_cast<int>(c.operands.size()) - 1,
                   [&](int i) { return c.operands[static_cast<std::size_t>(i + 1)]; });
      bool same = branch.output_count() == first.output_count();
      for (int j = 0; same && j < first.output_count(); ++j)
        same = branch.output_type(j) == first.output_type(j);
      if (!same) {
        text mine, theirs;
        append_list(mine, branch.output_count(), [&](int j) { mine << branch.output_type(j); });
        append_list(theirs, first.output_count(), [&](int j) { theirs << first.output_type(j); });
        c.fail("S185", name, ": branch ", r, " gives (", mine, "), branch 0 gives (", theirs, ")");
      }
    }
    vec<tensor_type> types;
    for (int j = 0; j < first.output_count(); ++j) types.push_back(first.output_type(j));
    give(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    const op_node& n = p.op(o);
    w.add().operand(0);
    for (int i = 1; i < n.operand_count; ++i) {
      w.add().operand(i);
      for (int r = 0; r < n.region_count; ++r) w.input(r, i - 1);
    }
    for (int j = 0; j < n.result_count; ++j) {
      w.add().result(j);
      for (int r = 0; r < n.region_count; ++r) w.output(r, j);
    }
  }
  static constexpr void derive(derive_context& c);
};

/// A named computation, applied to the arguments.
///
/// Shapes    arguments... -> results..., those of the nested program
/// Errors    S180 numbers of values, S181 types
struct call : control_op {
  static constexpr std::string_view name = "call";
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 1, 1)) return;
    check_inputs(c, name, c.regions[0], static_cast<int>(c.operands.size()),
                 [&](int i) { return c.operands[static_cast<std::size_t>(i)]; });
    vec<tensor_type> types;
    for (int j = 0; j < c.regions[0].output_count(); ++j)
      types.push_back(c.regions[0].output_type(j));
    give(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    for (int i = 0; i < p.op(o).operand_count; ++i) w.add().operand(i).input(0, i);
    for (int j = 0; j < p.op(o).result_count; ++j) w.add().output(0, j).result(j);
  }
  static constexpr void derive(derive_context& c);
};

/// Passes its operands on together: nothing is moved across it.
///
/// Tile map  ([i], [j]) -> ([i], [j]), each dimension of each operand by itself
struct optimization_barrier {
  static constexpr std::string_view name = "optimization_barrier";
  static constexpr void infer(infer_context& c) {
    if (c.operands.empty()) return c.fail("S180", name, ": it has no results");
    c.result = c.operands[0];
    for (std::size_t i = 1; i < c.operands.size(); ++i) c.more.push_back(c.operands[i]);
  }
  static constexpr void tile_map(tile_map_context& c) {
    for (std::size_t i = 0; i < c.operands.size(); ++i)
      for (int d = 0; d < c.operands[i].shape.rank; ++d) {
        c.tile(c.operands[i].shape[d], i == 0 ? d : no_dim).operand(static_cast<int>(i), d);
        if (i > 0) c.also(static_cast<int>(i), d);
      }
  }
  static constexpr void derive(derive_context& c) {
    for (std::size_t i = 0; i < c.operands.size(); ++i) c.operands[i] = c.cotangents[i];
  }
};

}  // namespace partita::op

namespace partita::ops {

/// A program as regions of one.
constexpr vec<program> region_list(program&& r) {
  vec<program> list;
  list.push_back(static_cast<program&&>(r));
  return list;
}

constexpr value_id while_loop(builder& b, std::span<const value_id> carried, program&& condition,
                              program&& body) {
  vec<program> list = region_list(static_cast<program&&>(condition));
  list.push_back(static_cast<program&&>(body));
  return b.emit(def<op::while_loop>, carried, {}, {}, static_cast<vec<program>&&>(list));
}

/// Without saved results in `body`: they are added here.
constexpr value_id scan(builder& b, std::int64_t length, bool reversed,
                        std::span<const value_id> constants, std::span<const value_id> carried,
                        std::span<const value_id> sliced, program&& body) {
  vec<value_id> operands(constants.data(), constants.data() + constants.size());
  operands.insert_back(carried.begin(), carried.end());
  operands.insert_back(sliced.begin(), sliced.end());
  const auto stacked = static_cast<std::int64_t>(body.outputs.size());
  const bool whole = body.inputs.size() == 1 + operands.size();  // else the shape rule objects
  for (std::size_t i = 0; i < carried.size() && whole; ++i)
    body.outputs.push_back({body.inputs[1 + constants.size() + i], {}});
  const std::int64_t attrs[] = {length,
                                reversed,
                                static_cast<std::int64_t>(constants.size()),
                                static_cast<std::int64_t>(carried.size()),
                                static_cast<std::int64_t>(sliced.size()),
                                stacked,
                                1};
  return b.emit(def<op::scan>, operands, attrs, {}, region_list(static_cast<program&&>(body)));
}

constexpr value_id case_of(builder& b, value_id index, std::span<const value_id> arguments,
                           vec<program>&& branches) {
  vec<value_id> operands{index};
  operands.insert_back(arguments.begin(), arguments.end());
  return b.emit(def<op::case_of>, operands, {}, {}, static_cast<vec<program>&&>(branches));
}

constexpr value_id call(builder& b, std::string_view name, std::span<const value_id> arguments,
                        program&& f) {
  const value_id v =
      b.emit(def<op::call>, arguments, {}, {}, region_list(static_cast<program&&>(f)));
  b.name_last(name);
  return v;
}

constexpr value_id optimization_barrier(builder& b, std::span<const value_id> values) {
  return b.emit(def<op::optimization_barrier>, values, {});
}

}  // namespace partita::ops

namespace partita::op {

namespace detail {
/// The results whose cotangents are there, and these.
struct known_cotangents {
  vec<int> results;
  vec<value_id> values;

  constexpr explicit known_cotangents(const derive_context& c) {
    for (std::size_t i = 0; i < c.cotangents.size(); ++i)
      if (c.cotangents[i] >= 0) {
        results.push_back(static_cast<int>(i));
        values.push_back(c.cotangents[i]);
      }
  }
};
/// The operands from `first` on whose cotangents are wanted, counted from there.
constexpr vec<int> wanted_operands(const derive_context& c, std::size_t first) {
  vec<int> list;
  for (std::size_t i = first; i < c.wanted.size(); ++i)
    if (c.wanted[i] && is_floating(c.b.type(c.b.p.operand(c.op, static_cast<int>(i))).element))
      list.push_back(static_cast<int>(i - first));
  return list;
}
/// The operands from `first` on, then more values.
constexpr vec<value_id> operands_and(const derive_context& c, std::size_t first,
                                     const vec<value_id>& more) {
  const auto operands = c.b.p.operands(c.op).subspan(first);
  vec<value_id> list(operands.data(), operands.data() + operands.size());
  list.insert_back(more.begin(), more.end());
  return list;
}
}  // namespace detail

/// A call of the transposed computation, which computes the forward values again.
constexpr void call::derive(derive_context& c) {
  const detail::known_cotangents known(c);
  const vec<int> wanted = detail::wanted_operands(c, 0);
  if (wanted.empty()) return;
  const text called = concat(c.b.p.view(c.b.p.op(c.op).name), ".transposed");
  const vec<value_id> arguments = detail::operands_and(c, 0, known.values);
  const value_id first =
      ops::call(c.b, called.view(), {arguments.data(), arguments.size()},
                partita::detail::transposed(c.b.p.region(c.op, 0), wanted, known.results));
  for (std::size_t k = 0; k < wanted.size(); ++k)
    c.operands[static_cast<std::size_t>(wanted[k])] = first + static_cast<int>(k);
}

constexpr void case_of::derive(derive_context& c) {
  const detail::known_cotangents known(c);
  const vec<int> wanted = detail::wanted_operands(c, 1);
  if (wanted.empty()) return;
  vec<program> branches;
  for (const auto& r : c.b.p.regions_of(c.op))
    branches.push_back(partita::detail::transposed(r, wanted, known.results));
  const vec<value_id> arguments = detail::operands_and(c, 1, known.values);
  const value_id first =
      ops::case_of(c.b, c.b.p.operand(c.op, 0), {arguments.data(), arguments.size()},
                   static_cast<vec<program>&&>(branches));
  for (std::size_t k = 0; k < wanted.size(); ++k)
    c.operands[static_cast<std::size_t>(wanted[k] + 1)] = first + static_cast<int>(k);
}

constexpr void scan::derive(derive_context& c) {
  builder& b = c.b;
  const counts k(b.p.attrs(c.op));
  const program body = b.p.region(c.op, 0);
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const int operand_count = k.constants + k.carried + k.sliced;
  vec<value_id> operands(b.p.operands(c.op).data(), b.p.operands(c.op).data() + operand_count);
  // The carried values that each iteration found.
  value_id saved = b.p.op(c.op).result + k.stacked;
  if (!k.saved) {
    program again = partita::detail::named_copy(body);
    saved = k.carried + k.stacked +
            ops::scan(b, k.length, k.reversed, {operands.data(), at(k.constants)},
                      {operands.data() + k.constants, at(k.carried)},
                      {operands.data() + k.constants + k.carried, at(k.sliced)},
                      static_cast<program&&>(again));
  }
  if (b.failed()) return;

  // Which values have cotangents: all floating carried ones, since each may come to depend on what
  // is wanted; constants and slices that are wanted; stacked results that are used.
  vec<int> constants, carried, sliced, stacked, inputs, outputs;
  const auto floating = [&](int i) { return is_floating(b.type(operands[at(i)]).element); };
  for (int i = 0; i < operand_count; ++i) {
    const bool is_carried = i >= k.constants && i < k.constants + k.carried;
    if (!floating(i) || (!is_carried && !c.wanted[at(i)])) continue;
    (i < k.constants ? constants : is_carried ? carried : sliced).push_back(i);
  }
  for (int j = k.carried; j < k.carried + k.stacked; ++j)
    if (c.cotangents[at(j)] >= 0) stacked.push_back(j);
  for (const auto* list : {&constants, &carried, &sliced})
    for (int i : *list) inputs.push_back(1 + i);
  for (int i : carried) outputs.push_back(i - k.constants);
  for (int j : stacked) outputs.push_back(j);
  const program transposed = partita::detail::transposed(body, inputs, outputs);
  b.p.error.record(transposed.error);
  if (b.failed()) return;

  // One step: index, constants; cotangents of carried values and sums of those of constants;
  // saved carried values, slices, cotangents of stacked results.
  builder step;
  const auto parameter = [&](const tensor_type& t) { return ops::parameter(step, "", t); };
  vec<value_id> arguments, sums, carried_out, constant_operands, carried_operands, sliced_operands;
  arguments.push_back(parameter({dtype::i32, {}}));
  for (int i = 0; i < k.constants; ++i) {
    arguments.push_back(parameter(b.type(operands[at(i)])));
    constant_operands.push_back(operands[at(i)]);
  }
  vec<value_id> carried_cotangents, stacked_cotangents;
  for (int i : carried) {
    const tensor_type t = b.type(operands[at(i)]);
    const value_id known = c.cotangents[at(i - k.constants)];
    carried_cotangents.push_back(parameter(t));
    carried_operands.push_back(known >= 0 ? known : ops::constant(b, t, 0));
  }
  for (int i : constants) {
    const tensor_type t = b.type(operands[at(i)]);
    sums.push_back(parameter(t));
    carried_operands.push_back(ops::constant(b, t, 0));
  }
  for (int i = 0; i < k.carried; ++i) {
    arguments.push_back(parameter(b.type(operands[at(k.constants + i)])));
    sliced_operands.push_back(saved + i);
  }
  for (int i = k.constants + k.carried; i < operand_count; ++i) {
    arguments.push_back(parameter(slice_of(b.type(operands[at(i)]))));
    sliced_operands.push_back(operands[at(i)]);
  }
  for (int j : stacked) {
    stacked_cotangents.push_back(parameter(body.output_type(j)));
    sliced_operands.push_back(c.cotangents[at(j)]);
  }
  arguments.insert_back(carried_cotangents.begin(), carried_cotangents.end());
  arguments.insert_back(stacked_cotangents.begin(), stacked_cotangents.end());
  const vec<value_id> found =
      partita::detail::append_program(step, transposed, {arguments.data(), arguments.size()});
  b.p.error.record(step.p.error);
  if (b.failed()) return;
  for (std::size_t i = 0; i < carried.size(); ++i)
    step.p.outputs.push_back({found[constants.size() + i], {}});
  for (std::size_t i = 0; i < constants.size(); ++i)
    step.p.outputs.push_back({ops::add(step, sums[i], found[i]), {}});
  for (std::size_t i = 0; i < sliced.size(); ++i)
    step.p.outputs.push_back({found[constants.size() + carried.size() + i], {}});
  // Everything of the step that is no index, in the order of scan's operands.
  const value_id first =
      ops::scan(b, k.length, !k.reversed, {constant_operands.data(), constant_operands.size()},
                {carried_operands.data(), carried_operands.size()},
                {sliced_operands.data(), sliced_operands.size()}, static_cast<program&&>(step.p));
  if (b.failed()) return;
  int next = first;
  for (int i : carried) c.operands[at(i)] = next++;
  for (int i : constants) c.operands[at(i)] = next++;
  for (int i : sliced) c.operands[at(i)] = next++;
}

}  // namespace partita::op
