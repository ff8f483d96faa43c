/// Shardings in a module, of Shardy and of GSPMD, as parts of axes of a mesh.
#pragma once

#include <string_view>

#include <partita/ir/mesh.hpp>
#include <partita/stablehlo/attributes.hpp>

namespace partita {

/// A part of a mesh axis, by name. If a sharding names no axes, a digit of the device numbers
/// instead: `size` values with a distance of `stride`.
struct sharding_part {
  text axis;
  std::int64_t pre = 1;
  std::int64_t size = 0;    ///< of an axis; 0: the full axis
  std::int64_t stride = 0;  ///< of a digit; 0 for an axis
};

/// The requested layout of a value.
struct value_sharding {
  enum kind_type : std::uint8_t { input, output, tag };
  struct dimension {
    vec<sharding_part> parts;  ///< major to minor
    bool open = false;         ///< true if propagation may shard it further
    std::int64_t priority = 0;
  };
  kind_type kind = input;
  int number = -1;  ///< of an input or output
  text name;        ///< of a tag; also used for its copies, which have the suffix `.again`
  text written;     ///< the text in the module
  vec<dimension> dims;
  vec<sharding_part> replicated;
};

/// All shardings of a module, and the meshes that it names.
struct sharding_list {
  struct named_mesh {
    text name;
    partita::mesh mesh;
  };
  vec<named_mesh> meshes;
  vec<value_sharding> values;
  text mesh_used;            ///< the first mesh that a sharding names
  std::int64_t devices = 0;  ///< the number of devices of shardings without a mesh
};

namespace stablehlo_detail {

/// Reads shardings. After an error, `fault` describes it and the results are invalid.
class sharding_reader {
 public:
  constexpr explicit sharding_reader(sharding_list& to) : to_(to) {}

  text fault;

  /// Reads `<["x"=4, "y"=2]>`, optionally with `device_ids=[...]`.
  constexpr void add_mesh(std::string_view name, std::string_view value) {
    sharding_list::named_mesh m{name, mesh_of(value)};
    if (fault.empty()) to_.meshes.push_back(m);
  }
  /// Reads `#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}>`.
  constexpr void shardy(std::string_view value, int rank, value_sharding& s) {
    const vec<std::string_view> all = parts_of(inside(value, '<', '>'));
    if (all.size() < 2 || !all[1].starts_with("[")) return refuse("a mesh and a list are expected");
    if (!all[0].starts_with("@"))
      return refuse("its mesh has no name; give it one, sdy.mesh @mesh");
    use_mesh(all[0].substr(1));
    const vec<std::string_view> dims = parts_of(inside(all[1], '[', ']'));
    if (static_cast<int>(dims.size()) != rank)
      return wrong_rank(static_cast<int>(dims.size()), rank);
    for (std::string_view each : dims) s.dims.push_back(dimension_of(each));
    for (std::size_t i = 2; i < all.size(); ++i) {
      const vec<std::string_view> axes = parts_of(inside(all[i], '{', '}'));
      if (all[i].starts_with("replicated"))
        for (auto a : axes) s.replicated.push_back(part_of(a));
      else if (!axes.empty())
        return refuse(concat(all[i].substr(0, all[i].find('=')),
                             " axes are not supported; sum the value before it is placed"));
    }
  }
  /// Reads `{devices=[4,1,2]<=[8] last_tile_dim_replicate}` or `{replicated}`.
  constexpr void gspmd(std::string_view value, int rank, value_sharding& s) {
    std::string_view all = inside(value, '{', '}');
    const std::size_t metadata = all.find("metadata=");
    all = all.substr(0, metadata);
    s.dims.resize(static_cast<std::size_t>(rank), {});
    if (all.starts_with("replicated")) return;
    if (!all.starts_with("devices=[")) return refuse("only replicated and devices= are supported");
    vec<std::int64_t> tiles;
    std::size_t at = numbers(all, 8, tiles);
    std::int64_t count = 1, pieces = 1;
    for (std::int64_t n : tiles) {
      if (n < 1 || count > max_devices / n) return refuse("numbers of shards are expected");
      count *= n;
    }
    vec<digits> order;
    if (all.substr(at).starts_with("<=[")) {
      at = iota_order(all, at + 2, count, order);
    } else {
      vec<std::int64_t> ids;
      const std::size_t end = all.find_first_not_of("0123456789, ", at);
      for (std::string_view each : parts_of(all.substr(at, end - at))) {
        std::int64_t id = 0;
        if (!read_integer(each, id)) return refuse("numbers of devices are expected");
        ids.push_back(id);
      }
      at = end == std::string_view::npos ? all.size() : end;
      listed_order(ids, count, order);
    }
    if (!fault.empty()) return;
    std::string_view rest = all.substr(at);
    while (rest.starts_with(" ")) rest.remove_prefix(1);
    std::size_t repeated = 0;
    if (rest.starts_with("last_tile_dim_replicate")) {
      repeated = 1;
    } else if (rest.starts_with("last_tile_dims=")) {
      for (std::string_view each : parts_of(inside(rest, '{', '}'))) {
        if (each != "replicated") return refuse(concat("\"", each, "\" is not supported"));
        ++repeated;
      }
    } else if (!rest.empty()) {
      return refuse(concat("\"", rest, "\" is not supported"));
    }
    if (tiles.size() != static_cast<std::size_t>(rank) + repeated)
      return wrong_rank(static_cast<int>(tiles.size() - (repeated < tiles.size() ? repeated : 0)),
                        rank);
    if (to_.devices != 0 && to_.devices != count)
      return refuse(concat("it is for ", count, " devices; others are for ", to_.devices));
    to_.devices = count;
    // Each dimension, from the most minor one on, takes the digits that it needs.
    for (std::size_t d = tiles.size(); d-- > 0;) {
      pieces = tiles[d];
      vec<sharding_part> taken;
      while (pieces > 1 && !order.empty()) {
        digits& last = order.back();
        std::int64_t size = last.size;
        if (pieces % size != 0) {
          if (size % pieces != 0) return refuse("the order of its devices is not one of axes");
          size = pieces;
        }
        taken.push_back({{}, 1, size, last.stride});
        pieces /= size;
        last.stride *= size;
        last.size /= size;
        if (last.size == 1) order.pop_back();
      }
      if (d >= static_cast<std::size_t>(rank)) continue;
      for (std::size_t i = taken.size(); i-- > 0;) s.dims[d].parts.push_back(taken[i]);
    }
  }

