/// The ops of a program as C++ statements.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/backend/code/op_text.hpp>
#include <partita/backend/code/plan.hpp>
#include <partita/ir/print.hpp>
#include <partita/op/scan.hpp>
#include <partita/run/device/control_table.hpp>
#include <partita/run/kernels/product.hpp>
#include <partita/support/number_text.hpp>

namespace partita::backend_detail {

/// Words of C++, and names that a file of device code uses.
inline std::set<std::string> reserved_names() {
  std::set<std::string> names;
  std::string_view list =
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t "
      "char16_t "
      "char32_t class co_await co_return co_yield compl concept const const_cast consteval "
      "constexpr constinit continue decltype default delete do double dynamic_cast else enum "
      "explicit export extern false float for friend goto if inline int long mutable namespace new "
      "noexcept not not_eq nullptr operator or or_eq private protected public register "
      "reinterpret_cast requires return short signed sizeof static static_assert static_cast "
      "struct "
      "switch template this thread_local throw true try typedef typeid typename union unsigned "
      "using virtual void volatile wchar_t while xor xor_eq "
      "INT64_MIN b code combiner d device_mesh dtype i in inputs kernels main memory_bytes mesh op "
      "out outputs partita run std ";
  for (std::size_t end = 0; (end = list.find(' ')) != list.npos; list.remove_prefix(end + 1))
    names.emplace(list.substr(0, end));
  return names;
}

/// Writes the statements of a program and of those nested in it.
class block_writer {
 public:
  explicit block_writer(const mesh& m) : mesh_(m) {}

  /// A whole program: pointers to its inputs come from `in`, outputs go to `out`.
  void write_program(const program& p, const code_plan& plan) {
    const value_names names(p);
    scope s(p, plan, names, p.labels);
    for (int i = 0; i < p.input_count(); ++i) {
      const tensor_type& t = p.input_type(i);
      line("const auto* const " + variable(s, p.inputs[i]) + " = code::in<" + cpp(t) + ">(in[" +
           std::to_string(i) + "]);  // " + printed(t));
    }
    write(s);
    for (int i = 0; i < p.output_count(); ++i) {
      const value_id v = p.outputs[i].value;
      const code_place& at = plan.place(v);
      if (at.where != code_place::kind::output || at.at != i)
        copy(pointer(s, v), p.type(v),
             "code::out<" + cpp(p.type(v)) + ">(out[" + std::to_string(i) + "])");
    }
  }
  const std::string& text() const { return out_; }
  const std::set<std::string>& headers() const { return headers_; }

  /// `{dtype::f32, {64, 8}}`
  static std::string type_text(const tensor_type& t) {
    std::string s = "{dtype::";
    s += t.element == dtype::boolean ? "boolean" : name_of(t.element);
    s += ", {";
    for (int i = 0; i < t.shape.rank; ++i) s += (i ? ", " : "") + number(t.shape[i]);
    return s + "}}";
  }

 private:
  /// A program while it is written.
  struct scope {
    const program& p;
    const code_plan& plan;
    const value_names& names;
    const label_list& labels;
    std::vector<std::string> pointers;  // by root value
    scope(const program& program, const code_plan& its_plan, const value_names& its_names,
          const label_list& all_labels)
        : p(program),
          plan(its_plan),
          names(its_names),
          labels(all_labels),
          pointers(program.types.size()) {}
  };

  static std::string number(std::int64_t n) { return std::to_string(n); }
  static std::string cpp(const tensor_type& t) { return std::string(cpp_name_of(t.element)); }
  static std::string printed(const tensor_type& t) {
    const partita::text s = concat(t);
    return std::string(s.view());
  }
  /// Writes a line; one of more than 100 characters is broken after commas.
  void line(std::string s) {
    auto indent = static_cast<std::size_t>(2 * depth_);
    while (indent + s.size() > 100 && s.compare(0, 2, "//") != 0) {
      const std::size_t end = s.rfind(", ", 99 - indent);
      if (end == s.npos || end < 4) break;
      out_.append(indent, ' ') += s.substr(0, end + 1) + '\n';
      s.erase(0, end + 2);
      indent = static_cast<std::size_t>(2 * depth_) + 4;
    }
    out_.append(indent, ' ') += s + '\n';
  }
  void open(const std::string& s) {
    line(s);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }

  // ---- Names -----------------------------------------------------------------------------------

