/// The steps of a plan as C++ statements.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <partita/backend/code/cpp_names.hpp>
#include <partita/backend/code/plan.hpp>
#include <partita/backend/code/products.hpp>
#include <partita/support/number_text.hpp>

namespace partita::backend_detail {

/// Writes the statements of a program and of those nested in it.
class block_writer {
 public:
  explicit block_writer(const mesh& m) : mesh_(m) {}

  /// A whole program: pointers to its inputs come from `in`, outputs go to `out`.
  void write_program(const program& p, const code_plan& plan) {
    scope s(p, plan, value_names(p), p.labels);
    for (int i = 0; i < p.input_count(); ++i) {
      const tensor_type& t = p.input_type(i);
      line("const auto* const ", variable(s, p.inputs[i]), " = code::in<", cpp_name_of(t.element),
           ">(in[", i, "]);  // ", t);
    }
    write(s);
    for (int i = 0; i < p.output_count(); ++i) {
      const tensor_type& t = p.output_type(i);
      const code_place& at = plan.place(p.outputs[i].value);
      if (at.where != code_place::kind::output || at.at != i)
        copy(pointer(s, p.outputs[i].value), t,
             concat("code::out<", cpp_name_of(t.element), ">(out[", i, "])"));
    }
  }
  const std::string& body() const { return out_; }
  const std::set<std::string>& headers() const { return headers_; }

 private:
  friend class control_writer;

  /// A program while it is written.
  struct scope {
    const program& p;
    const code_plan& plan;
    value_names names;
    const label_list& labels;
    std::vector<std::string> pointers;  // by root value
    scope(const program& its_program, const code_plan& its_plan, value_names its_names,
          const label_list& all_labels)
        : p(its_program),
          plan(its_plan),
          names(std::move(its_names)),
          labels(all_labels),
          pointers(its_program.types.size()) {}
  };

  /// Writes a line; one of more than 100 characters is broken after commas.
  template <class... Parts>
  void line(const Parts&... parts) {
    const text all = concat(std::string_view(), parts...);
    std::string s(all.view());
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
  template <class... Parts>
  void open(const Parts&... parts) {
    line(parts...);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }

  // ---- Values ----------------------------------------------------------------------------------

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
    for (int n = 2; has_word(reserved_names, unique) || used_.contains(unique) ||
                    used_.contains(unique + "_i");
         ++n)
      unique = name + '_' + std::to_string(n);
    used_.insert(unique);
    used_.insert(unique + "_i");
    return s.pointers[run_detail::at(s.plan.roots[v])] = unique;
  }
  static const std::string& pointer(const scope& s, value_id v) {
    return s.pointers[run_detail::at(s.plan.roots[v])];
  }
  /// Declares memory for a value.
  void declare(scope& s, value_id v, const tensor_type& t, std::int64_t at) {
    line("auto* const ", variable(s, v), " = d.memory<", cpp_name_of(t.element), ">(", at,
         ");  // ", t);
  }
  /// Declares where a result is stored.
  void declare(scope& s, const code_value& r) {
    if (r.place.where == code_place::kind::memory) declare(s, r.access.source, r.type, r.place.at);
    if (r.place.where == code_place::kind::output)
      line("auto* const ", variable(s, r.access.source), " = code::out<",
           cpp_name_of(r.type.element), ">(out[", r.place.at, "]);  // ", r.type);
  }
  template <class From, class To>
  void copy(const From& from, const tensor_type& t, const To& to) {
    line("code::copy(", from, ", ", t.shape.elements(), ", ", to, ");");
  }
  static span<const code_value> operands(const scope& s, const code_op& o) {
    return {s.plan.operands.data() + o.operand, run_detail::at(o.operands)};
  }
  static span<const code_value> results(const scope& s, const code_op& o) {
    return {s.plan.results.data() + o.result, run_detail::at(o.results)};
  }
  static span<const std::int64_t> attributes(const scope& s, const code_op& o) {
    return {s.plan.attrs.data() + o.attr, run_detail::at(o.attrs)};
  }

  // ---- Steps -----------------------------------------------------------------------------------

