/// Programs from StableHLO text, as JAX, TensorFlow and PyTorch write it.
#pragma once

#include <string_view>

#include <partita/ir/copy.hpp>
#include <partita/ir/verify.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/stablehlo/ops.hpp>
#include <partita/stablehlo/read_collectives.hpp>
#include <partita/stablehlo/scopes.hpp>
#include <partita/stablehlo/sharding_collector.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

namespace stablehlo_detail {

/// The character that a backslash and what follows it stand for: `\n`, `\t`, `\5B`, else the next
/// one. `at` becomes the last of what was read.
constexpr char escaped(std::string_view in, std::size_t& at) {
  if (at + 1 >= in.size()) return in[at];
  const char c = in[++at];
  if (at + 1 < in.size() && hex_digit(c) >= 0 && hex_digit(in[at + 1]) >= 0) {
    ++at;
    return static_cast<char>(16 * hex_digit(c) + hex_digit(in[at]));
  }
  return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}
/// What stands between quotes, without backslashes.
constexpr text unescaped(std::string_view in) {
  text out;
  for (std::size_t i = 0; i < in.size(); ++i) out << (in[i] == '\\' ? escaped(in, i) : in[i]);
  return out;
}
/// `params['h'][0].w` as a path: `params.h.0.w`.
constexpr text path_of(std::string_view key) {
  text out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (c == '\'' || c == ']') continue;
    if (c == '[')
      out << (out.empty() ? "" : ".");
    else if (c == '\\')
      out << escaped(key, i);
    else
      out << c;
  }
  return out;
}

/// The program without constants that nothing uses: what reductions start from is none of its ops.
constexpr program without_unused_constants(program&& p) {
  vec<char> used(p.types.size(), 0);
  for (value_id v : p.operand_list) used[static_cast<std::size_t>(v)] = 1;
  for (const auto& out : p.outputs) used[static_cast<std::size_t>(out.value)] = 1;
  const auto unused = [&](op_id o) {
    return p.op(o).def->constant && used[static_cast<std::size_t>(p.op(o).result)] == 0;
  };
  for (auto& r : p.regions) r = without_unused_constants(static_cast<program&&>(r));
  bool any = false;
  for (op_id o = 0; !any && o < p.op_count(); ++o) any = unused(o);
  if (!any) return static_cast<program&&>(p);
  program q;
  program_copier copy(p, q);
  copy.reserve();
  for (op_id o = 0; o < p.op_count(); ++o) {
    if (unused(o)) continue;
    copy.op(o);
    const op_node& n = p.op(o);
    for (int r = 0; r < n.region_count; ++r)
      q.append_region(static_cast<program&&>(p.regions[n.region_begin + r]));
  }
  copy.interface();
  return q;
}

/// Each tag gets a name of its own: in a function that is called several times "x" becomes "x",
/// "x.again", "x.again.2", ...
constexpr void name_tags_apart(program& p) {
  struct place {
    program* p;
    op_id o;
  };
  vec<place> tags;
  vec<program*> waiting;
  waiting.push_back(&p);
  while (!waiting.empty()) {
    program* each = waiting.back();
    waiting.pop_back();
    for (op_id o = 0; o < each->op_count(); ++o)
      if (each->is(o, op_role::tag)) tags.push_back({each, o});
    for (auto& r : each->regions) waiting.push_back(&r);
  }
  if (tags.empty()) return;
  vec<text> names;  // (The table's names stay where they are.)
  names.reserve(tags.size() + p.inputs.size());
  name_table taken(names.size());
  for (int i = 0; i < p.input_count(); ++i) {
    names.push_back(p.input_name(i));
    taken.insert(names.back().view(), -1);
  }
  vec<int> copies(tags.size(), 0);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    const auto [in, o] = tags[i];
    const text wanted = in->view(in->op(o).name);
    text name = wanted;
    const int first = taken.find(wanted.view(), -2);
    while (taken.find(name.view(), -2) != -2) {
      const int number = first >= 0 ? ++copies[static_cast<std::size_t>(first)] : ++copies[i];
      name = number == 1 ? concat(wanted, ".again") : concat(wanted, ".again.", number);
    }
    names.push_back(name);
    taken.insert(names.back().view(), static_cast<int>(i));
    if (!(name == wanted)) in->op(o).name = in->intern(name);
  }
}

struct function_text {
  std::string_view name;
  std::size_t at = 0;
  bool is_public = true;
  vec<argument_text> arguments;
  vec<std::string_view> result_attributes;
  vec<tensor_type> result_types;
  bool typed = false;  ///< does the text say the types of the results?
  piece_of_text body;
};