  /// A new identifier for a value: its printed name as far as C++ has such names.
  std::string variable(scope& s, value_id v) {
    std::string name;
    for (const char c : s.names[v]) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (plain || (c != '"' && !name.empty() && name.back() != '_')) name += plain ? c : '_';
    }
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "v" + name;
    // (`x_i` is the name of x in loops.)
    std::string unique = name;
    for (int n = 2; used_.contains(unique) || used_.contains(unique + "_i"); ++n)
      unique = name + '_' + std::to_string(n);
    used_.insert(unique);
    used_.insert(unique + "_i");
    s.pointers[static_cast<std::size_t>(s.plan.roots[v])] = unique;
    return unique;
  }
  static const std::string& pointer(const scope& s, value_id v) {
    return s.pointers[static_cast<std::size_t>(s.plan.roots[v])];
  }
  /// Declares where a value is stored.
  void declare(scope& s, value_id v) {
    const tensor_type& t = s.p.type(v);
    const code_place& at = s.plan.places[v];
    const std::string where = at.where == code_place::kind::output
                                  ? "code::out<" + cpp(t) + ">(out[" + number(at.at) + "])"
                                  : "d.memory<" + cpp(t) + ">(" + number(at.at) + ")";
    line("auto* const " + variable(s, v) + " = " + where + ";  // " + printed(t));
  }
  void copy(const std::string& from, const tensor_type& t, const std::string& to) {
    line("code::copy(" + from + ", " + number(t.shape.elements()) + ", " + to + ");");
  }
  /// The op as the listing of the program shows it.
  void comment(const scope& s, op_id o) {
    const op_node& n = s.p.op(o);
    partita::text t;
    append_list(t, n.result_count, [&](int i) { t << '%' << s.names[n.result + i]; });
    t << " = ";
    print_call(t, s.p, o, &mesh_, [&](int i) { t << s.names[s.p.operand(o, i)]; });
    std::string call(t.view());
    if (call.size() > 200) call = call.substr(0, 200) + "...";
    line("// " + call);
  }

  // ---- Steps -----------------------------------------------------------------------------------

  void write(scope& s) {
    for (const code_step& step : s.plan.steps) switch (step.what) {
        case code_step::kind::loop:
          write_loop(s, step);
          break;
        case code_step::kind::kernel:
          write_kernel(s, step.op);
          break;
        case code_step::kind::collective:
          write_collective(s, step.op);
          break;
        case code_step::kind::start:
          write_start(s, step.op);
          break;
        case code_step::kind::control:
          write_control(s, step);
          break;
      }
  }