  void write(scope& s) {
    for (const code_step& step : s.plan.steps) {
      if (step.what == code_step::kind::loop) {
        write_loop(s, step);
        continue;
      }
      const code_op& o = s.plan.ops[step.op];
      comment(s, o.op);
      for (const code_value& r : results(s, o)) declare(s, r);
      if (step.what == code_step::kind::start)
        write_start(s, o);
      else if (step.what == code_step::kind::control)
        write_control(s, step);
      else if (step.what == code_step::kind::collective)
        write_collective(s, o);
      else if (!write_product(s, o) && !write_reduction(s, o))
        write_kernel(s, o);
    }
  }
  /// The op as the listing of the program shows it.
  void comment(const scope& s, op_id o) {
    const op_node& n = s.p.op(o);
    text t;
    append_list(t, n.result_count, [&](int i) { t << '%' << s.names[n.result + i]; });
    t << " = ";
    print_call(t, s.p, o, &mesh_, [&](int i) { t << s.names[s.p.operand(o, i)]; });
    line("// ", t.view().substr(0, 200), t.size() > 200 ? "..." : "");
  }

  void write_loop(scope& s, const code_step& step) {
    headers_.insert("backend/code/lanes");
    const span<const code_op> members{s.plan.ops.data() + step.op, run_detail::at(step.ops)};
    for (const code_op& o : members) declare(s, s.plan.results[o.result]);
    open("for (std::int64_t i = 0; i < ", step.elements, "; i += code::lanes) {");
    std::vector<std::string> made;  // by member: the name in the loop
    for (const code_op& o : members) {
      const code_value& r = s.plan.results[o.result];
      const bool stored = r.place.where != code_place::kind::nowhere;
      const std::string name = stored ? pointer(s, r.access.source) : variable(s, r.access.source);
      made.push_back(name + "_i");
      line("const auto ", made.back(), " = ", expression(s, o, made), ';');
      if (stored) line("code::store(", made.back(), ", ", name, ", i);");
    }
    close();
  }
  /// A member of a loop.
  text expression(const scope& s, const code_op& o, const std::vector<std::string>& made) {
    const std::string_view name = o.def->name, header = kernel_header(name);
    if (!header.empty()) headers_.insert("run/kernels/" + std::string(header));
    const auto to = cpp_name_of(s.plan.results[o.result].type.element);
    text e;
    const auto append = [&](std::string_view between) {
      for (const code_value& x : operands(s, o)) {
        if (&x != operands(s, o).begin()) e << between;
        append_element(e, s, x, made);
      }
    };
    constexpr std::string_view symbols[][2] = {
        {"add", " + "}, {"subtract", " - "}, {"multiply", " * "}, {"divide", " / "}};
    for (const auto& [op, symbol] : symbols)
      if (name == op) {
        append(symbol);
        return e;
      }
    if (name == "select" || name == "random_bits") {
      e << "code::" << name;
    } else if (name == "convert") {
      e << "code::convert<" << to << '>';
    } else if (name == "compare") {
      constexpr std::string_view holds[] = {"equal_to",   "not_equal_to", "less",
                                            "less_equal", "greater",      "greater_equal"};
      e << "code::map<kernels::compare_lanes<std::" << holds[attributes(s, o)[0]] << "<>>, bool>";
    } else {
      const bool same =
          s.plan.operands[o.operand].type.element == s.plan.results[o.result].type.element;
      e << "code::map<kernels::" << name << "_lanes" << (same ? "" : ", ") << (same ? "" : to)
        << '>';
    }
    e << '(';
    append(", ");
    return e << ')';
  }
  static void append_element(text& e, const scope& s, const code_value& x,
                             const std::vector<std::string>& made) {
    const code_access& a = x.access;
    const std::string& source = s.pointers[run_detail::at(a.source)];
    switch (a.how) {
      case code_access::kind::local:
        e << made[run_detail::at(x.member)];
        break;
      case code_access::kind::whole:
        e << "code::load(" << source << ", i)";
        break;
      case code_access::kind::scalar:
        e << "code::splat(*" << source << ')';
        break;
      case code_access::kind::repeat:
        e << "code::repeat<" << a.count << ", " << a.inner << ">(" << source << ", i)";
        break;
      case code_access::kind::splat: {
        const double v = std::bit_cast<double>(a.bits);
        const std::string_view type = cpp_name_of(x.type.element);
        if ((x.type.element == dtype::f32 || x.type.element == dtype::f64) && v - v == 0) {
          e << "code::splat(" << type << '(';
          print_number(e, v);
          e << "))";
        } else {
          e << "code::splat_bits<" << type << ">(" << cpp_text_of(a.bits) << ')';
        }
      }
    }
  }

  // ---- Other ops -------------------------------------------------------------------------------

