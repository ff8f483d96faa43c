/// Programs from StableHLO text, as JAX, TensorFlow and PyTorch print it.
#pragma once

#include <string_view>

#include <partita/ir/equivalent.hpp>
#include <partita/ir/same_code.hpp>
#include <partita/ir/verify.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/stablehlo/composites.hpp>
#include <partita/stablehlo/interface_names.hpp>
#include <partita/stablehlo/module_items.hpp>
#include <partita/stablehlo/read_collectives.hpp>
#include <partita/stablehlo/states.hpp>
#include <partita/stablehlo/tidy.hpp>
#include <partita/stablehlo/value_scope.hpp>
#include <partita/stablehlo/write_local.hpp>

namespace partita {

namespace stablehlo_detail {

/// Reads a module. Each called function is read once; its ops are inlined at each call.
class module_reader {
 public:
  /// `shardings`, if given, receives those of the module; inner values with a sharding become tags.
  constexpr module_reader(std::string_view all, span<const std::string_view> names,
                          sharding_list* shardings = nullptr)
      : in_(all),
        names_(names),
        shardings_(in_, aliases_, shardings),
        functions_(in_, aliases_, shardings_, nullptr) {}
  /// Reads a module that is a program for one device of the mesh `m`.
  constexpr module_reader(std::string_view all, span<const std::string_view> names, const mesh& m,
                          bool unrolls)
      : in_(all),
        names_(names),
        shardings_(in_, aliases_, nullptr),
        mesh_(m),
        functions_(in_, aliases_, shardings_, &mesh_),
        local_(true),
        unrolls_(unrolls) {
    if (failure f = validate(m))
      in_.error.record(f);
    else if (m.devices() > most_devices)
      in_.error.record("H011", "stablehlo: the mesh ", m, " has more than ", most_devices,
                       " devices");
  }

  constexpr program run() {
    if (!in_.failed()) functions_.read();
    main_ = functions_.main();
    if (local_ && !in_.failed()) split_mesh();
    read_.resize(functions_.size(), {});
    state_.resize(functions_.size(), 0);
    builder b;
    if (!in_.failed()) read_main(b, main());
    if (!in_.failed() && !b.failed()) name_tags_apart(b.p);
    if (!in_.failed() && !b.failed()) b.p = without_unused(static_cast<program&&>(b.p));
    if (!in_.failed() && !b.failed()) keep_ports(b.p);
    b.p.error.record(in_.error);
    if (in_.error.is_set) b.p.error.set(in_.error.message);
    if (!b.failed()) scopes_.name(b.p);
    if (!b.failed()) b.p.error.record(check_names(b.p));
    if (!b.failed()) b.p.error.record(check_interface(b.p));
    return static_cast<program&&>(b.p);
  }
  /// Alternative to `run`: returns the program of @main as written, with the first composite
  /// replaced by its decomposition. Other composites are trusted.
  constexpr program run_decomposed() {
    if (!in_.failed()) functions_.read();
    main_ = functions_.main();
    read_.resize(functions_.size(), {});
    state_.resize(functions_.size(), 0);
    trusts_composites_ = decomposes_ = true;
    builder b;
    if (!in_.failed()) read_main(b, main());
    b.p.error.record(in_.error);
    for (value_id v : b.p.inputs) b.p.op(b.p.producer(v)).name = {};
    for (auto& out : b.p.outputs) out.name = {};
    return static_cast<program&&>(b.p);
  }
  /// The mesh, and the attributes of main's arguments and results. Valid after a run.
  constexpr const mesh& of_mesh() const { return mesh_; }
  constexpr std::string_view input_attributes(int i) const {
    return main().arguments[static_cast<std::size_t>(i)].attributes;
  }
  constexpr std::string_view output_attributes(int i) const {
    const auto at = static_cast<std::size_t>(i);
    return at < main().result_attributes.size() ? main().result_attributes[at] : "";
  }