  void write_loop(scope& s, const code_step& step) {
    headers_.insert("backend/code/lanes");
    for (op_id o : step.members)
      if (s.plan.places[s.p.op(o).result].where != code_place::kind::nowhere)
        declare(s, s.p.op(o).result);
    open("for (std::int64_t i = 0; i < " + number(step.elements) + "; i += code::lanes) {");
    std::vector<std::string> made(s.p.types.size());  // by root value: the name in the loop
    for (op_id o : step.members) {
      const op_node& n = s.p.op(o);
      if (!has_code(*n.def)) throw error(no_code(*n.def, "write_cpp"));
      std::vector<std::string> x;
      for (value_id v : s.p.operands(o)) x.push_back(element(s, step, v, made));
      if (is_special(n.def->name)) headers_.insert("run/kernels/special");
      std::string name(pointer(s, n.result));
      if (name.empty()) name = variable(s, n.result);
      made[static_cast<std::size_t>(n.result)] = name + "_i";
      line("const auto " + name + "_i = " + expression(s.p, o, x) + ";");
      if (s.plan.places[n.result].where != code_place::kind::nowhere)
        line("code::store(" + name + "_i, " + name + ", i);");
    }
    close();
  }
  /// An operand of a member of a loop, as an expression.
  static std::string element(const scope& s, const code_step& step, value_id x,
                             const std::vector<std::string>& made) {
    const code_access a = s.plan.access(s.p, step, x);
    const std::string& source = s.pointers[static_cast<std::size_t>(a.source)];
    switch (a.how) {
      case code_access::kind::local:
        return made[static_cast<std::size_t>(a.source)];
      case code_access::kind::element:
        return "code::load(" + source + ", i)";
      case code_access::kind::scalar:
        return "code::splat(*" + source + ")";
      case code_access::kind::repeat:
        return "code::repeat<" + number(a.count) + ", " + number(a.inner) + ">(" + source + ", i)";
      case code_access::kind::splat:
        return splat(s.p.type(a.source).element, a.bits);
    }
    return {};
  }
  static std::string splat(dtype t, std::int64_t bits) {
    const std::string type(cpp_name_of(t));
    const double v = std::bit_cast<double>(bits);
    const bool plain =
        t == dtype::f32 || t == dtype::f64 ? v - v == 0 : is_integer(t) && bits > -1000000;
    if (!plain || (is_integer(t) && bits > 1000000))
      return "code::splat_bits<" + type + ">(" + bits_text(bits) + ")";
    partita::text literal;
    if (is_integer(t))
      literal << bits;
    else
      print_number(literal, v);
    return "code::splat(" + type + "(" + std::string(literal.view()) + "))";
  }
  static std::string bits_text(std::int64_t bits) {
    return bits == INT64_MIN ? "INT64_MIN"
                             : number(bits) + (bits == static_cast<int>(bits) ? "" : "LL");
  }
  static std::string expression(const program& p, op_id o, const std::vector<std::string>& x) {
    const op_node& n = p.op(o);
    const std::string_view name = n.def->name;
    const std::string to = cpp(p.type(n.result));
    if (name == "add") return x[0] + " + " + x[1];
    if (name == "subtract") return x[0] + " - " + x[1];
    if (name == "multiply") return x[0] + " * " + x[1];
    if (name == "divide") return x[0] + " / " + x[1];
    if (name == "negate") return "-" + x[0];
    std::string call = "code::";
    if (name == "exp" || name == "logistic" || name == "tanh" || name == "select" ||
        name == "random_bits")
      call += name;
    else if (name == "convert")
      call += "convert<" + to + ">";
    else if (name == "compare")
      call += "map<bool, kernels::compare_lanes<std::" +
              std::string(comparison_of(static_cast<ops::direction>(p.attrs(o)[0]))) + "<>>>";
    else
      call += "map<" + to + ", kernels::" + lanes_of(name) + ">";
    call += '(';
    for (std::size_t i = 0; i < x.size(); ++i) call += (i ? ", " : "") + x[i];
    return call + ')';
  }

  void write_kernel(scope& s, op_id o) {
    const op_node& n = s.p.op(o);
    if (!has_code(*n.def)) throw error(no_code(*n.def, "write_cpp"));
    comment(s, o);
    for (int r = 0; r < n.result_count; ++r) declare(s, n.result + r);
    if (is_op<op::dot_general>(n) && write_product(s, o)) return;
    if (is_op<op::reduce>(n) && write_reduction(s, o)) return;
    const std::string_view header = header_of(n.def->name);
    headers_.insert("run/kernels/" + std::string(header));
    line("d.call(kernels::" + kernel_of(n.def->name) + ", " + attributes(s.p.attrs(o)) + ',');
    line("       " + operands(s, o) + ", " + results(s, o) + ");");
  }
  static std::string attributes(span<const std::int64_t> attrs) {
    std::string list = "{";
    for (std::size_t i = 0; i < attrs.size(); ++i) list += (i ? ", " : "") + bits_text(attrs[i]);
    return list + "}";
  }
  static std::string operands(const scope& s, op_id o) {
    std::string list = "{";
    for (value_id x : s.p.operands(o))
      list += (list.size() > 1 ? ", {" : "{") + type_text(s.p.type(x)) + ", " + pointer(s, x) + "}";
    return list + "}";
  }
  static std::string results(const scope& s, op_id o) {
    std::string list = "{";
    for (int r = 0; r < s.p.op(o).result_count; ++r) {
      const value_id v = s.p.op(o).result + r;
      list += (r ? ", {" : "{") + type_text(s.p.type(v)) + ", " + pointer(s, v) + "}";
    }
    return list + "}";
  }