  static void append_attributes(text& t, const scope& s, const code_op& o) {
    const auto list = attributes(s, o);
    t << '{';
    append_list(t, o.attrs, [&](int i) { t << cpp_text_of(list[run_detail::at(i)]); });
    t << '}';
  }
  /// `{{{dtype::f32, {2, 8}}, x}, ...}`
  static text tensors(const scope& s, span<const code_value> list) {
    text t = "{";
    append_list(t, static_cast<int>(list.size()), [&](int i) {
      const code_value& x = list[run_detail::at(i)];
      t << '{' << cpp_text_of(x.type) << ", " << pointer(s, x.access.source) << '}';
    });
    return t << '}';
  }
  void write_kernel(const scope& s, const code_op& o) {
    headers_.insert("run/kernels/" + std::string(kernel_header(o.def->name)));
    text attrs;
    append_attributes(attrs, s, o);
    line("d.call(kernels::", o.def->name, "_kernel, ", attrs, ',');
    line("       ", tensors(s, operands(s, o)), ", ", tensors(s, results(s, o)), ");");
  }
  void write_collective(const scope& s, const code_op& o) {
    text attrs;
    append_attributes(attrs, s, o);
    const collective what = s.p.collective_of(o.op);
    line("d.exchange<op::", o.def->name, what.reduces() ? ", code::combined<combiner::" : "",
         what.reduces() ? cpp_name_of(what.combine) : "", what.reduces() ? ", " : "",
         what.reduces() ? cpp_name_of(s.plan.results[o.result].type.element) : "",
         what.reduces() ? ">>(" : ">(", exchanges_++, ", ", attrs, ',');
    line("    ", tensors(s, operands(s, o)), ", ", tensors(s, results(s, o)), ");");
  }

  static text matrix(const run_detail::matrix_view& v, const std::string& data, std::int64_t step) {
    text t = concat("code::matrix<", v.rows, ", ", v.columns);
    if (v.column_stride != 1 || v.row_stride != v.columns)
      t << ", " << v.row_stride << ", " << v.column_stride;
    t << ">(" << data;
    if (step > 0) t << " + b * " << step;
    return t << ')';
  }
  bool write_product(const scope& s, const code_op& o) {
    if (o.def != &def<op::dot_general>) return false;
    const code_value &x = operands(s, o)[0], &y = operands(s, o)[1];
    const run_detail::dot_plan plan(x.type.shape, y.type.shape, attributes(s, o));
    if (!code::multiplies(plan, x.type.element)) return false;
    headers_.insert("backend/code/products");
    const bool batch = plan.batches > 1;
    const run_detail::dot_dim& b = plan.batch.at[0];
    const std::string& to = pointer(s, results(s, o)[0].access.source);
    if (batch) open("for (std::int64_t b = 0; b < ", plan.batches, "; ++b)");
    line("code::multiply(", matrix(plan.left, pointer(s, x.access.source), batch ? b.a : 0), ", ",
         matrix(plan.right, pointer(s, y.access.source), batch ? b.b : 0), ", ", to,
         batch ? concat(" + b * ", plan.rows * plan.columns) : text(), ");");
    if (batch) --depth_;
    return true;
  }
  bool write_reduction(const scope& s, const code_op& o) {
    if (o.def != &def<op::reduce>) return false;
    const code_value& x = operands(s, o)[0];
    const run_detail::reduction_sizes sizes(x.type.shape, attributes(s, o));
    if (!code::reduces(sizes, o.operands, x.type)) return false;
    headers_.insert("backend/code/products");
    line("code::reduce<combiner::", cpp_name_of(static_cast<combiner>(attributes(s, o)[0])), ", ",
         sizes.outer, ", ", sizes.reduced, ", ", sizes.inner, ">(", pointer(s, x.access.source),
         ", ", pointer(s, results(s, o)[0].access.source), ");");
    return true;
  }
  /// Where this device's block starts.
  void write_start(const scope& s, const code_op& o) {
    const axis_list axes = op::shard_start::axes(attributes(s, o));
    text list;
    append_list(list, axes.count, [&](int i) { list << int{axes.axes[i]}; });
    line('*', pointer(s, results(s, o)[0].access.source), " = static_cast<",
         cpp_name_of(results(s, o)[0].type.element), ">(d.block({", list, "}) * ",
         op::shard_start::distance(attributes(s, o)), ");");
  }
  inline void write_control(scope& s, const code_step& step);

  const mesh& mesh_;
  std::string out_;
  std::set<std::string> headers_, used_;
  int depth_ = 1, exchanges_ = 0;
};

}  // namespace partita::backend_detail

#include <partita/backend/code/control_writer.hpp>
