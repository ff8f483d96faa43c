/// Top-level items of a module: functions, aliases, meshes.
#pragma once

#include <string_view>

#include <partita/stablehlo/sharding_collector.hpp>
#include <partita/support/name_table.hpp>

namespace partita::stablehlo_detail {

struct function_text {
  std::string_view name;
  std::size_t at = 0;
  bool is_public = true;
  vec<argument_text> arguments;
  vec<std::string_view> result_attributes;
  vec<tensor_type> result_types;
  bool typed = false;  ///< true if the text has the types of the results
  piece_of_text body;
};

/// Reads the top-level items of a module.
class module_items {
 public:
  /// `local_mesh`: for a program for one device, its mesh; that of the module must have the same
  /// axes.
  constexpr module_items(syntax& in, alias_table& aliases, sharding_collector& shardings,
                         mesh* local_mesh)
      : in_(in), aliases_(aliases), shardings_(shardings), local_mesh_(local_mesh), by_name_(16) {}

  constexpr std::size_t size() const { return functions_.size(); }
  constexpr const function_text& operator[](std::size_t i) const { return functions_[i]; }
  /// The index of the function, or -1.
  constexpr int find(std::string_view name) const { return by_name_.find(name); }

  constexpr void read() {
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
  /// Returns `main`, or the only function, or the only public one.
  constexpr int main() {
    if (in_.failed()) return -1;
    if (const int named = find("main"); named >= 0) return named;
    if (functions_.size() == 1) return 0;
    int found = -1, count = 0;
    for (std::size_t i = 0; i < functions_.size(); ++i)
      if (functions_[i].is_public) found = static_cast<int>(i), ++count;
    if (count == 1) return found;
    text list;
    for (std::size_t i = 0; i < functions_.size() && i < 8; ++i)
      list << (i > 0 ? ", @" : "@") << functions_[i].name;
    in_.error.record("H010", "stablehlo: function @main is missing among ", functions_.size(),
                     " functions", functions_.empty() ? "" : ": ", list);
    return -1;
  }

 private:
  syntax& in_;
  alias_table& aliases_;
  sharding_collector& shardings_;
  mesh* local_mesh_;
  vec<function_text> functions_;
  name_table by_name_;

  /// Reads a function, a mesh or an alias.
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
  /// Reads `sdy.mesh @mesh = <["x"=4]> {...}`.
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
    if (local_mesh_ == nullptr || in_.failed()) return;
    sharding_list list;
    sharding_reader r(list);
    r.add_mesh(name, value);
    if (!r.fault.empty()) return in_.fail(at, "H014", "mesh @", name, ": ", r.fault);
    adopt(at, list.meshes.back().mesh);
  }
  /// Checks that the module's mesh equals the program's, and adopts the order of its axes.
  constexpr void adopt(std::size_t at, const mesh& m) {
    if (m.rank == 0) return;
    bool same = m.rank == local_mesh_->rank && !validate(m);
    for (int i = 0; same && i < m.rank; ++i) {
      const int other = local_mesh_->find(m.name(i));
      same = other >= 0 && local_mesh_->size(other) == m.size(i);
    }
    if (!same)
      return in_.fail(at, "H013", "the mesh of the module is ", m, "; that of the system is ",
                      *local_mesh_);
    *local_mesh_ = m;
  }
  /// Reads `#loc3 = loc("a")` or `#map = ...`.
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
          in_.type_or_tuple(f.result_types);
          f.result_attributes.resize(f.result_types.size(),
                                     in_.starts("{") ? in_.bracketed() : std::string_view());
          if (in_.accept_word("loc")) in_.bracketed();
          if (!in_.accept(",") && !in_.starts(")")) in_.expected(")");
        }
      } else {
        in_.type_or_tuple(f.result_types);
        f.result_attributes.resize(f.result_types.size(), {});
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
  }
  /// Reads `"builtin.module"() ({ ... }) : () -> ()` or `"func.func"() <{sym_name = "main", ...}>
  /// ({...})`.
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
};

}  // namespace partita::stablehlo_detail
