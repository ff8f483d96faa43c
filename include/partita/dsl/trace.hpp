/// `trace`: runs a model on typed handles and keeps the program that it emits.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <partita/dsl/ops.hpp>
#include <partita/dsl/tag.hpp>
#include <partita/dsl/tag_names.hpp>
#include <partita/dsl/tree.hpp>
#include <partita/dsl/tree_errors.hpp>
#include <partita/ir/tidy.hpp>
#include <partita/ir/verify.hpp>
#include <partita/op/custom_vjp.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace dsl_detail {

// Error texts about types. If one applies, nothing is traced.

template <class Spec>
struct input_message {
  constexpr text operator()() const {
    return concat("P024 input: the type is ", why_not_tree<Spec>(), "; for a tensor, write ",
                  "pt::input<float, 8, 16>(\"w\")");
  }
};
template <int Inputs>
struct parameters_message {
  constexpr text operator()() const {
    return concat("P025 trace: the model cannot be called with the ", Inputs,
                  Inputs == 1 ? " input that is" : " inputs that are",
                  " given: it has another number of parameters, or did not compile (see above)");
  }
};
template <class Result>
struct result_message {
  constexpr text operator()() const {
    if constexpr (std::is_void_v<Result>) {
      return "P026 trace: the model returns nothing; return a tensor, a tree of tensors, "
             "pt::output(\"loss\", x), or a std::tuple of outputs";
    } else {
      const text why = why_not_result<Result>();
      if (why.empty()) return {};
      return concat("P026 trace: the model returns ", why);
    }
  }
};
constexpr program not_traced() {
  program p;
  p.error.record("P000", "trace: the model did not compile");
  return p;
}

}  // namespace dsl_detail

/// The name and description of a model's input.
template <Tree Spec>
struct input_spec {
  std::string_view name;
  Spec spec;
};

/// Describes an input that is a tensor: `input<float, 256, 8>("x")`. Dynamic extents follow the
/// name: `input<float, dyn, 8>("x", n)`.
template <ElementType T, std::int64_t... Extents, std::integral... Dynamic>
constexpr auto input(std::string_view name, Dynamic... dynamic) {
  return input_spec<tensor<T, Extents...>>{name, tensor<T, Extents...>(dynamic...)};
}
/// Describes an input that is a tree of static tensors: `input<params>("params")`. Its leaves are
/// named "params.w1" and so on.
template <Tree Spec>
constexpr auto input(std::string_view name) {
  return input_spec<Spec>{name, Spec{}};
}
/// Describes an input that is a tree of unbound tensors, whose number and extents are chosen at run
/// time: `input("params", spec)`.
template <Tree Spec>
constexpr auto input(std::string_view name, const Spec& spec) {
  return input_spec<Spec>{name, spec};
}

/// Reports an input that is not a tree.
///
/// Errors    P024 the type is not a tree
template <class Spec>
requires(!Tree<Spec> && !ElementType<Spec>) constexpr auto input(std::string_view) {
  report_static_error<dsl_detail::input_message<Spec>>();
  return input_spec<invalid_tensor>{};
}

/// A named result, which a model returns alone or in a std::tuple.
template <Tree T>
struct output_spec {
  text name;  // owned, because a model may build the name
  T tree;
};
/// Names a result: `return std::tuple{output("params", p), output("loss", l)}`. An output with the
/// name of an input is that input's next state.
template <class T>
constexpr auto output(std::string_view name, const T& tree) {
  if constexpr (Tree<T>)
    return output_spec<T>{name, tree};
  else
    return dsl_detail::invalid_output<T>{};  // trace reports it
}

namespace dsl_detail {

/// Adds an input to a trace.
///
/// Errors    S116 a dynamic extent is missing, S118 too many elements
constexpr value_id add_input(builder& b, std::string_view path, const tensor_type& type) {
  for (auto e : type.shape)
    if (e < 0)
      b.p.error.record("S116", "trace: input \"", path, "\" has shape ", type.shape,
                       "; give its dynamic extents, all 0 or above");
  if (!type.shape.fits())
    b.p.error.record("S118", "trace: input \"", path, "\": ", too_many_elements(type));
  return ops::parameter(b, path, type);
}
/// Adds an output to a trace.
///
/// Errors    P000 the model did not compile, P006 the value is not of this trace
constexpr void add_output(builder& b, std::string_view path, const builder* of, value_id v) {
  if (v == poisoned)
    b.p.error.record("P000", "trace: the model did not compile");
  else if (of != &b || v >= b.p.value_count())
    b.p.error.record("P006", "trace: output \"", path, "\" is not of this trace");
  else if (!b.failed())
    b.p.outputs.push_back({v, b.p.intern(path)});
}

}  // namespace dsl_detail