 private:
  syntax in_;
  span<const std::string_view> names_;
  alias_table aliases_;
  scope_table scopes_;
  bool scope_reported_ = false;  // true if the message states the scope
  sharding_collector shardings_;
  mesh mesh_;
  module_items functions_;
  vec<program> read_;  // by function; empty until it is called
  vec<char> state_;    // by function: 0 not read, 1 being read, 2 read
  std::int64_t ops_ = 0;
  int nesting_ = 0, main_ = -1;
  bool local_ = false, unrolls_ = false;
  bool trusts_composites_ = false;        // trusts the claims of composites
  bool decomposes_ = false;               // decomposes the next composite
  bool checks_ = false;                   // is checking the claim of a composite
  vec<std::size_t> checked_functions_;    // the functions read for the check
  vec<vec<program>> checked_composites_;  // by function: the single ops that it was found to equal

  constexpr const function_text& main() const {
    return functions_[static_cast<std::size_t>(main_)];
  }

  /// Stores the attributes of arguments and results; results that are states get their names.
  constexpr void keep_ports(program& p) {
    interface_list ports;
    bool any = false;
    const auto read = [&](std::size_t at, std::string_view attributes) {
      text fault;
      interface_port port = read_port(attributes, aliases_, fault);
      if (!fault.empty()) in_.fail(at, "H005", fault);
      any = any || port.donated || !port.attributes.empty() || !port.frontend.empty();
      return port;
    };
    for (const auto& a : main().arguments) ports.inputs.push_back(read(a.at, a.attributes));
    for (const auto& each : main().result_attributes)
      ports.outputs.push_back(read(main().at, each));
    for (int i = 0; i < static_cast<int>(ports.inputs.size()); ++i)
      if (const int k = ports.inputs[static_cast<std::size_t>(i)].alias; k >= p.output_count())
        in_.fail(main().arguments[static_cast<std::size_t>(i)].at, "H005",
                 "tf.aliasing_output = ", k, " is not the number of a result; there are ",
                 p.output_count());
    p.interface = static_cast<interface_list&&>(ports);
    if (!local_) state_names(p).run();
  }

  static constexpr std::int64_t most_ops = 20'000'000;

  /// Splits the mesh as the layouts and the groups of devices in the module require.
  constexpr void split_mesh() {
    const auto& f = main();
    for (const auto& each : f.arguments) split_as_in(unescaped(each.attributes), mesh_);
    for (const auto each : f.result_attributes) split_as_in(unescaped(each), mesh_);
    split_as_groups_need(in_.all(), mesh_);
  }

  // ---- Errors --------------------------------------------------------------------------------

  /// Records an error of the builder with its position.
  constexpr void adopt(std::size_t at, std::string_view name, const failure& f) {
    if (in_.failed()) return;
    const std::string_view message = f.message;
    in_.error.record(message.substr(0, 4), message.substr(5), " (", name, " at ", in_.place(at),
                     ")");
  }

  /// Adds the scope of the innermost op that could not be read to the message.
  constexpr void report_scope(const op_text& o) {
    if (scope_reported_) return;
    scope_reported_ = true;
    scope_path path;
    path.add(aliases_.name_at(o.location));
    const text name = path.name();
    if (!name.empty()) in_.error.set(on_one_line(concat(in_.error.message, ", of ", name).view()));
  }

  constexpr void read_main(builder& b, const function_text& f) {
    value_scope s(in_, b);
    const vec<text> of_arguments = argument_names(f, aliases_, names_);
    for (std::size_t i = 0; i < f.arguments.size() && !in_.failed(); ++i) {
      const auto& a = f.arguments[i];
      const text& name = of_arguments[i];
      const value_id v = ops::parameter(b, name, a.type);
      if (b.failed()) return adopt(a.at, a.name, b.p.error);
      s.define(a.at, a.name, v);
      shardings_.add(a.at, a.attributes, a.type, value_sharding::input, static_cast<int>(i));
    }
    vec<value_id> results = body(s, f.body, f);
    if (in_.failed()) return;
    shardings_.add_results(b, f.at, f.result_attributes, results);
    const vec<text> names = result_names(f, b.p, results);
    for (std::size_t i = 0; i < results.size(); ++i)
      b.p.outputs.push_back({results[i], b.p.intern(names[i])});
  }
  /// Returns the value as a tag if the attributes contain a sharding.
  constexpr value_id sharded(value_scope& s, std::size_t at, std::string_view attributes,
                             value_id v) {
    const std::string_view written = sharding_in(attributes);
    if (!shardings_.wanted() || in_.failed() || written.empty()) return v;
    return shardings_.tagged(s.b, {at, written, {}}, "sharding", s.in_full(v));
  }
  /// The same for the results of an op of the module.
  constexpr void keep_sharding(value_scope& s, const op_text& o, std::string_view name,
                               vec<value_id>& made) {
    if (!shardings_.wanted() || in_.failed() || name == "call" || name == "composite") return;
    const written_sharding w = shardings_.of_op(o, name, made.size());
    if (in_.failed() || w.text.empty()) return;
    scope_path path;
    path.add(aliases_.name_at(o.location));
    const text label = path.name();
    made[0] =
        shardings_.tagged(s.b, w, label.empty() ? "sharding" : label.view(), s.in_full(made[0]));
  }