/// Reads a module: each function that is called is read once, and its ops stand where it is called.
class module_reader {
 public:
  /// `shardings`, if given, gets those of the module; values inside that have one become tags.
  constexpr module_reader(std::string_view all, span<const std::string_view> names,
                          sharding_list* shardings = nullptr)
      : in_(all), names_(names), by_name_(16), shardings_(in_, aliases_, shardings) {}
  /// Of a module that is a program for one device of this mesh.
  constexpr module_reader(std::string_view all, span<const std::string_view> names, const mesh& m,
                          bool unrolls)
      : in_(all),
        names_(names),
        by_name_(16),
        shardings_(in_, aliases_, nullptr),
        mesh_(m),
        local_(true),
        unrolls_(unrolls) {
    if (failure f = validate(m))
      in_.error.record(f);
    else if (m.devices() > most_devices)
      in_.error.record("H011", "stablehlo: the mesh ", m, " has more than ", most_devices,
                       " devices");
  }

  constexpr program run() {
    if (!in_.failed()) top();
    main_ = find_main();
    if (local_ && !in_.failed()) split_mesh();
    builder b;
    if (!in_.failed()) read_main(b, functions_[static_cast<std::size_t>(main_)]);
    if (!in_.failed() && !b.failed()) name_tags_apart(b.p);
    if (!in_.failed() && !b.failed()) b.p = without_unused_constants(static_cast<program&&>(b.p));
    b.p.error.record(in_.error);
    if (in_.error.is_set) b.p.error.set(in_.error.message);
    if (!b.failed()) scopes_.name(b.p);
    if (!b.failed()) b.p.error.record(check_names(b.p));
    if (!b.failed()) b.p.error.record(check_interface(b.p));
    return static_cast<program&&>(b.p);
  }
  /// After a run: the mesh, and the attributes of main's arguments and results.
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
  vec<function_text> functions_;
  name_table by_name_;
  alias_table aliases_;
  scope_table scopes_;
  bool scope_said_ = false;  // in the message
  sharding_collector shardings_;
  vec<program> read_;  // by function, once it was called
  vec<char> state_;    // by function: 0 not read, 1 being read, 2 read
  std::int64_t ops_ = 0;
  int nesting_ = 0, main_ = -1;
  mesh mesh_;
  bool local_ = false, unrolls_ = false;

  constexpr const function_text& main() const {
    return functions_[static_cast<std::size_t>(main_)];
  }

  static constexpr std::int64_t most_ops = 20'000'000;

  // ---- Mistakes ------------------------------------------------------------------------------

  /// A mistake that the builder found, with its place.
  constexpr void adopt(std::size_t at, std::string_view name, const failure& f) {
    if (in_.failed()) return;
    const std::string_view message = f.message;
    in_.error.record(message.substr(0, 4), message.substr(5), " (", name, " at ", in_.place(at),
                     ")");
  }

  /// Says of the innermost op that could not be read in which scope it stands.
  constexpr void say_scope(const op_text& o) {
    if (scope_said_) return;
    scope_said_ = true;
    scope_path path;
    path.add(aliases_.name_at(o.location));
    const text name = path.name();
    if (!name.empty()) in_.error.set(on_one_line(concat(in_.error.message, ", of ", name).view()));
  }

  // ---- The module ----------------------------------------------------------------------------