namespace separate {
value_id add_input(builder& b, std::string_view path, const tensor_type& type);
void add_output(builder& b, std::string_view path, const builder* of, value_id v);
}  // namespace separate

namespace dsl_detail {

constexpr value_id input(builder& b, std::string_view path, const tensor_type& type) {
  PARTITA_RETURN(add_input(b, path, type), separate::add_input(b, path, type));
}
constexpr void output(builder& b, std::string_view path, const builder* of, value_id v) {
  PARTITA_RETURN(add_output(b, path, of, v), separate::add_output(b, path, of, v));
}

template <class Spec>
constexpr Spec bind(builder& b, const input_spec<Spec>& in) {
  Spec bound = in.spec;
  for_each_leaf(
      [&](auto& leaf, std::string_view path) {
        using leaf_type = std::remove_cvref_t<decltype(leaf)>;
        leaf = leaf_type(&b, input(b, path, leaf.type()));
      },
      text(in.name), bound);
  return bound;
}

template <class Result>
constexpr void add_outputs(builder& b, std::string_view name, const Result& result) {
  for_each_leaf(
      [&](const auto& leaf, std::string_view path) { output(b, path, leaf.context(), leaf.id()); },
      text(name), result);
}

/// Finishes a trace: returns the program without ops that no output needs.
constexpr program traced(builder& b) {
  if (!b.failed()) {
    if (b.any_custom_vjp()) op_detail::drop_custom_vjps(b.p);
    tag_names(b.p).run();
    b.p = ir_detail::tidy(b.p);
  }
  if (!b.failed()) b.p.error.record(check_names(b.p));
  if (!b.failed()) b.p.error.record(check_interface(b.p));
  b.p.error.raise();
  return static_cast<program&&>(b.p);
}

}  // namespace dsl_detail

namespace separate {
program traced(builder& b);
}

namespace dsl_detail {

template <class Model, class... Specs>
constexpr program trace_model(const Model& model, const input_spec<Specs>&... inputs) {
  builder b;
  std::tuple<Specs...> bound{bind(b, inputs)...};
  const auto result = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return model(std::get<I>(bound)...);
  }
  (std::index_sequence_for<Specs...>{});
  using Result = std::remove_cvref_t<decltype(result)>;
  if constexpr (is_output<Result>::value) {
    add_outputs(b, result.name, result.tree);
  } else if constexpr (has_outputs<Result>::value) {
    std::apply([&](const auto&... each) { (add_outputs(b, each.name, each.tree), ...); }, result);
  } else {
    add_outputs(b, "result", result);
  }
  PARTITA_RETURN(traced(b), separate::traced(b));
}

}  // namespace dsl_detail

/// Runs the model once on handles of the inputs and returns the program that it emits, without the
/// ops that no output needs.
///
/// A single tensor becomes the output "result"; the members of a struct become "result.member";
/// `output` sets other names. At run time an error is thrown as `error`; in constant evaluation it
/// is stored in `program::error`.
///
/// Errors    those of the ops (Sxxx), P002 to P009 names and outputs (see verify.hpp), S116 dynamic
///           extent missing, S118 too many elements, P025 the model takes another number of
///           parameters, P026 the result is not a tree
///
/// (The return type is deduced so that the compiler instantiates the model here, where its error
/// messages are easiest to read.)
template <class Model, class... Specs>
constexpr auto trace(const Model& model, const input_spec<Specs>&... inputs) {
  if constexpr ((std::same_as<Specs, invalid_tensor> || ...)) {
    return dsl_detail::not_traced();
  } else if constexpr (!requires(Specs & ... bound) { model(bound...); }) {
    report_static_error<dsl_detail::parameters_message<sizeof...(Specs)>>();
    return dsl_detail::not_traced();
  } else {
    using Result = std::remove_cvref_t<decltype(model(std::declval<Specs&>()...))>;
    if constexpr (report_static_error<dsl_detail::result_message<Result>>())
      return dsl_detail::trace_model(model, inputs...);
    else
      return dsl_detail::not_traced();
  }
}

}  // namespace partita