  /// Reads the ops of a function; returns the function's results.
  constexpr vec<value_id> body(value_scope& s, piece_of_text text, const function_text& f) {
    const vec<value_id> results = statements(s, text);
    if (in_.failed() || !f.typed) return results;
    if (results.size() != f.result_types.size()) {
      in_.fail(f.at, "H012", "@", f.name, " returns ", results.size(), " values; its type states ",
               f.result_types.size());
      return results;
    }
    for (std::size_t i = 0; i < results.size(); ++i)
      if (s.b.type(results[i]) != f.result_types[i])
        in_.fail(f.at, "H007", "@", f.name, " returns ", s.b.type(results[i]), " as result ", i,
                 "; its type states ", f.result_types[i]);
    return results;
  }
  constexpr vec<value_id> statements(value_scope& s, piece_of_text text) {
    vec<value_id> results;
    if (in_.failed()) return results;
    const piece_of_text around = in_.rest();
    in_.enter(text);
    bool returned = false;
    while (!in_.failed() && !in_.at_end()) {
      const op_text o = in_.op();
      if (in_.failed()) break;
      if (returned) {
        in_.fail(o.at, "H001", "an op after the return");
        break;
      }
      returned = statement(s, o, results);
      if (in_.failed()) report_scope(o);
    }
    if (!in_.failed() && !returned) in_.expected("a return");
    in_.enter(around);
    return results;
  }
  static constexpr std::string_view without_dialect(std::string_view name) {
    for (std::string_view dialect : {"stablehlo.", "chlo.", "mhlo.", "func.", "sdy."})
      if (name.starts_with(dialect)) return name.substr(dialect.size());
    return name;
  }
  /// Reads an op; true if it is the return.
  constexpr bool statement(value_scope& s, const op_text& o, vec<value_id>& results) {
    const std::string_view name = without_dialect(o.name);
    vec<value_id> operands;
    for (auto each : o.operands) s.use(o.at, each, operands);
    if (in_.failed()) return false;
    const int first_op = s.b.p.op_count();
    for (std::size_t i = 0; i < operands.size() && i < o.operand_types.size(); ++i)
      if (o.operand_types.size() == operands.size() && s.type(operands[i]) != o.operand_types[i] &&
          name != "select" && name != "clamp") {
        in_.fail(o.at, "H007", o.name, ": operand ",
                 // (A tuple is one operand with several values.)
                 o.operands[o.operands.size() == operands.size() ? i : 0], " has type ",
                 s.type(operands[i]), "; the text states ", o.operand_types[i]);
        return false;
      }
    if (name == "broadcast" && s.spread(o, operands)) return false;
    s.resolve(name, operands);
    if (name == "return") {
      results = operands;
      return true;
    }
    // (The values of a group should have the same sharding; the op changes none of them.)
    if (name == "sharding_group") return false;
    vec<value_id> made;
    if (name == "call" || name == "composite")
      made = call(s, o, operands);
    else
      made = compute(s, o, name, operands);
    if (in_.failed()) return false;
    if (s.b.failed()) {
      adopt(o.at, o.name, s.b.p.error);
      return false;
    }
    keep_sharding(s, o, name, made);
    scopes_.place(s.b.p, first_op, place_of(o));
    ops_ = ops_ > s.b.p.op_count() ? ops_ : s.b.p.op_count();
    if (ops_ > most_ops)
      in_.fail(o.at, "H011", "the program has more than ", most_ops,
               " ops after calls are inlined");
    check_results(s, o, name, made);
    if (o.makes_tuple && o.results.size() == 1 && !in_.failed()) {
      s.define_tuple(o.at, o.results[0].name, {made.data(), made.size()});
      return false;
    }
    std::size_t first = 0;
    for (const auto& each : o.results) {
      if (in_.failed()) break;
      const auto count = static_cast<std::size_t>(each.count);
      s.define(o.at, each.name, {made.data() + first, count});
      first += count;
    }
    return false;
  }
  /// Returns the location of an op. In a program for one device, where messages of `prove` refer to
  /// it, an op without a location has the name of its result.
  constexpr std::string_view place_of(const op_text& o) const {
    const std::string_view name = aliases_.name_at(o.location);
    const bool written = local_ && !o.results.empty() && o.name != "sdy.manual_computation";
    if (!name.empty() || !written) return name;
    return o.results[0].name.substr(1);
  }
  constexpr void check_results(const value_scope& s, const op_text& o, std::string_view name,
                               const vec<value_id>& made) {
    if (in_.failed()) return;
    if (!o.results.empty() && !o.makes_tuple &&
        o.result_count() != static_cast<std::int64_t>(made.size()))
      return in_.fail(o.at, "H012", o.name, " has ", made.size(), " results; the text has ",
                      o.result_count());
    if (!o.typed) return;
    // `while` and barriers list the types of all results, which are also those of all operands.
    const bool same = name == "while" || name == "optimization_barrier";
    const vec<tensor_type>& types =
        same && o.result_types.size() != made.size() ? o.operand_types : o.result_types;
    if (types.size() != made.size())
      return in_.fail(o.at, "H012", o.name, " has ", made.size(), " results; the text has ",
                      types.size(), " types");
    for (std::size_t i = 0; i < made.size(); ++i)
      if (s.b.type(made[i]) != types[i])
        return in_.fail(o.at, "H007", o.name, " returns ", s.b.type(made[i]), "; the text states ",
                        types[i]);
  }
  /// Inlines a function's ops, with the operands for its arguments.
  constexpr vec<value_id> call(value_scope& s, const op_text& o, const vec<value_id>& operands) {
    std::string_view name = o.symbol;
    for (std::string_view attribute : {"callee", "decomposition"})
      if (o.has(attribute)) name = o.attribute(attribute);
    if (name.starts_with("@")) name.remove_prefix(1);
    name = without_quotes(name);
    if (is_composite_of_ours(o) && !decomposes_) {
      const composite_op c =
          read_composite(in_, o, name, [&](std::string_view f) { return function_named(o, f); });
      if (in_.failed()) return {};
      vec<tensor_type> types;
      for (value_id v : operands) types.push_back(s.b.type(v));
      if (trusts_composites_ || is_made_of(o, name, c, types)) return c.emit(s.b, operands);
      if (in_.failed()) return {};
    }
    decomposes_ = false;
    program f = function_named(o, name);
    if (in_.failed()) return {};
    const std::size_t inputs = static_cast<std::size_t>(f.input_count());
    if (inputs != operands.size()) {
      in_.fail(o.at, "H012", "@", name, " has ", inputs, " arguments; ", operands.size(),
               " are given");
      return {};
    }
    for (std::size_t i = 0; i < inputs; ++i)
      if (f.input_type(static_cast<int>(i)) != s.b.type(operands[i])) {
        in_.fail(o.at, "H007", "argument ", i, " of @", name, " has type ",
                 f.input_type(static_cast<int>(i)), "; ", s.b.type(operands[i]), " is given");
        return {};
      }
    return op_detail::append_with_marks(s.b, static_cast<program&&>(f), operands);
  }
  /// True if the decomposition of a composite equals the one that the writer produces for the
  /// claimed op. Also true if the claimed op is not valid, an error that `emit` reports.
  constexpr bool is_made_of(const op_text& o, std::string_view function, const composite_op& c,
                            const vec<tensor_type>& types) {
    if (c.what->id == def<op::call>.id) return true;  // (The call is its own decomposition.)
    const program op = c.alone(types);
    const int number = functions_.find(function);
    if (op.error || number < 0) return number >= 0 || has_no_function(o, function);
    checked_composites_.resize(functions_.size(), {});
    vec<program>& known = checked_composites_[static_cast<std::size_t>(number)];
    for (const program& each : known)
      if (same_code(each, op)) return true;
    const program wanted = written_decomposition(op);
    if (wanted.error || !equivalent(decomposition(o, function), wanted)) return false;
    checked_composites_[static_cast<std::size_t>(number)].push_back(op);
    return true;
  }
  constexpr bool has_no_function(const op_text& o, std::string_view function) {
    in_.fail(o.at, "H010", o.name, ": unknown function @", function);
    return false;
  }
  constexpr program written_decomposition(const program& op) const {
    if (!local_) {
      const text module = write_stablehlo(op);
      return module_reader(module.view(), {}).run_decomposed();
    }
    device_program d;
    d.local = op;
    d.mesh = mesh_;
    const text module = write_stablehlo(d);
    return module_reader(module.view(), {}, mesh_, false).run_decomposed();
  }
  /// Reads a decomposition as written, without unrolling loops or collecting shardings.
  constexpr program decomposition(const op_text& o, std::string_view function) {
    const bool outermost = !checks_, unrolls = unrolls_;
    const bool apart = unrolls || shardings_.wanted();
    checks_ = true;
    unrolls_ = false;
    shardings_.pause(true);
    program made = function_named(o, function);
    if (!outermost) return made;
    checks_ = false;
    unrolls_ = unrolls;
    shardings_.pause(false);
    if (apart)
      for (const std::size_t n : checked_functions_) {
        read_[n] = {};
        state_[n] = 0;
      }
    checked_functions_.clear();
    return made;
  }
  /// Returns the program of a function.
  constexpr program function_named(const op_text& o, std::string_view name) {
    const int number = functions_.find(name);
    if (number < 0) {
      in_.fail(o.at, "H010", o.name, ": unknown function @", name);
      return {};
    }
    const auto n = static_cast<std::size_t>(number);
    read_function(o, n);
    if (in_.failed()) return {};
    return read_[n];
  }