  constexpr void top() {
    while (!in_.failed() && !in_.at_end()) {
      if (in_.accept_word("module")) {
        if (in_.starts("@")) in_.symbol();
        vec<named_text> attributes;
        if (in_.accept_word("attributes")) {
          in_.expect("{");
          in_.attribute_list(attributes, "}");
        }
        const piece_of_text body = in_.braces();
        if (in_.failed()) return;
        const piece_of_text behind = in_.rest();
        in_.enter(body);
        while (!in_.failed() && !in_.at_end()) item();
        in_.enter(behind);
        if (in_.accept_word("loc")) in_.bracketed();
      } else {
        item();
      }
    }
  }
  /// A function, a mesh or an alias.
  constexpr void item() {
    if (in_.starts("#")) return alias();
    if (in_.starts("\"builtin.module\"") || in_.starts("\"func.func\"") ||
        in_.starts("\"sdy.mesh\""))
      return generic_item();
    if (in_.accept_word("func.func") || in_.accept_word("func")) return function();
    const std::size_t at = in_.position();
    if (in_.accept_word("sdy.mesh")) return read_mesh();
    if (in_.accept("{-#")) {  // resources
      while (!in_.failed() && !in_.accept("#-}"))
        if (in_.at_end()) in_.expected("#-}");
      return;
    }
    in_.enter({at, in_.rest().end});
    in_.expected("a function (func.func)");
  }
  /// `sdy.mesh @mesh = <["x"=4]> {...}`
  constexpr void read_mesh() {
    const std::size_t at = in_.position();
    const std::string_view name = in_.symbol();
    in_.expect("=");
    add_mesh(at, name, in_.attribute_value(false));
    if (in_.starts("{")) in_.bracketed();
    if (in_.accept_word("loc")) in_.bracketed();
  }
  constexpr void add_mesh(std::size_t at, std::string_view name, std::string_view value) {
    shardings_.add_mesh(at, name, value);
    if (!local_ || in_.failed()) return;
    sharding_list list;
    sharding_reader r(list);
    r.add_mesh(name, value);
    if (!r.fault.empty()) return in_.fail(at, "H014", "mesh @", name, ": ", r.fault);
    adopt(at, list.meshes.back().mesh);
  }
  /// As the layouts that the module says need it, and its groups of devices.
  constexpr void split_mesh() {
    const auto& f = main();
    for (const auto& each : f.arguments) split_as_in(unescaped(each.attributes), mesh_);
    for (const auto each : f.result_attributes) split_as_in(unescaped(each), mesh_);
    split_as_groups_need(in_.all(), mesh_);
  }
  /// The mesh of the module is that of the program, its axes in this order.
  constexpr void adopt(std::size_t at, const mesh& m) {
    if (m.rank == 0) return;
    bool same = m.rank == mesh_.rank && !validate(m);
    for (int i = 0; same && i < m.rank; ++i) {
      const int other = mesh_.find(m.name(i));
      same = other >= 0 && mesh_.size(other) == m.size(i);
    }
    if (!same)
      return in_.fail(at, "H013", "the mesh of the module is ", m, "; that of the system is ",
                      mesh_);
    mesh_ = m;
  }
  /// `#loc3 = loc("a")`, `#map = ...`
  constexpr void alias() {
    in_.expect("#");
    const std::string_view name = in_.word();
    in_.expect("=");
    in_.skip();
    const std::size_t begin = in_.position();
    if (in_.accept_word("loc"))
      in_.bracketed();
    else
      in_.attribute_value(false);
    if (!in_.failed()) aliases_.add(name, in_.view({begin, in_.position()}));
  }
  constexpr void function() {
    function_text f;
    f.is_public = !in_.accept_word("private");
    if (f.is_public) in_.accept_word("public");
    in_.skip();
    f.at = in_.position();
    f.name = in_.symbol();
    if (!in_.failed()) in_.arguments(f.arguments);
    if (in_.accept("->")) {
      f.typed = true;
      if (in_.accept("(")) {
        while (!in_.failed() && !in_.accept(")")) {
          f.result_types.push_back(in_.type());
          f.result_attributes.push_back(in_.starts("{") ? in_.bracketed() : std::string_view());
          if (in_.accept_word("loc")) in_.bracketed();
          if (!in_.accept(",") && !in_.starts(")")) in_.expected(")");
        }
      } else {
        f.result_types.push_back(in_.type());
        f.result_attributes.push_back({});
      }
    }
    vec<named_text> attributes;
    if (in_.accept_word("attributes")) {
      in_.expect("{");
      in_.attribute_list(attributes, "}");
    }
    f.body = in_.braces();
    if (in_.accept_word("loc")) in_.bracketed();
    add(f);
  }
  constexpr void add(const function_text& f) {
    if (in_.failed()) return;
    const int number = static_cast<int>(functions_.size());
    if (by_name_.insert(f.name, number) != number)
      return in_.fail(f.at, "H006", "two functions are named @", f.name);
    functions_.push_back(f);
    read_.push_back({});
    state_.push_back(0);
  }
  /// `"builtin.module"() ({ ... }) : () -> ()`, `"func.func"() <{sym_name = "main", ...}> ({...})`.
  constexpr void generic_item() {
    const op_text o = in_.op();
    if (in_.failed()) return;
    if (o.name == "sdy.mesh")
      return add_mesh(o.at, without_quotes(o.attribute("sym_name")), o.attribute("mesh"));
    if (o.regions.size() != 1) return in_.fail(o.at, "H012", o.name, ": one program is expected");
    if (o.name == "builtin.module") {
      const piece_of_text behind = in_.rest();
      in_.enter(o.regions[0].body);
      while (!in_.failed() && !in_.at_end()) item();
      return in_.enter(behind);
    }
    function_text f;
    f.at = o.at;
    f.name = without_quotes(o.attribute("sym_name"));
    f.is_public = o.attribute("sym_visibility") != "\"private\"";
    f.arguments = o.regions[0].arguments;
    f.body = o.regions[0].body;
    const vec<std::string_view> inputs = parts_of(inside(o.attribute("arg_attrs"), '[', ']'));
    for (std::size_t i = 0; i < inputs.size() && i < f.arguments.size(); ++i)
      f.arguments[i].attributes = inputs[i];
    // `(tensor<f32>) -> (tensor<f32>)`
    const std::string_view type = o.attribute("function_type");
    const std::size_t arrow = type.find("->");
    if (arrow != std::string_view::npos) {
      const piece_of_text behind = in_.rest();
      const auto begin = static_cast<std::size_t>(type.data() - in_.all().data()) + arrow + 2;
      in_.enter({begin, begin + type.size() - arrow - 2});
      in_.types(f.result_types);
      in_.enter(behind);
      f.typed = true;
    }
    for (std::string_view each : parts_of(inside(o.attribute("res_attrs"), '[', ']')))
      f.result_attributes.push_back(each);
    f.result_attributes.resize(f.result_types.size(), {});
    add(f);
  }
  /// `main`, or the only function, or the only public one.
  constexpr int find_main() {
    if (in_.failed()) return -1;
    const int main = by_name_.find("main");
    if (main >= 0) return main;
    if (functions_.size() == 1) return 0;
    int found = -1, count = 0;
    for (std::size_t i = 0; i < functions_.size(); ++i)
      if (functions_[i].is_public) found = static_cast<int>(i), ++count;
    if (count == 1) return found;
    text list;
    for (std::size_t i = 0; i < functions_.size() && i < 8; ++i)
      list << (i > 0 ? ", @" : "@") << functions_[i].name;
    in_.error.record("H010", "stablehlo: there is no function @main among ", functions_.size(),
                     " functions", functions_.empty() ? "" : ": ", list);
    return -1;
  }