 private:
  struct digits {
    std::int64_t stride = 1, size = 1;
  };
  sharding_list& to_;

  constexpr void refuse(const text& why) {
    if (fault.empty()) fault = why;
  }
  constexpr void wrong_rank(int given, int rank) {
    refuse(concat("it has ", given, " dimensions; the value has ", rank));
  }
  constexpr mesh mesh_of(std::string_view value) {
    mesh m;
    const vec<std::string_view> all = parts_of(inside(value, '<', '>'));
    if (all.empty()) return m;
    for (std::string_view each : parts_of(inside(all[0], '[', ']'))) {
      const std::size_t equal = each.rfind('=');
      std::int64_t size = 0;
      if (all[0].starts_with("device_ids") || equal == std::string_view::npos ||
          !read_integer(each.substr(equal + 1), size)) {
        refuse("a mesh of axes and sizes, \"x\"=4, is expected");
        return m;
      }
      m.push_back({inside(each.substr(0, equal), '"', '"'), size});
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
      std::int64_t next = 0, id = 0;
      for (std::string_view each : parts_of(inside(all[i], '[', ']')))
        if (!read_integer(each, id) || id != next++)
          refuse("its devices are not in the order of their numbers");
    }
    if (const failure f = validate(m)) refuse(f.message);
    return m;
  }
  constexpr void use_mesh(std::string_view name) {
    if (!name.empty() && name[0] == '"') name = inside(name, '"', '"');
    const mesh* used = find(to_.mesh_used.view());
    const mesh* m = find(name);
    if (m == nullptr) return refuse(concat("unknown mesh @", name));
    if (m->rank == 0) return;
    if (used == nullptr)
      to_.mesh_used = name;
    else if (concat(*used) != concat(*m))
      refuse(concat("it is for mesh @", name, ", others are for mesh @", to_.mesh_used));
  }
  constexpr const mesh* find(std::string_view name) const {
    for (const auto& m : to_.meshes)
      if (m.name == name) return &m.mesh;
    return nullptr;
  }
  /// Reads `{"x", "y":(1)2, ?}p1`.
  constexpr value_sharding::dimension dimension_of(std::string_view value) {
    value_sharding::dimension d;
    for (std::string_view each : parts_of(inside(value, '{', '}')))
      if (each == "?")
        d.open = true;
      else
        d.parts.push_back(part_of(each));
    const std::string_view behind = value.substr(value.rfind('}') + 1);
    if (behind.starts_with("p") && !read_integer(behind.substr(1), d.priority))
      refuse(concat("\"", behind, "\" is not a priority"));
    return d;
  }
  /// Reads `"x"` or `"x":(1)2`.
  constexpr sharding_part part_of(std::string_view value) {
    sharding_part p;
    p.axis = inside(value, '"', '"');
    const std::string_view behind = value.substr(value.rfind('"') + 1);
    const mesh* m = find(to_.mesh_used.view());
    if (value.empty() || value[0] != '"' || m == nullptr || m->find(p.axis) < 0)
      refuse(concat(value, " is not an axis of its mesh"));
    if (behind.empty()) return p;
    const std::size_t close = behind.find(')');
    if (!behind.starts_with(":(") || close == std::string_view::npos ||
        !read_integer(behind.substr(2, close - 2), p.pre) ||
        !read_integer(behind.substr(close + 1), p.size) || p.pre < 1 || p.size < 1)
      refuse(concat(value, " is not a part of an axis"));
    return p;
  }
  /// Reads `[4,1,2]` at the first bracket from `at` on; returns the position after it.
  static constexpr std::size_t numbers(std::string_view all, std::size_t at, vec<std::int64_t>& out,
                                       char open = '[', char close = ']') {
    const std::size_t begin = all.find(open, at), end = all.find(close, at);
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
      return all.size();
    for (std::string_view each : parts_of(all.substr(begin + 1, end - begin - 1))) {
      std::int64_t n = 0;
      out.push_back(read_integer(each, n) ? n : -1);
    }
    return end + 1;
  }
  /// Reads `[4,2]T(1,0)`: the device numbers in order, as an array of these extents, transposed.
  constexpr std::size_t iota_order(std::string_view all, std::size_t at, std::int64_t count,
                                   vec<digits>& order) {
    vec<std::int64_t> extents, turned;
    at = numbers(all, at, extents);
    if (all.substr(at).starts_with("T("))
      at = numbers(all, at, turned, '(', ')');
    else
      for (std::size_t i = 0; i < extents.size(); ++i)
        turned.push_back(static_cast<std::int64_t>(i));
    vec<digits> plain(extents.size(), digits{});
    std::int64_t stride = 1;
    bool fits = turned.size() == extents.size();
    for (std::size_t i = extents.size(); i-- > 0 && fits;) {
      fits = extents[i] > 0 && stride <= max_devices / extents[i];
      if (!fits) break;
      plain[i] = {stride, extents[i]};
      stride *= extents[i];
    }
    vec<char> seen(extents.size(), 0);
    for (std::size_t i = 0; i < turned.size() && fits; ++i) {
      fits = turned[i] >= 0 && turned[i] < static_cast<std::int64_t>(extents.size()) &&
             seen[static_cast<std::size_t>(turned[i])]++ == 0;
      if (fits && plain[static_cast<std::size_t>(turned[i])].size > 1)
        order.push_back(plain[static_cast<std::size_t>(turned[i])]);
    }
    if (!fits || stride != count)
      refuse(concat("its devices are not ", count, ", one for each shard"));
    return at;
  }
  /// The same for a list of device numbers, if they are in such an order.
  constexpr void listed_order(const vec<std::int64_t>& ids, std::int64_t count,
                              vec<digits>& order) {
    const auto n = static_cast<std::int64_t>(ids.size());
    if (n != count) return refuse(concat("it lists ", n, " devices; it has ", count, " shards"));
    const auto id = [&](std::int64_t i) { return ids[static_cast<std::size_t>(i)]; };
    vec<digits> minor_first;
    for (std::int64_t run = 1; run < n;) {
      const std::int64_t stride = id(run);
      std::int64_t size = 1;
      while (run * size < n && id(run * size) == stride * size) ++size;
      while (size > 1 && (n / run) % size != 0) --size;
      if (size == 1 || n % run != 0) return refuse("the order of its devices is not one of axes");
      minor_first.push_back({stride, size});
      run *= size;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t rest = i, expected = 0;
      for (const auto& d : minor_first) {
        expected += rest % d.size * d.stride;
        rest /= d.size;
      }
      if (expected != id(i)) return refuse("the order of its devices is not one of axes");
    }
    // (Each number occurs once, so the digits are those of all numbers.)
    vec<char> seen(ids.size(), 0);
    for (std::int64_t each : ids)
      if (each < 0 || each >= n || seen[static_cast<std::size_t>(each)]++ != 0)
        return refuse("it lists a device twice, or a device number that is too large");
    for (std::size_t i = minor_first.size(); i-- > 0;) order.push_back(minor_first[i]);
  }
};

}  // namespace stablehlo_detail

}  // namespace partita