  static std::string view_text(const run_detail::matrix_view& v, const std::string& data) {
    const std::string size = number(v.rows) + ", " + number(v.columns);
    if (v.column_stride == 1 && v.row_stride == v.columns)
      return "code::matrix<" + size + ">(" + data + ")";
    if (v.row_stride == 1 && v.column_stride == v.rows)
      return "code::transposed<" + size + ">(" + data + ")";
    return "code::strided<" + size + ", " + number(v.row_stride) + ", " + number(v.column_stride) +
           ">(" + data + ")";
  }
  /// A product of floats whose operands need not be copied first, for each index of its batch.
  bool write_product(const scope& s, op_id o) {
    const value_id x = s.p.operand(o, 0), y = s.p.operand(o, 1), v = s.p.op(o).result;
    const dtype t = s.p.type(v).element;
    const auto attrs = s.p.attrs(o);
    const run_detail::dot_plan plan(s.p.type(x).shape, s.p.type(y).shape,
                                    {attrs.data(), attrs.size()});
    const bool floats = t == dtype::f32 || t == dtype::f64;
    if (!floats || s.p.type(v).shape.elements() == 0 || plan.depth == 0 || plan.left.packed ||
        plan.right.packed || plan.batch.count > 1)
      return false;
    headers_.insert("backend/code/products");
    const bool batch = plan.batch.count == 1;
    const auto at = [&](const std::string& name, std::int64_t stride) {
      return batch ? name + " + b * " + number(stride) : name;
    };
    const run_detail::dot_dim& b = plan.batch.at[0];
    if (batch) open("for (std::int64_t b = 0; b < " + number(plan.batches) + "; ++b)");
    line("code::multiply(" + view_text(plan.left, at(pointer(s, x), b.a)) + ", " +
         view_text(plan.right, at(pointer(s, y), b.b)) + ", " +
         at(pointer(s, v), plan.rows * plan.columns) + ");");
    if (batch) --depth_;
    return true;
  }
  /// A reduction of elements that are in order: (outer, reduced, inner).
  bool write_reduction(const scope& s, op_id o) {
    const value_id x = s.p.operand(o, 0), v = s.p.op(o).result;
    const dtype t = s.p.type(v).element;
    const auto attrs = s.p.attrs(o);
    const reduce_plan plan(s.p.type(x).shape, attrs);
    if (s.p.op(o).operand_count != 1 || run_detail::is_half(t) || !plan.direct ||
        s.p.type(x).shape.elements() == 0)
      return false;
    headers_.insert("backend/code/reductions");
    line("code::reduce<combiner::" +
         std::string(cpp_name_of(combiner_for(static_cast<combiner>(attrs[0]), t))) + ", " +
         number(plan.outer) + ", " + number(plan.reduced) + ", " + number(plan.inner) + ">(" +
         pointer(s, x) + ", " + pointer(s, v) + ");");
    return true;
  }

  void write_collective(scope& s, op_id o) {
    const op_node& n = s.p.op(o);
    comment(s, o);
    for (int r = 0; r < n.result_count; ++r) declare(s, n.result + r);
    const collective what = s.p.collective_of(o);
    std::string combine;
    if (what.reduces()) {
      const dtype t = s.p.type(n.result).element, computed = run_detail::computed(t);
      combine =
          ", code::combined<combiner::" + std::string(cpp_name_of(combiner_for(what.combine, t))) +
          ", " + std::string(cpp_name_of(computed)) + ">";
    }
    line("d.exchange<op::" + std::string(n.def->name) + combine + ">(" + number(exchanges_++) +
         ", " + attributes(s.p.attrs(o)) + ',');
    line("    " + operands(s, o) + ", " + results(s, o) + ");");
  }
  /// Where this device's block starts.
  void write_start(scope& s, op_id o) {
    const value_id v = s.p.op(o).result;
    comment(s, o);
    declare(s, v);
    std::string n;
    for (int a : op::shard_start::axes(s.p.attrs(o))) {
      const std::string here = "d.position(" + number(a) + ")";
      n = n.empty() ? here : "(" + n + ") * " + number(mesh_.size(a)) + " + " + here;
    }
    line("*" + pointer(s, v) + " = static_cast<" + cpp(s.p.type(v)) + ">((" +
         (n.empty() ? "0" : n) + ") * " + number(op::shard_start::distance(s.p.attrs(o))) + ");");
  }

  // ---- Control ---------------------------------------------------------------------------------

  inline void write_control(scope& s, const code_step& step);
  friend class control_writer;

  const mesh& mesh_;
  std::string out_;
  std::set<std::string> headers_, used_ = reserved_names();
  int depth_ = 1, exchanges_ = 0;
};

}  // namespace partita::backend_detail

#include <partita/backend/code/control_writer.hpp>