  // ---- Names ---------------------------------------------------------------------------------

  /// `{jax.result_info = "result['loss']"}`
  constexpr text result_name(std::string_view attributes, int i, int count) const {
    const std::size_t at = attributes.find("jax.result_info");
    text path;
    if (at != std::string_view::npos) {
      const std::string_view rest = attributes.substr(at);
      const std::size_t begin = rest.find('"');
      std::size_t end = begin == std::string_view::npos ? rest.size() : begin + 1;
      while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
      if (end < rest.size()) path = path_of(rest.substr(begin + 1, end - begin - 1));
    }
    const std::string_view whole = path.view();
    if (whole.starts_with("result.") && whole.size() > 7) return text(whole.substr(7));
    if (!path.empty()) return path;
    return count == 1 ? text("result") : concat("result", i);
  }

  // ---- Programs ------------------------------------------------------------------------------

  /// A `broadcast` of a scalar: ops that work by element take the scalar itself. What else uses it
  /// makes it.
  struct spread_scalar {
    value_id scalar = -1;
    tensor_type type;
    value_id made = -1;
  };
  struct scope {
    builder& b;
    name_table names;
    vec<int> first;  ///< by number: where its values begin
    vec<value_id> values;
    vec<spread_scalar> spread;  ///< the value -2 stands for the first of them, -3 for the next, ...

    constexpr explicit scope(builder& in) : b(in), names(8) {}
  };
  constexpr void define(scope& s, std::size_t at, std::string_view name,
                        span<const value_id> values) {
    const int number = static_cast<int>(s.first.size());
    if (s.names.insert(name, number) != number)
      return in_.fail(at, "H006", name, " is defined twice");
    s.first.push_back(static_cast<int>(s.values.size()));
    s.values.insert_back(values.begin(), values.end());
  }
  /// The value of `%3` or `%3#1`, or -1.
  static constexpr value_id find(const scope& s, std::string_view name) {
    // (One that a nested program takes from around it has its number in its name.)
    if (const int whole = s.names.find(name); whole >= 0)
      return s.values[static_cast<std::size_t>(s.first[static_cast<std::size_t>(whole)])];
    const std::size_t hash = name.find('#');
    if (hash == std::string_view::npos) return -1;
    const int number = s.names.find(name.substr(0, hash));
    if (number < 0) return -1;
    std::int64_t index = 0;
    if (!read_integer(name.substr(hash + 1), index)) return -1;
    const auto n = static_cast<std::size_t>(number);
    const std::size_t end =
        n + 1 < s.first.size() ? static_cast<std::size_t>(s.first[n + 1]) : s.values.size();
    const auto begin = static_cast<std::size_t>(s.first[n]);
    if (index < 0 || index >= static_cast<std::int64_t>(end - begin)) return -1;
    return s.values[begin + static_cast<std::size_t>(index)];
  }
  constexpr value_id use(const scope& s, std::size_t at, std::string_view name) {
    if (in_.failed()) return -1;
    const value_id v = find(s, name);
    if (v == -1) in_.fail(at, "H006", name, " is used before it is defined, or not defined at all");
    return v;
  }