  constexpr void read_function(const op_text& o, std::size_t n) {
    if (state_[n] == 2) return;
    if (state_[n] == 1) return in_.fail(o.at, "H011", "@", functions_[n].name, " calls itself");
    state_[n] = 1;
    if (!deeper(o)) return;
    builder inner;
    value_scope s(in_, inner);
    const function_text f = functions_[n];
    for (const auto& a : f.arguments) {
      const value_id v = ops::parameter(inner, "", a.type);
      s.define(a.at, a.name, sharded(s, a.at, a.attributes, v));
    }
    vec<value_id> results = body(s, f.body, f);
    for (std::size_t i = 0; i < results.size() && i < f.result_attributes.size(); ++i)
      results[i] = sharded(s, f.at, f.result_attributes[i], results[i]);
    if (!in_.failed())
      for (value_id v : results) inner.p.outputs.push_back({v, {}});
    read_[n] = static_cast<program&&>(inner.p);
    state_[n] = 2;
    if (checks_) checked_functions_.push_back(n);
    --nesting_;
  }
  constexpr bool deeper(const op_text& o) {
    if (++nesting_ > max_nesting)
      in_.fail(o.at, "H011", "functions and programs are nested more than ", max_nesting, " deep");
    return !in_.failed();
  }

  constexpr vec<value_id> compute(value_scope& s, const op_text& o, std::string_view name,
                                  const vec<value_id>& operands) {
    op_context c{in_, s.b, o, operands, {}, {}, {}, local_ ? &mesh_ : nullptr, unrolls_};
    if (!o.regions.empty()) nested(s, o, c);
    // The programs of a custom call may be functions.
    if (o.has("called_computations"))
      for (std::string_view f : parts_of(inside(o.attribute("called_computations"), '[', ']')))
        if (f.starts_with("@")) c.regions.push_back(function_named(o, f.substr(1)));
    if (in_.failed() || s.b.failed()) return {};
    if (make_local_op(c, name) || make_op(c, name)) {
      if (!c.failed() && c.results.empty()) in_.fail(o.at, "H012", o.name, " has no result");
      return c.results;
    }
    vec<std::string_view> known;
    for (const auto& each : same_ops) known.push_back(each.name);
    for (const auto& each : read_ops) known.push_back(each.name);
    in_.fail(o.at, "H004", "op \"", short_name(o.name), "\" is unknown; ",
             known_names(name, known));
    return {};
  }
  /// Reads the programs of an op. Constants from outside that they use are copied into each of
  /// them; other values from outside become arguments of all of them.
  constexpr void nested(value_scope& s, const op_text& o, op_context& c) {
    vec<std::string_view> used, names, constants;
    name_table seen(16);
    for (const auto& r : o.regions) captured(s, in_.view(r.body), used, seen);
    for (auto each : used) {
      const value_id v = s.in_full(s.find(each));
      const bool constant = constant_copier::applies(s.b.p, v);
      (constant ? constants : names).push_back(each);
      if (!constant) c.captured.push_back(v);
    }
    if (!deeper(o)) return;
    for (const auto& r : o.regions) {
      builder inner;
      inner.number_with(s.b);
      value_scope inside_it(in_, inner);
      const std::size_t count = o.inner.empty() ? r.arguments.size() : o.inner.size();
      for (std::size_t i = 0; i < count; ++i) {
        const bool pretty = !o.inner.empty();
        const tensor_type t = pretty ? s.b.type(c.x(i)) : r.arguments[i].type;
        const value_id v = ops::parameter(inner, "", t);
        inside_it.define(o.at, pretty ? o.inner[i] : r.arguments[i].name, v);
      }
      for (std::size_t i = 0; i < names.size(); ++i) {
        const value_id v = ops::parameter(inner, "", s.b.type(c.captured[i]));
        inside_it.define(o.at, names[i], v);
      }
      constant_copier copy(s.b.p, inner);
      for (auto each : constants) inside_it.define(o.at, each, copy(s.in_full(s.find(each))));
      const vec<value_id> results = statements(inside_it, r.body);
      if (in_.failed()) return;
      for (value_id v : results) inner.p.outputs.push_back({v, {}});
      c.regions.push_back(static_cast<program&&>(inner.p));
    }
    --nesting_;
  }
  /// Adds the names in a text that are values here. (A name defined inside the text is not.)
  static constexpr void captured(const value_scope& s, std::string_view text,
                                 vec<std::string_view>& names, name_table& seen) {
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') quoted = !quoted;
      if (quoted && text[i] == '\\') ++i;
      if (quoted || text[i] != '%') continue;
      std::size_t end = i + 1;
      while (end < text.size() && (is_word_char(text[end]) || text[end] == '#')) ++end;
      const std::string_view name = text.substr(i, end - i);
      i = end - 1;
      if (s.find(name) == -1) continue;
      const int number = static_cast<int>(names.size());
      if (seen.insert(name, number) == number) names.push_back(name);
    }
  }
};

}  // namespace stablehlo_detail

