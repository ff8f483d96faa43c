/// Collects the shardings of a module's values.
#pragma once

#include <string_view>

#include <partita/op/identity.hpp>
#include <partita/stablehlo/scopes.hpp>
#include <partita/stablehlo/shardings.hpp>
#include <partita/support/place_table.hpp>

namespace partita::stablehlo_detail {

/// A sharding as written.
struct written_sharding {
  std::size_t at = 0;
  std::string_view text;
  std::string_view open_dims;  ///< `0, 1` of `unspecified_dims=[0, 1]`
};

/// Returns the value of a sharding among attributes, `{a = 1, sdy.sharding = ...}`.
constexpr std::string_view sharding_in(std::string_view attributes) {
  for (std::string_view name : {"sdy.sharding", "mhlo.sharding"})
    for (std::string_view part : parts_of(inside(attributes, '{', '}'))) {
      if (part.starts_with('"')) part.remove_prefix(1);
      if (!part.starts_with(name)) continue;
      const std::size_t equal = part.find('=');
      if (equal == std::string_view::npos) continue;
      part.remove_prefix(equal + 1);
      while (!part.empty() && is_space(part.front())) part.remove_prefix(1);
      return part;
    }
  return {};
}

/// Collects the shardings of a module while it is read, if requested.
class sharding_collector {
 public:
  constexpr sharding_collector(syntax& in, const alias_table& aliases, sharding_list* to)
      : in_(in), aliases_(aliases), to_(to) {}

  constexpr bool wanted() const { return to_ != nullptr && !paused_; }
  /// While paused, nothing is collected.
  constexpr void pause(bool paused) { paused_ = paused; }
  constexpr void add_mesh(std::size_t at, std::string_view name, std::string_view value) {
    if (in_.failed() || !wanted()) return;
    sharding_reader r(*to_);
    r.add_mesh(name, value);
    if (!r.fault.empty()) in_.fail(at, "H014", "mesh @", name, ": ", r.fault);
  }
  /// Adds the sharding of an argument or a result of the program; false if it has none.
  constexpr bool add(std::size_t at, std::string_view attributes, const tensor_type& type,
                     value_sharding::kind_type kind, int number) {
    if (!wanted() || in_.failed()) return false;
    const std::string_view written = sharding_in(attributes);
    if (written.empty()) return false;
    value_sharding s = read(at, written, type);
    s.kind = kind;
    s.number = number;
    if (!in_.failed()) to_->values.push_back(s);
    return true;
  }
  /// Adds the shardings of all results. A result that is also another value becomes a separate
  /// value.
  constexpr void add_results(builder& b, std::size_t at, const vec<std::string_view>& attributes,
                             vec<value_id>& results) {
    if (!wanted() || in_.failed()) return;
    vec<char> taken(b.p.types.size() + results.size(), 0);
    for (value_id v : b.p.inputs) taken[v] = 1;
    for (op_id o = 0; o < b.p.op_count(); ++o)
      if (b.p.is(o, op_role::tag)) taken[b.p.op(o).result] = 1;
    for (std::size_t i = 0; i < results.size() && i < attributes.size(); ++i) {
      const tensor_type type = b.type(results[i]);
      if (!add(at, attributes[i], type, value_sharding::output, static_cast<int>(i))) continue;
      if (taken[results[i]] != 0) results[i] = ops::tag(b, new_tag("sharded_result"), results[i]);
      taken[results[i]] = 1;
    }
  }
  /// Adds a tag for the value, with this sharding.
  constexpr value_id tagged(builder& b, const written_sharding& w, std::string_view name,
                            value_id v) {
    value_sharding s = read(w.at, w.text, b.type(v));
    if (in_.failed()) return v;
    for (std::string_view d : parts_of(w.open_dims)) {
      std::int64_t dim = -1;
      if (read_integer(d, dim) && dim >= 0 && dim < static_cast<std::int64_t>(s.dims.size()))
        s.dims[static_cast<std::size_t>(dim)].open = true;
    }
    s.kind = value_sharding::tag;
    s.name = new_tag(name);
    to_->values.push_back(s);
    return ops::tag(b, s.name, v);
  }
  /// Returns the sharding of an op's result: a constraint, `@Sharding`, or any op with such an
  /// attribute.
  constexpr written_sharding of_op(const op_text& o, std::string_view name, std::size_t results) {
    written_sharding w{o.at, o.attribute("sdy.sharding"), {}};
    if (w.text.empty()) w.text = o.attribute("mhlo.sharding");
    if (w.text.empty() && name == "sharding_constraint")
      w.text = o.has("<>") ? o.attribute("<>") : o.attribute("sharding");
    const std::string_view open = o.attribute("backend_config");
    if (open.find("unspecified_dims") != std::string_view::npos)
      w.open_dims = inside(open, '[', ']');
    if (o.attribute("mhlo.frontend_attributes").find("xla.sdy.sharding") != std::string_view::npos)
      in_.fail(o.at, "H014",
               "a sharding among frontend attributes is not supported; give the module before it "
               "is exported");
    if (!w.text.empty() && results != 1)
      in_.fail(o.at, "H014", "shardings of an op with ", results,
               " results are not supported; constrain each result");
    return w;
  }

 private:
  struct tag_name {
    text name;
    int copies = 0;
  };
  syntax& in_;
  const alias_table& aliases_;
  sharding_list* to_;
  bool paused_ = false;
  vec<tag_name> tags_;
  place_table places_;

  constexpr value_sharding read(std::size_t at, std::string_view written, const tensor_type& type) {
    value_sharding s;
    s.written = written;
    for (int steps = 0; steps < 8 && written.starts_with("#") && !written.starts_with("#sdy.");
         ++steps)
      written = aliases_.alias_of(written);
    if (written.starts_with("#sdy.sharding_per_value")) {
      const vec<std::string_view> all = parts_of(inside(written, '[', ']'));
      written = all.size() == 1 ? all[0] : std::string_view();
    }
    sharding_reader r(*to_);
    if (written.starts_with("\""))
      r.gspmd(written, type.shape.rank, s);
    else if (written.empty())
      r.fault = "one sharding is expected";
    else
      r.shardy(written, type.shape.rank, s);
    if (!r.fault.empty())
      in_.fail(at, "H014", "sharding ", s.written.view().substr(0, 200), ": ", r.fault);
    return s;
  }
  /// Returns an unused name for a tag.
  constexpr text new_tag(std::string_view wanted) {
    const auto find = [&](std::string_view name) {
      return places_.find(hash_of(name), [&](int i) { return tags_[i].name.view() == name; });
    };
    const int first = find(wanted);
    text name = wanted;
    while (find(name.view()) >= 0) name = concat(wanted, '.', ++tags_[first].copies);
    tags_.push_back({name, 0});
    places_.insert(static_cast<int>(tags_.size()) - 1,
                   [&](int i) { return hash_of(tags_[i].name.view()); });
    return name;
  }
};

}  // namespace partita::stablehlo_detail