  static constexpr bool is_spread(value_id v) { return v < -1; }
  static constexpr spread_scalar& spread_at(scope& s, value_id v) {
    return s.spread[static_cast<std::size_t>(-2 - v)];
  }
  static constexpr const tensor_type& type_of(scope& s, value_id v) {
    return is_spread(v) ? spread_at(s, v).type : s.b.type(v);
  }
  /// The value as a tensor.
  static constexpr value_id in_full(scope& s, value_id v) {
    if (!is_spread(v)) return v;
    spread_scalar& e = spread_at(s, v);
    if (e.made < 0) e.made = ops::broadcast_in_dim(s.b, e.scalar, e.type.shape, {});
    return e.made;
  }
  static constexpr bool works_by_element(std::string_view name) {
    if (name == "compare" || name == "select") return true;
    for (const auto& each : same_ops)
      if (each.name == name) return each.op->elementwise;
    return false;
  }
  /// Scalars for what repeats them, if the op works by element and has an operand of its shape.
  static constexpr void resolve(scope& s, std::string_view name, vec<value_id>& operands) {
    bool any = false, full = false;
    for (value_id v : operands) any = any || is_spread(v);
    if (!any) return;
    for (value_id v : operands) full = full || (!is_spread(v) && s.b.type(v).shape.rank > 0);
    const bool by_element = full && works_by_element(name);
    for (value_id& v : operands)
      v = by_element && is_spread(v) ? spread_at(s, v).scalar : in_full(s, v);
  }
  /// `%1 = stablehlo.broadcast %0, sizes = [4] : (tensor<f32>) -> tensor<4xf32>`
  constexpr bool spread(scope& s, const op_text& o, const vec<value_id>& operands) {
    if (operands.size() != 1 || o.result_types.size() != 1 || is_spread(operands[0]) ||
        o.results.size() != 1 || o.results[0].count != 1)
      return false;
    const tensor_type from = s.b.type(operands[0]), to = o.result_types[0];
    if (from.shape.rank != 0 || to.shape.rank == 0 || from.element != to.element) return false;
    s.spread.push_back({operands[0], to, -1});
    const value_id v = -1 - static_cast<value_id>(s.spread.size());
    define(s, o.at, o.results[0].name, {&v, 1});
    return true;
  }

