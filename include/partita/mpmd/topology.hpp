/// Topologies: the meshes of an MPMD program.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <partita/cost/device.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/support/error.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

/// The maximum number of meshes, and the maximum length of their names.
inline constexpr int max_meshes = 64;
inline constexpr int max_mesh_name = 31;

/// Some meshes of a topology, by number.
struct mesh_set {
  std::uint64_t bits = 0;

  static constexpr mesh_set of(int mesh) { return {std::uint64_t{1} << mesh}; }
  static constexpr mesh_set first(int count) {
    return {count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1};
  }
  constexpr bool empty() const { return bits == 0; }
  constexpr bool has(int mesh) const { return (bits >> mesh & 1) != 0; }
  constexpr int count() const { return std::popcount(bits); }
  /// The mesh with the lowest number, or -1.
  constexpr int front() const { return bits == 0 ? -1 : std::countr_zero(bits); }
  /// True if all meshes of this set are in another set.
  constexpr bool within(mesh_set all) const { return (bits & ~all.bits) == 0; }
  constexpr mesh_set without(mesh_set other) const { return {bits & ~other.bits}; }
  constexpr mesh_set& operator|=(mesh_set other) {
    bits |= other.bits;
    return *this;
  }
  constexpr mesh_set& operator&=(mesh_set other) {
    bits &= other.bits;
    return *this;
  }
  friend constexpr mesh_set operator|(mesh_set a, mesh_set b) { return {a.bits | b.bits}; }
  friend constexpr mesh_set operator&(mesh_set a, mesh_set b) { return {a.bits & b.bits}; }
  friend constexpr bool operator==(mesh_set, mesh_set) = default;
};

/// A mesh of a topology: `{"m0", {{"B", 4}, {"M", 2}}}`, optionally with the kind of its devices.
struct named_mesh {
  char chars[max_mesh_name + 1] = {};
  int length = 0;  ///< of the name that was passed; above max_mesh_name is refused by validate()
  partita::mesh mesh;
  bool has_device = false;
  partita::device device;

  constexpr named_mesh() = default;
  constexpr named_mesh(std::string_view name, const partita::mesh& m)
      : length(static_cast<int>(name.size())), mesh(m) {
    for (int i = 0; i < length && i < max_mesh_name; ++i)
      chars[i] = name[static_cast<std::size_t>(i)];
  }
  constexpr named_mesh(std::string_view name, const partita::mesh& m, const partita::device& d)
      : named_mesh(name, m) {
    has_device = true;
    device = d;
  }
  constexpr std::string_view name() const {
    return {chars, static_cast<std::size_t>(length < max_mesh_name ? length : max_mesh_name)};
  }
};

/// Named meshes, of equal or different shapes and kinds of devices: `topology{{"m0", {{"B", 4},
/// {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}}`. They share no devices. Axes are identified by name:
/// an axis that a mesh lacks has size 1 there.
///
/// Mistakes are reported when the topology is used; see validate().
class topology {
 public:
  constexpr topology() = default;
  constexpr topology(std::initializer_list<named_mesh> list) {
    for (const auto& m : list) push_back(m);
  }
  constexpr void push_back(const named_mesh& m) {
    if (count_ < max_meshes) meshes_[count_] = m;
    ++count_;
  }
  constexpr int count() const { return count_ < max_meshes ? count_ : max_meshes; }
  /// The number of meshes that were passed; more than max_meshes is an error.
  constexpr int given() const { return count_; }
  constexpr const named_mesh& operator[](int i) const { return meshes_[i]; }
  constexpr const mesh& mesh_of(int i) const { return meshes_[i].mesh; }
  constexpr std::string_view name(int i) const { return meshes_[i].name(); }
  constexpr mesh_set all() const { return mesh_set::first(count()); }
  /// The number of the mesh with this name, or -1.
  constexpr int find(std::string_view wanted) const {
    for (int i = 0; i < count(); ++i)
      if (same_chars(name(i), wanted)) return i;
    return -1;
  }
  constexpr vec<std::string_view> names() const {
    vec<std::string_view> out;
    for (int i = 0; i < count(); ++i) out.push_back(name(i));
    return out;
  }

 private:
  named_mesh meshes_[max_meshes] = {};
  int count_ = 0;
};

/// Prints `{"m0": {"B":4, "M":2}, "m1": {"B":2, "M":2}}`.
constexpr text& operator<<(text& out, const topology& t) {
  out << '{';
  append_list(out, t.count(), [&](int i) {
    print_quoted(out, t.name(i));
    out << ": " << t.mesh_of(i);
  });
  return out << '}';
}
/// The names of a set of meshes: `{"m0", "m1"}`.
constexpr text mesh_names(const topology& t, mesh_set which) {
  text out = "{";
  for (int i = 0; i < t.count(); ++i) {
    if (!which.has(i)) continue;
    if (out.size() > 1) out << ", ";
    print_quoted(out, t.name(i));
  }
  out << '}';
  return out;
}

/// Errors    O101 no mesh, or too many; O102 a mesh's name; O103 two meshes with one name; O104 too
///           many different axes; and those of meshes (M001 to M005)
constexpr failure validate(const topology& t) {
  failure f;
  if (t.given() == 0 || t.given() > max_meshes)
    f.record("O101", "topology: it has ", t.given(), " meshes; 1 to ", max_meshes, " are allowed");
  vec<std::string_view> axes;
  for (int i = 0; i < t.count() && !f; ++i) {
    const std::string_view name = t.name(i);
    if (t[i].length == 0 || t[i].length > max_mesh_name)
      f.record("O102", "topology: the name of mesh ", i, " has ", t[i].length, " characters; 1 to ",
               max_mesh_name, " are allowed");
    for (int j = 0; j < i; ++j)
      if (t.name(j) == name) f.record("O103", "topology: two meshes are named \"", name, '"');
    if (const failure m = validate(t.mesh_of(i)); m)
      f.set(concat(m.message, " (mesh \"", name, "\")"));
    for (std::string_view axis : t.mesh_of(i).names()) {
      bool known = false;
      for (std::string_view each : axes) known = known || each == axis;
      if (!known) axes.push_back(axis);
    }
  }
  if (axes.size() > max_axes)
    f.record("O104", "topology: its meshes have ", axes.size(), " different axes; at most ",
             max_axes, " are supported");
  return f;
}

}  // namespace partita
