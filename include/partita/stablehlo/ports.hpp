/// Reads and writes attributes of arguments and results.
#pragma once

#include <partita/ir/interface_list.hpp>
#include <partita/ir/layout.hpp>
#include <partita/stablehlo/scopes.hpp>

namespace partita::stablehlo_detail {

// ---- Reading ---------------------------------------------------------------------------------

/// Splits `name = value`, `"name" = value`, or a name alone.
struct written_attribute {
  std::string_view name, value;

  constexpr explicit written_attribute(std::string_view part) {
    std::size_t equal = 0;
    for (bool quoted = false; equal < part.size() && (quoted || part[equal] != '='); ++equal)
      if (part[equal] == '"') quoted = !quoted;
    name = trimmed(part.substr(0, equal));
    if (name.size() > 1 && name.front() == '"') name = name.substr(1, name.size() - 2);
    if (equal < part.size()) value = trimmed(part.substr(equal + 1));
  }
  static constexpr std::string_view trimmed(std::string_view s) {
    while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
    while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
    return s;
  }
};
constexpr void append_attribute(text& list, std::string_view attribute) {
  list << (list.empty() ? "" : ", ") << attribute;
}
/// Reads the attributes of an argument or a result, except for its name (`jax.result_info`), its
/// sharding and this library's layout, which other functions read.
///
/// `fault`: the reason why an attribute is not understood.
constexpr interface_port read_port(std::string_view attributes, const alias_table& aliases,
                                   text& fault) {
  interface_port port;
  for (const std::string_view part : parts_of(inside(attributes, '{', '}'))) {
    const written_attribute a(part);
    if (a.name == "jax.result_info" || a.name == "sdy.sharding" || a.name == "mhlo.sharding")
      continue;
    if (a.name == "tf.aliasing_output") {
      std::int64_t result = -1;
      port.donated = read_integer(a.value, result) && result >= 0 && result < INT32_MAX;
      port.alias = port.donated ? static_cast<int>(result) : -1;
      if (!port.donated)
        fault << "tf.aliasing_output = " << a.value << " is not the number of a result";
    } else if (a.name == "jax.buffer_donor") {
      port.donated = port.donated || a.value.empty() || a.value.starts_with("true");
    } else if (a.name == "mhlo.frontend_attributes") {
      for (const std::string_view each : parts_of(inside(a.value, '{', '}'))) {
        const written_attribute inner(each);
        if (inner.name != "partita.layout" && !inner.name.starts_with("xla.sdy."))
          append_attribute(port.frontend, each);
      }
    } else {
      if (a.name == "mhlo.memory_kind") port.memory = text(inside(a.value, '"', '"'));
      const std::string_view meant = aliases.alias_of(a.value);
      if (meant.empty())
        append_attribute(port.attributes, part);
      else
        append_attribute(port.attributes, concat(a.name, " = ", meant).view());
    }
  }
  return port;
}

// ---- Writing ---------------------------------------------------------------------------------

/// Adds the attributes of ports to those that are written: one text for each argument or result.
/// `frontend` has those inside of `mhlo.frontend_attributes`.
struct port_texts {
  vec<text> attributes, frontend;

  constexpr port_texts(const vec<interface_port>& ports, std::size_t count)
      : attributes(count, text()), frontend(count, text()) {
    for (std::size_t i = 0; i < ports.size() && i < count; ++i) {
      attributes[i] = ports[i].attributes;
      frontend[i] = ports[i].frontend;
    }
  }
  constexpr void add(std::size_t i, const text& attribute) {
    append_attribute(attributes[i], attribute.view());
  }
  /// Returns the attributes as written, without the `{...}` around them.
  constexpr vec<text> finish() const {
    vec<text> list;
    for (std::size_t i = 0; i < attributes.size(); ++i) {
      text all;
      if (!frontend[i].empty()) all << "mhlo.frontend_attributes = {" << frontend[i] << '}';
      if (!attributes[i].empty()) append_attribute(all, attributes[i].view());
      list.push_back(all);
    }
    return list;
  }
};
/// Adds the attributes of donated arguments. An argument donates its memory to the result that the
/// module names if both have the same layout (`alike(input, output)`); otherwise to any result that
/// fits.
///
/// Source    JAX: `jax.buffer_donor`, and `tf.aliasing_output` for a known result
template <class Alike>
constexpr void add_donations(port_texts& arguments, const interface_list& of, const Alike& alike) {
  for (std::size_t i = 0; i < of.inputs.size() && i < arguments.attributes.size(); ++i) {
    const interface_port& port = of.inputs[i];
    if (!port.donated) continue;
    if (port.alias >= 0 && alike(static_cast<int>(i), port.alias))
      arguments.add(i, concat("tf.aliasing_output = ", port.alias, " : i32"));
    else
      arguments.add(i, text("jax.buffer_donor = true"));
  }
}

}  // namespace partita::stablehlo_detail