  /// Those given; else what their locations say, if it tells them apart (TensorFlow says "XLA_Args"
  /// of all); else as they are written.
  constexpr vec<text> argument_names(const function_text& f) const {
    vec<text> names;
    for (std::size_t i = 0; i < f.arguments.size(); ++i)
      names.push_back(i < names_.size() ? text(names_[i])
                                        : path_of(aliases_.name_at(f.arguments[i].location)));
    name_table first(names.size());
    vec<char> shared(names.size(), 0);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const int same = first.insert(names[i].view(), static_cast<int>(i));
      if (same == static_cast<int>(i)) continue;
      shared[i] = shared[static_cast<std::size_t>(same)] = 1;
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i].empty() || (shared[i] != 0 && i >= names_.size()))
        names[i] = f.arguments[i].name.substr(1);
    return names;
  }
  constexpr void read_main(builder& b, const function_text& f) {
    scope s(b);
    const vec<text> of_arguments = argument_names(f);
    for (std::size_t i = 0; i < f.arguments.size() && !in_.failed(); ++i) {
      const auto& a = f.arguments[i];
      const text& name = of_arguments[i];
      const value_id v = ops::parameter(b, name, a.type);
      if (b.failed()) return adopt(a.at, a.name, b.p.error);
      define(s, a.at, a.name, {&v, 1});
      shardings_.add(a.at, a.attributes, a.type, value_sharding::input, static_cast<int>(i));
    }
    vec<value_id> results = body(s, f.body, f);
    if (in_.failed()) return;
    shardings_.add_results(b, f.at, f.result_attributes, results);
    name_table inputs(static_cast<std::size_t>(b.p.input_count()));
    for (int i = 0; i < b.p.input_count(); ++i) inputs.insert(b.p.input_name(i), i);
    const int count = static_cast<int>(results.size());
    vec<text> names;
    names.reserve(results.size());
    name_table used(results.size());
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      text name = result_name(
          at < f.result_attributes.size() ? f.result_attributes[at] : std::string_view(), i, count);
      const int input = inputs.find(name.view());
      if (input >= 0 && b.p.input_type(input) != b.type(results[at]))
        name = concat("result.", name);
      names.push_back(name);
    }
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (used.insert(names[at].view(), i) != i) names[at] << '.' << i;
      b.p.outputs.push_back({results[at], b.p.intern(names[at])});
    }
  }
  /// The value as a tag, if a sharding is written of it.
  constexpr value_id sharded(scope& s, std::size_t at, std::string_view attributes, value_id v) {
    const std::string_view written = sharding_in(attributes);
    if (!shardings_.wanted() || in_.failed() || written.empty()) return v;
    return shardings_.tagged(s.b, {at, written, {}}, "sharding", in_full(s, v));
  }
  /// The same of what an op of the module made.
  constexpr void keep_sharding(scope& s, const op_text& o, std::string_view name,
                               vec<value_id>& made) {
    if (!shardings_.wanted() || in_.failed() || name == "call" || name == "composite") return;
    const written_sharding w = shardings_.of_op(o, name, made.size());
    if (in_.failed() || w.text.empty()) return;
    scope_path path;
    path.add(aliases_.name_at(o.location));
    const text label = path.name();
    made[0] =
        shardings_.tagged(s.b, w, label.empty() ? "sharding" : label.view(), in_full(s, made[0]));
  }

  /// The ops of a function; gives what it returns.
  constexpr vec<value_id> body(scope& s, piece_of_text text, const function_text& f) {
    const vec<value_id> results = statements(s, text);
    if (in_.failed() || !f.typed) return results;
    if (results.size() != f.result_types.size()) {
      in_.fail(f.at, "H012", "@", f.name, " returns ", results.size(), " values; its type says ",
               f.result_types.size());
      return results;
    }
    for (std::size_t i = 0; i < results.size(); ++i)
      if (s.b.type(results[i]) != f.result_types[i])
        in_.fail(f.at, "H007", "@", f.name, " returns ", s.b.type(results[i]), " as result ", i,
                 "; its type says ", f.result_types[i]);
    return results;
  }
  constexpr vec<value_id> statements(scope& s, piece_of_text text) {
    vec<value_id> results;
    if (in_.failed()) return results;
    const piece_of_text around = in_.rest();
    in_.enter(text);
    bool returned = false;
    while (!in_.failed() && !in_.at_end()) {
      const op_text o = in_.op();
      if (in_.failed()) break;
      if (returned) {
        in_.fail(o.at, "H001", "an op behind the return");
        break;
      }
      returned = statement(s, o, results);
      if (in_.failed()) say_scope(o);
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
  /// True if it was the return.
  constexpr bool statement(scope& s, const op_text& o, vec<value_id>& results) {
    const std::string_view name = without_dialect(o.name);
    vec<value_id> operands;
    for (auto each : o.operands) operands.push_back(use(s, o.at, each));
    if (in_.failed()) return false;
    const int first_op = s.b.p.op_count();
    for (std::size_t i = 0; i < operands.size() && i < o.operand_types.size(); ++i)
      if (o.operand_types.size() == operands.size() &&
          type_of(s, operands[i]) != o.operand_types[i] && name != "select" && name != "clamp") {
        in_.fail(o.at, "H007", o.name, ": operand ", o.operands[i], " has type ",
                 type_of(s, operands[i]), "; the text says ", o.operand_types[i]);
        return false;
      }
    if (name == "broadcast" && spread(s, o, operands)) return false;
    resolve(s, name, operands);
    if (name == "return") {
      results = operands;
      return true;
    }
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
               " ops once functions are put where they are called");
    check_results(s, o, name, made);
    std::size_t first = 0;
    for (const auto& each : o.results) {
      if (in_.failed()) break;
      const auto count = static_cast<std::size_t>(each.count);
      define(s, o.at, each.name, {made.data() + first, count});
      first += count;
    }
    return false;
  }
  /// Where it stands; in a program for one device, of which `prove` speaks, else how it is written.
  constexpr std::string_view place_of(const op_text& o) const {
    const std::string_view name = aliases_.name_at(o.location);
    const bool written = local_ && !o.results.empty() && o.name != "sdy.manual_computation";
    if (!name.empty() || !written) return name;
    return o.results[0].name.substr(1);
  }
  constexpr void check_results(const scope& s, const op_text& o, std::string_view name,
                               const vec<value_id>& made) {
    if (in_.failed()) return;
    if (!o.results.empty() && o.result_count() != static_cast<std::int64_t>(made.size()))
      return in_.fail(o.at, "H012", o.name, " has ", made.size(), " results; the text has ",
                      o.result_count());
    if (!o.typed) return;
    // `while`, barriers: types of all results, as of all operands.
    const bool same = name == "while" || name == "optimization_barrier";
    const vec<tensor_type>& types =
        same && o.result_types.size() != made.size() ? o.operand_types : o.result_types;
    if (types.size() != made.size())
      return in_.fail(o.at, "H012", o.name, " has ", made.size(), " results; the text has ",
                      types.size(), " types");
    for (std::size_t i = 0; i < made.size(); ++i)
      if (s.b.type(made[i]) != types[i])
        return in_.fail(o.at, "H007", o.name, " gives ", s.b.type(made[i]), "; the text says ",
                        types[i]);
  }
  /// The function's ops, with the operands for its arguments.
  constexpr vec<value_id> call(scope& s, const op_text& o, const vec<value_id>& operands) {
    std::string_view name = o.symbol;
    for (std::string_view attribute : {"callee", "decomposition"})
      if (o.has(attribute)) name = o.attribute(attribute);
    if (name.starts_with("@")) name.remove_prefix(1);
    name = without_quotes(name);
    if (is_composite_of_ours(o)) return restored(s, o, name, operands);
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
    return op_detail::append_as_it_is(s.b, static_cast<program&&>(f), operands);
  }
  /// What a function computes, as a program.
  constexpr program function_named(const op_text& o, std::string_view name) {
    const int number = by_name_.find(name);
    if (number < 0) {
      in_.fail(o.at, "H010", o.name, ": there is no function @", name);
      return {};
    }
    const auto n = static_cast<std::size_t>(number);
    read_function(o, n);
    if (in_.failed()) return {};
    return read_[n];
  }

  // ---- Composites that stand for ops of ours, see write_ops.hpp --------------------------------

  /// All that are written so. (The shape rules of these check their attributes.)
  static constexpr const op_def* composites[] = {
      &partita::def<op::abs>,
      &partita::def<op::call>,
      &partita::def<op::convolution>,
      &partita::def<op::cumsum>,
      &partita::def<op::gather>,
      &partita::def<op::random_bits>,
      &partita::def<op::reduce_window>,
      &partita::def<op::roll>,
      &partita::def<op::scan>,
      &partita::def<op::scatter>,
      &partita::def<op::select_and_gather>,
      &partita::def<op::select_and_scatter>,
      &partita::def<op::sign>,
      &partita::def<op::stop_gradient>,
      &partita::def<op::tag>,
      &partita::def<op::tiling>,
  };
  static constexpr std::string_view name_of_composite(const op_text& o) {
    return o.quoted.empty() ? without_quotes(o.attribute("name")) : o.quoted;
  }
  static constexpr bool is_composite_of_ours(const op_text& o) {
    return o.name.ends_with("composite") && name_of_composite(o).starts_with("partita.");
  }
  /// The op of ours that a composite stands for; `function` is what it is made of.
  constexpr vec<value_id> restored(scope& s, const op_text& o, std::string_view function,
                                   const vec<value_id>& operands) {
    const std::string_view name = name_of_composite(o).substr(8);
    const op_def* def = nullptr;
    for (const op_def* each : composites)
      if (each->name == name) def = each;
    if (def == nullptr) {
      in_.fail(o.at, "H004", "composite \"partita.", short_name(name), "\" is no op");
      return {};
    }
    vec<std::int64_t> attrs;
    text label;
    for (std::string_view part : parts_of(inside(o.attribute("composite_attributes"), '{', '}'))) {
      const std::size_t equal = part.find('=');
      if (equal == std::string_view::npos) continue;
      const std::string_view value = part.substr(equal + 1);
      bool splat = false;
      std::string_view list = value;
      while (!list.empty() && is_space(list.front())) list.remove_prefix(1);
      if (part.starts_with("attributes") && !read_integers(list, attrs, splat))
        in_.fail(o.at, "H005", "attributes of composite \"partita.", name, "\" are no numbers");
      if (part.starts_with("name")) label = unescaped(inside(value, '"', '"'));
    }
    vec<program> regions;
    if (def->id == partita::def<op::call>.id)
      regions.push_back(function_named(o, function));
    else if (def->id == partita::def<op::scan>.id)
      regions.push_back(function_named(o, concat(function, ".body").view()));
    if (in_.failed()) return {};
    const tensor_type declared = o.result_types.empty() ? tensor_type() : o.result_types[0];
    const value_id first =
        s.b.emit(*def, operands, attrs, declared, static_cast<vec<program>&&>(regions));
    vec<value_id> made;
    if (first < 0) return made;
    if (!label.empty()) s.b.name_last(label.view());
    const op_node& n = s.b.p.ops.back();
    for (int r = 0; r < n.result_count; ++r) made.push_back(n.result + r);
    return made;
  }
  constexpr void read_function(const op_text& o, std::size_t n) {
    if (state_[n] == 2) return;
    if (state_[n] == 1) return in_.fail(o.at, "H011", "@", functions_[n].name, " calls itself");
    state_[n] = 1;
    if (!deeper(o)) return;
    builder inner;
    scope s(inner);
    const function_text f = functions_[n];
    for (const auto& a : f.arguments) {
      const value_id v = ops::parameter(inner, "", a.type);
      const value_id placed = sharded(s, a.at, a.attributes, v);
      define(s, a.at, a.name, {&placed, 1});
    }
    vec<value_id> results = body(s, f.body, f);
    for (std::size_t i = 0; i < results.size() && i < f.result_attributes.size(); ++i)
      results[i] = sharded(s, f.at, f.result_attributes[i], results[i]);
    if (!in_.failed())
      for (value_id v : results) inner.p.outputs.push_back({v, {}});
    read_[n] = static_cast<program&&>(inner.p);
    state_[n] = 2;
    --nesting_;
  }
  constexpr bool deeper(const op_text& o) {
    if (++nesting_ > max_nesting)
      in_.fail(o.at, "H011", "functions and programs are nested more than ", max_nesting, " deep");
    return !in_.failed();
  }

  constexpr vec<value_id> compute(scope& s, const op_text& o, std::string_view name,
                                  const vec<value_id>& operands) {
    op_context c{in_, s.b, o, operands, {}, {}, {}, local_ ? &mesh_ : nullptr, unrolls_};
    if (!o.regions.empty()) nested(s, o, c);
    // Of custom calls, programs may be functions.
    for (std::string_view f : parts_of(inside(o.attribute("called_computations"), '[', ']')))
      if (f.starts_with("@")) c.regions.push_back(function_named(o, f.substr(1)));
    if (in_.failed() || s.b.failed()) return {};
    if (make_local_op(c, name) || make_op(c, name)) {
      if (!c.failed() && c.results.empty()) in_.fail(o.at, "H012", o.name, " makes nothing");
      return c.results;
    }
    vec<std::string_view> known;
    for (const auto& each : same_ops) known.push_back(each.name);
    for (const auto& each : read_ops) known.push_back(each.name);
    in_.fail(o.at, "H004", "op \"", short_name(o.name), "\" is unknown; ",
             known_names(name, known));
    return {};
  }
  /// The programs of an op: what they use of the values here is an argument of all of them.
  constexpr void nested(scope& s, const op_text& o, op_context& c) {
    vec<std::string_view> names;
    name_table seen(16);
    for (const auto& r : o.regions) captured(s, in_.view(r.body), names, seen);
    for (auto each : names) c.captured.push_back(in_full(s, find(s, each)));
    if (!deeper(o)) return;
    for (const auto& r : o.regions) {
      builder inner;
      inner.number_with(s.b);
      scope inside_it(inner);
      const std::size_t count = o.inner.empty() ? r.arguments.size() : o.inner.size();
      for (std::size_t i = 0; i < count; ++i) {
        const bool pretty = !o.inner.empty();
        const tensor_type t = pretty ? s.b.type(c.x(i)) : r.arguments[i].type;
        const value_id v = ops::parameter(inner, "", t);
        define(inside_it, o.at, pretty ? o.inner[i] : r.arguments[i].name, {&v, 1});
      }
      for (std::size_t i = 0; i < names.size(); ++i) {
        const value_id v = ops::parameter(inner, "", s.b.type(c.captured[i]));
        define(inside_it, o.at, names[i], {&v, 1});
      }
      const vec<value_id> results = statements(inside_it, r.body);
      if (in_.failed()) return;
      for (value_id v : results) inner.p.outputs.push_back({v, {}});
      c.regions.push_back(static_cast<program&&>(inner.p));
    }
    --nesting_;
  }
  /// Adds the names in a text that are values here. (A name that is defined in there is none.)
  static constexpr void captured(const scope& s, std::string_view text,
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
      if (find(s, name) == -1) continue;
      const int number = static_cast<int>(names.size());
      if (seen.insert(name, number) == number) names.push_back(name);
    }
  }
};

}  // namespace stablehlo_detail