/// Returns the program of a StableHLO module (text): that of @main, or of the only function. Calls
/// are inlined. Arguments are named by their locations (`params['w']` is "params.w"), or as in the
/// text ("arg0"); `names`, if given, are the names of the first ones. Results are named by
/// `jax.result_info`.
///
/// Errors    in `program::error`, with line and column: H001 syntax, H002 braces and brackets, H003
///           an unsupported type, H004 an unknown op, H005 an attribute, H006 a name that is
///           undefined or defined twice, H007 types that differ from those in the text, H008 a
///           constant's elements, H009 a nested program that is not understood, H010 no such
///           function, H011 recursion or a limit, H012 numbers of operands, results or programs,
///           H013 an unsupported use of an op; and those of the ops
/// Source    the StableHLO specification, version 1.0
constexpr program read_stablehlo(std::string_view module, span<const std::string_view> names = {}) {
  return stablehlo_detail::module_reader(module, names).run();
}
/// The same, and stores the shardings in the module: of arguments, of results, and of inner values,
/// which become tags. `schedule_of` (spec/shardings.hpp) converts them to tactics.
///
/// Errors    those of read_stablehlo; H014 a sharding that cannot be expressed
/// Source    Shardy's sdy.sharding; XLA's HloSharding, which GSPMD writes as `mhlo.sharding`
constexpr program read_stablehlo(std::string_view module, sharding_list& shardings,
                                 span<const std::string_view> names = {}) {
  return stablehlo_detail::module_reader(module, names, &shardings).run();
}

}  // namespace partita