/// The program of a StableHLO module (text): that of @main, or of the only function. Functions are
/// put where they are called. Arguments are named by their locations (`params['w']` is "params.w"),
/// else as they are written ("arg0"); `names`, if given, are the names of the first ones. Results
/// are named by `jax.result_info`.
///
/// Errors    in `program::error`, with line and column: H001 syntax, H002 braces and brackets, H003
///           a type that is not supported, H004 an unknown op, H005 an attribute, H006 a name that
///           is not or twice defined, H007 types that differ from those in the text, H008 a
///           constant's elements, H009 a nested program that is not understood, H010 no such
///           function, H011 recursion or a limit, H012 numbers of operands, results or programs,
///           H013 what is not supported of an op; and those of the ops
/// Source    the StableHLO specification, version 1.0
constexpr program read_stablehlo(std::string_view module, span<const std::string_view> names = {}) {
  return stablehlo_detail::module_reader(module, names).run();
}
/// The same, with the shardings that the module carries: of arguments, of results, and of values
/// inside, which become tags. `schedule_of` (spec/shardings.hpp) makes tactics of them.
///
/// Errors    those of read_stablehlo; H014 a sharding that cannot be expressed
/// Source    Shardy's sdy.sharding; XLA's HloSharding, as GSPMD has it in `mhlo.sharding`
constexpr program read_stablehlo(std::string_view module, sharding_list& shardings,
                                 span<const std::string_view> names = {}) {
  return stablehlo_detail::module_reader(module, names, &shardings).run();
}

}  // namespace partita
