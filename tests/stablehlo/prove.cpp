// Programs for one device, read from text and proved against their sources: those that JAX's
// shard_map made (shard_map/write.py), and ours, written and read again.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/run/executor.hpp>
#include <partita/run/file/npz.hpp>
#include <partita/run/refute.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../data.hpp"
#include "../random/generator.hpp"
#include "../random/schedule.hpp"

namespace pt = partita;
using data::str;

namespace {

const pt::mesh rows{{"R", 8}}, grid{{"B", 4}, {"M", 2}};

std::string module_text(std::string_view name) {
  return pt::run_detail::read_file(std::string(PARTITA_SOURCE_DIR "/tests/stablehlo/shard_map/") +
                                   std::string(name) + ".mlir");
}
struct pair_of_programs {
  pt::program source;
  pt::device_program local;
};
pair_of_programs read_pair(const std::string& name, const pt::mesh& m,
                           const pt::local_reading& how = {}) {
  pair_of_programs p{pt::read_stablehlo(module_text(name + ".source")),
                     pt::read_local_stablehlo(module_text(name + ".local"), m, how)};
  REQUIRE_MESSAGE(!p.source.error, str(p.source.error.message));
  REQUIRE_MESSAGE(!p.local.local.error, str(p.local.local.error.message));
  return p;
}
std::string wrong(std::string_view local, const pt::mesh& m = grid) {
  return str(pt::read_local_stablehlo(local, m).local.error.message);
}
/// A function of one argument with these lines. The last line defines %r.
std::string function_of(const std::string& lines, const std::string& result = "tensor<4xf32>") {
  return "func.func @main(%arg0: tensor<4xf32>) -> " + result + " {\n" + lines +
         "\n  return %r : " + result + "\n}\n";
}
std::string permute_with(const std::string& pairs) {
  return function_of(
      "  %r = \"stablehlo.collective_permute\"(%arg0) <{source_target_pairs = dense<" + pairs +
      "> : tensor<8x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>");
}

}  // namespace

TEST_CASE("programs written by hand with shard_map are proved") {
  for (const char* name : {"centered", "derivative", "megatron", "nested", "positions"}) {
    const auto p = read_pair(name, grid);
    CHECK_MESSAGE(pt::prove(p.source, p.local).proved, name);
  }
  for (const char* name : {"adam_of_rows", "batch_norm", "bias_in_shares", "bias_of_first",
                           "cross_entropy", "data_parallel", "experts", "in_two_steps", "layers",
                           "sequence", "ulysses", "vocabulary", "zero"}) {
    const auto p = read_pair(name, rows);
    const pt::verdict v = pt::prove(p.source, p.local);
    CHECK_MESSAGE(v.proved, name, ": ", str(v.error.message));
  }
}

TEST_CASE("a ring sums one block per step, in a loop or unrolled") {
  for (bool unroll : {false, true}) {
    const auto p = read_pair("ring", rows, {unroll});
    const pt::verdict v = pt::prove(p.source, p.local);
    CHECK_MESSAGE(v.proved, str(v.error.message));
  }
}

TEST_CASE("a loop of layers with its derivative equals the scan of the source") {
  const auto p = read_pair("layers_of_loss", rows);
  const pt::verdict v = pt::prove(p.source, p.local);
  CHECK_MESSAGE(v.proved, str(v.error.message));
}

TEST_CASE("wrong programs are refuted, with inputs") {
  for (const char* name : {"megatron_unreduced", "megatron_wrong_axis"}) {
    const auto p = read_pair(name, grid);
    CHECK_MESSAGE(pt::prove_or_refute(p.source, p.local).kind == pt::verdict_kind::refuted, name);
  }
  for (const char* name :
       {"batch_norm_of_pieces", "bias_of_each", "cross_entropy_of_pieces", "data_parallel_sum",
        "in_two_steps_that_overlap", "layers_of_loss_sum", "layers_sum", "ring_a_step_short",
        "vocabulary_unmasked", "zero_reduced_twice"})
    for (bool unroll : {false, true}) {
      const auto p = read_pair(name, rows, {unroll});
      CHECK_MESSAGE(pt::prove_or_refute(p.source, p.local).kind == pt::verdict_kind::refuted, name);
    }
}

TEST_CASE("an `and` of 256 flags as integers is too much for elements, and not refuted") {
  const auto p = read_pair("all_finite", rows);
  CHECK(pt::prove_or_refute(p.source, p.local).kind == pt::verdict_kind::not_proved);
}

TEST_CASE("wrong programs without random inputs are not proved") {
  const auto p = read_pair("some_finite", rows);
  CHECK(!pt::prove(p.source, p.local));
}

TEST_CASE("a softmax that is rescaled is proved") {
  for (bool unroll : {false, true}) {
    const auto p = read_pair("ring_online", rows, {unroll});
    const pt::verdict v = pt::prove(p.source, p.local);
    CHECK_MESSAGE(v.proved, str(v.error.message));
  }
}

TEST_CASE("layouts, axes and names are those of the text") {
  const auto p = read_pair("megatron", grid);
  const pt::device_program& d = p.local;
  CHECK(str(pt::concat(d.mesh)) == "{\"B\":4, \"M\":2}");
  const auto shown = [&](const pt::layout& l, int rank) {
    pt::text out;
    pt::print_layout(out, l, rank, d.mesh);
    return str(out);
  };
  CHECK(shown(d.inputs[0], 2) == "[{}, {\"M\"}]");
  CHECK(shown(d.inputs[2], 2) == "[{\"B\"}, {}]");
  CHECK(shown(d.outputs[1], 2) == "[{\"M\"}, {}]");
  const std::string text = str(pt::print(d));
  CHECK(text.find("all_gather") == std::string::npos);
  CHECK(text.find("all_slice") == std::string::npos);
  // The system's mesh may have its axes in another order: that of the module counts.
  const auto turned =
      pt::read_local_stablehlo(module_text("megatron.local"), pt::mesh{{"M", 2}, {"B", 4}});
  REQUIRE(!turned.local.error);
  CHECK(str(pt::print(turned)) == text);
}

TEST_CASE("permutes are read as shifts, rings and mirrors along axes") {
  const auto printed = [](const char* pairs) {
    const auto d = pt::read_local_stablehlo(permute_with(pairs), grid);
    return d.local.error ? str(d.local.error.message) : str(pt::print(d));
  };
  const auto has = [&](const char* pairs, const char* wanted) {
    const std::string text = printed(pairs);
    CHECK_MESSAGE(text.find(wanted) != std::string::npos, text);
  };
  has("[[0, 2], [2, 4], [4, 6], [1, 3], [3, 5], [5, 7]]", "permute {+1} <\"B\">");
  has("[[0, 2], [2, 4], [4, 6], [6, 0], [1, 3], [3, 5], [5, 7], [7, 1]]",
      "permute {+1 around} <\"B\">");
  has("[[0, 6], [2, 0], [4, 2], [6, 4], [1, 7], [3, 1], [5, 3], [7, 5]]",
      "permute {-1 around} <\"B\">");
  has("[[0, 6], [6, 0], [2, 4], [4, 2], [1, 7], [7, 1], [3, 5], [5, 3]]",
      "permute {mirrored} <\"B\">");
  has("[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]",
      "permute {+1 around} <\"B\", \"M\">");
  has("[[0, 2], [2, 0], [4, 6], [6, 4], [1, 3], [3, 1], [5, 7], [7, 5]]",
      "permute {-1 around} <\"B\":(2)2>");
  // For other pairs, each difference of numbers is a ring, and some devices select its result.
  has("[[0, 5], [1, 0]]", "permute {-3 around} <\"B\", \"M\">");
  has("[[0, 1], [2, 1]]",
      "H005 stablehlo: 2:8: stablehlo.collective_permute: two devices send to "
      "device 1");
  has("[[0, 8]]", "source_target_pairs name device 8; the mesh {\"B\":4, \"M\":2} has 8");
}

TEST_CASE("permutes by any pairs: devices that receive nothing have 0") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    data::random r{seed};
    std::string pairs = "[";
    std::vector<int> from(8, -1);
    for (int to = 0; to < 8; ++to)
      if (!r.one_in(3)) {
        from[static_cast<std::size_t>(to)] = static_cast<int>(r.in(0, 7));
        pairs += (pairs == "[" ? "[" : ", [") + std::to_string(from[static_cast<std::size_t>(to)]) +
                 ", " + std::to_string(to) + "]";
      }
    if (pairs == "[") continue;
    // The shards of a value: element k of device d is 4 d + k + 1.
    const std::string text =
        "func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {\n  %r = "
        "sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"B\", \"M\"}]>] "
        "out_shardings=[<@mesh, [{\"B\", \"M\"}]>] manual_axes={\"B\", \"M\"} (%a: tensor<4xf32>) "
        "{\n "
        "%p = \"stablehlo.collective_permute\"(%a) <{source_target_pairs = dense<" +
        pairs +
        "]> : tensor<8x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>\n sdy.return %p : "
        "tensor<4xf32>\n  } : (tensor<32xf32>) -> tensor<32xf32>\n  return %r : "
        "tensor<32xf32>\n}\n";
    const auto d = pt::read_local_stablehlo(text, grid);
    REQUIRE_MESSAGE(!d.local.error, pairs, str(d.local.error.message));
    pt::array x({pt::dtype::f32, {32}});
    for (int i = 0; i < 32; ++i) x.mutable_data<float>()[i] = static_cast<float>(i + 1);
    const pt::array y = pt::emulate(d, std::vector<pt::array>{x})[0];
    for (int i = 0; i < 32; ++i) {
      const int sender = from[static_cast<std::size_t>(i / 4)];
      CHECK(y.data<float>()[i] == (sender < 0 ? 0.f : static_cast<float>(4 * sender + i % 4 + 1)));
    }
  }
}

TEST_CASE("H013 a permute with too many differences") {
  // Device i sends to 2 i + 1: all differences are distinct.
  std::string pairs = "[";
  for (int i = 0; i < 128; ++i)
    pairs += (i > 0 ? ", [" : "[") + std::to_string(i) + ", " + std::to_string(i * 2 + 1) + "]";
  const auto d = pt::read_local_stablehlo(permute_with(pairs + "]"), pt::mesh{{"d", 257}});
  CHECK(str(d.local.error.message) ==
        "H013 stablehlo: 2:8: stablehlo.collective_permute: its 128 pairs have 128 different "
        "distances; up to 64 are supported");
}

TEST_CASE("ragged_all_to_all and collective_broadcast are read") {
  const auto computed = [](const std::string& op, const std::string& type, std::size_t operands) {
    // Operands are sharded along both axes; the op is that of one device.
    std::string given, in, arguments, types;
    const std::string local[] = {"3xf32", "4xf32", "2xi32", "2xi32", "2xi32", "2xi32"};
    const std::string all[] = {"6xf32", "8xf32", "4xi32", "4xi32", "4xi32", "4xi32"};
    for (std::size_t i = 0; i < operands; ++i) {
      const std::string comma = i > 0 ? ", " : "", name = "%" + std::string(1, "xoispr"[i]);
      given += comma + name;
      in += comma + "<@mesh, [{\"d\"}]>";
      arguments += comma + name + "l: tensor<" + local[i] + ">";
      types += comma + name + ": tensor<" + all[i] + ">";
    }
    std::string signature;
    for (std::size_t i = 0; i < operands; ++i)
      signature += (i > 0 ? ", tensor<" : "tensor<") + all[i] + ">";
    return "func.func @main(" + types + ") -> tensor<" + type +
           "> {\n  %z = sdy.manual_computation(" + given + ") in_shardings=[" + in +
           "] out_shardings=[<@mesh, [{\"d\"}]>] manual_axes={\"d\"} (" + arguments + ") {\n" + op +
           "\n  } : (" + signature + ") -> tensor<" + type + ">\n  return %z : tensor<" + type +
           ">\n}\n";
  };
  const auto floats = [](std::vector<float> list) {
    pt::array a({pt::dtype::f32, {static_cast<std::int64_t>(list.size())}});
    std::copy(list.begin(), list.end(), a.mutable_data<float>());
    return a;
  };
  const auto ints = [](std::vector<std::int32_t> list) {
    pt::array a({pt::dtype::i32, {static_cast<std::int64_t>(list.size())}});
    std::copy(list.begin(), list.end(), a.mutable_data<std::int32_t>());
    return a;
  };
  const pt::mesh two{{"d", 2}};
  const auto exchange = pt::read_local_stablehlo(
      computed(
          "%q = stablehlo.custom_call @ragged_all_to_all(%xl, %ol, %il, %sl, %pl, %rl) "
          "{api_version = 4 : i32, backend_config = {channel_id = 1 : i64, replica_groups = "
          "dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<3xf32>, tensor<4xf32>, tensor<2xi32>, "
          "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4xf32>\n sdy.return %q : "
          "tensor<4xf32>",
          "8xf32", 6),
      two);
  REQUIRE_MESSAGE(!exchange.local.error, str(exchange.local.error.message));
  const std::vector<pt::array> given{floats({1, 2, 2, 3, 4, 9}), floats({0, 0, 0, -1, 0, 0, 0, -2}),
                                     ints({0, 1, 0, 1}),         ints({1, 2, 1, 1}),
                                     ints({0, 0, 1, 2}),         ints({1, 1, 2, 1})};
  CHECK(pt::equal(pt::emulate(exchange, given)[0], floats({1, 3, 0, -1, 2, 2, 4, -2})));
  const auto broadcast = pt::read_local_stablehlo(
      computed("%q = \"stablehlo.collective_broadcast\"(%xl) <{replica_groups = dense<[[0, 1]]> : "
               "tensor<1x2xi64>}> : (tensor<3xf32>) -> tensor<3xf32>\n sdy.return %q : "
               "tensor<3xf32>",
               "6xf32", 1),
      two);
  REQUIRE_MESSAGE(!broadcast.local.error, str(broadcast.local.error.message));
  CHECK(pt::equal(pt::emulate(broadcast, std::vector<pt::array>{given[0]})[0],
                  floats({1, 2, 2, 1, 2, 2})));
}

TEST_CASE(
    "collectives of our writer are read: permutes next to gathers of the same numbers, selects") {
  const auto op = [](const std::string& name, const std::string& rest, const std::string& to) {
    return "  %" + name + " = \"stablehlo." + rest + " -> tensor<" + to + ">\n";
  };
  const std::string permute =
      op("p",
         "collective_permute\"(%arg0) <{source_target_pairs = dense<[[0, 1], [2, 3], [4, 5], "
         "[6, 7]]> : tensor<4x2xi64>}> : (tensor<4xf32>)",
         "4xf32");
  const std::string gather =
      op("g",
         "all_gather\"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1], [2, "
         "3], [4, 5], [6, 7]]> : tensor<4x2xi64>}> : (tensor<4xf32>)",
         "8xf32");
  // (The axis of eight has to be split for both.)
  const pt::mesh row{{"R", 8}};
  for (const auto& lines : {permute + gather, gather + permute}) {
    const auto d = pt::read_local_stablehlo(
        "func.func @main(%arg0: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>) {\n" + lines +
            "  return %p, %g : tensor<4xf32>, tensor<8xf32>\n}\n",
        row);
    CHECK_MESSAGE(!d.local.error, str(d.local.error.message));
  }
  for (const char* flag : {"true", "false"}) {
    const auto d = pt::read_local_stablehlo(
        "func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n  %c = stablehlo.constant "
        "dense<" +
            std::string(flag) +
            "> : tensor<i1>\n  %s = stablehlo.constant dense<7.0> : tensor<f32>\n  %b = "
            "stablehlo.broadcast %s, sizes = [4] : (tensor<f32>) -> tensor<4xf32>\n  %r = "
            "stablehlo.select %c, %b, %arg0 : tensor<i1>, tensor<4xf32>\n  return %r : "
            "tensor<4xf32>\n}\n",
        row);
    CHECK_MESSAGE(!d.local.error, str(d.local.error.message));
    CHECK(d.local.output_type(0).shape.rank == 1);
  }
}

// Each device sends to the one that has its number if "B" and the minor half of "M" change places.
TEST_CASE("permutes that reorder parts of axes split the axes") {
  std::string pairs = "[";
  for (int b = 0; b < 2; ++b)
    for (int major = 0; major < 3; ++major)
      for (int minor = 0; minor < 2; ++minor)
        pairs += (pairs == "[" ? "[" : ", [") + std::to_string(b * 6 + major * 2 + minor) + ", " +
                 std::to_string(minor * 6 + major * 2 + b) + "]";
  const auto d = pt::read_local_stablehlo(permute_with(pairs + "]"), pt::mesh{{"B", 2}, {"M", 6}});
  REQUIRE_MESSAGE(!d.local.error, str(d.local.error.message));
  CHECK_MESSAGE(str(pt::print(d)).find("permute <\"B\", \"M\":(3)2> -> <\"M\":(3)2, \"B\">") !=
                    std::string::npos,
                str(pt::print(d)));
}

TEST_CASE("comparisons of the number of a device are decided where all devices agree") {
  const auto decided = [](const char* type, const char* number) {
    const std::string t = std::string("tensor<") + type + ">";
    const auto d = pt::read_local_stablehlo(
        function_of("  %p = stablehlo.partition_id : tensor<ui32>\n"
                    "  %q = stablehlo.convert %p : (tensor<ui32>) -> " +
                        t + "\n  %c = stablehlo.constant dense<" + number + "> : " + t +
                        "\n  %r = stablehlo.compare LT, %q, %c : (" + t + ", " + t +
                        ") -> tensor<i1>",
                    "tensor<i1>"),
        grid);
    REQUIRE_MESSAGE(!d.local.error, str(d.local.error.message));
    return str(pt::print(d)).find("compare") == std::string::npos;
  };
  CHECK(decided("i32", "0"));
  CHECK(decided("i32", "8"));
  CHECK(!decided("i32", "7"));
  CHECK(decided("ui64", "8"));
  CHECK(!decided("ui64", "18446744073709551615"));  // kept as a negative number
}

TEST_CASE("S104 collectives of elements that their combiner does not accept") {
  const auto all_reduced = [](const std::string& of, const std::string& how,
                              const std::string& region) {
    const std::string type = "tensor<4x" + of + ">";
    return "func.func @main(%arg0: " + type + ") -> " + type +
           " {\n  %r = \"stablehlo.all_reduce\"(%arg0) <{replica_groups = dense<[[0, 1], [2, 3], "
           "[4, 5], [6, 7]]> : tensor<4x2xi64>}> ({\n  ^bb0(%a: tensor<" +
           region + ">, %b: tensor<" + region + ">):\n    %s = stablehlo." + how +
           " %a, %b : tensor<" + region + ">\n    stablehlo.return %s : tensor<" + region +
           ">\n  }) : (" + type + ") -> " + type + "\n  return %r : " + type + "\n}\n";
  };
  CHECK(wrong(all_reduced("i1", "or", "i1")) == "");
  CHECK(wrong(all_reduced("f32", "add", "f32")) == "");
  CHECK(wrong(all_reduced("i1", "add", "i1")) == "");  // it is "or"
  CHECK(wrong(all_reduced("f32", "or", "i1")) ==
        "S104 all_reduce: element type f32 is neither i1 nor an integer type (stablehlo.all_reduce "
        "at 2:8)");
  CHECK(wrong(all_reduced("i1", "add", "f32")) ==
        "S104 all_reduce: element type i1 is not a number (stablehlo.all_reduce at 2:8)");
  CHECK(wrong(all_reduced("f32", "or", "f32")).starts_with("S120 or: element type f32"));
}
TEST_CASE("errors in a program for one device have a place") {
  const auto reduced = [](const char* groups) {
    return function_of(
        std::string("  %r = \"stablehlo.all_reduce\"(%arg0) <{replica_groups = ") + groups +
        "}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n    %s = stablehlo.add %a, "
        "%b : tensor<f32>\n    stablehlo.return %s : tensor<f32>\n  }) : "
        "(tensor<4xf32>) -> tensor<4xf32>");
  };
  CHECK(wrong(reduced("dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>")).empty());
  CHECK(wrong(reduced("dense<[[1, 0], [3, 2], [5, 4], [6, 7]]> : tensor<4x2xi64>")).empty());
  CHECK(
      wrong(reduced("dense<[[0, 3], [1, 2], [4, 5], [6, 7]]> : tensor<4x2xi64>")) ==
      "H013 stablehlo: 2:8: stablehlo.all_reduce: replica_groups = dense<[[0, 3], [1, 2], [4, 5], "
      "[6, 7]]> : tensor<4x2xi64> are not groups along axes of the mesh {\"B\":4, \"M\":2}, or "
      "parts of "
      "them");
  CHECK(wrong(reduced("dense<[[0, 1]]> : tensor<1x2xi64>")).starts_with("H013"));
  CHECK(wrong(reduced("@groups")).starts_with("H005"));
  // Without a mesh it is not a program for one device.
  CHECK(str(pt::read_stablehlo(reduced("dense<[[0, 1]]> : tensor<1x2xi64>")).error.message)
            .starts_with("H013 stablehlo: 2:8: stablehlo.all_reduce: it occurs only in partitioned "
                         "programs"));
  CHECK(wrong("sdy.mesh @mesh = <[\"R\"=8]>\n" +
              function_of("  %r = stablehlo.add %arg0, %arg0 : tensor<4xf32>")) ==
        "H013 stablehlo: 1:9: the mesh of the module is {\"R\":8}; that of the system is {\"B\":4, "
        "\"M\":2}");
  CHECK(wrong(function_of("  %r = stablehlo.add %arg0, %arg0 : tensor<4xf32>"),
              pt::mesh{{"B", std::int64_t{1} << 21}})
            .starts_with("H011"));
}

TEST_CASE("a written program for one device reads back as the same function") {
  int read = 0, proved = 0, parts = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const random_test::test_case c = random_test::generator(seed).make();
    if (c.mesh.rank == 0) continue;
    data::random r{seed * 171 + 3};
    const auto schedule = random_test::draw_schedule(c, r);
    pt::partitioned made;
    try {
      made = pt::partition(c.p, c.mesh, schedule, {.passes = random_test::some_passes(c, r)});
    } catch (const pt::error&) {
      continue;
    }
    const pt::device_program& d = made.device;
    const pt::text text = pt::write_stablehlo(d);
    REQUIRE_MESSAGE(!text.view().starts_with("error"), "seed ", seed, ": ", str(text));
    pt::device_program back = pt::read_local_stablehlo(text, d.mesh.whole());
    CHECK_MESSAGE(!back.local.error, "seed ", seed, ": ", str(back.local.error.message), "\n",
                  str(text));
    if (back.local.error) continue;
    ++read;
    parts += d.mesh.rank != d.mesh.whole_rank() ? 1 : 0;
    if (back.mesh.rank == d.mesh.rank) {  // otherwise it is split at fewer places
      for (std::size_t i = 0; i < d.inputs.size(); ++i) CHECK(back.inputs[i] == d.inputs[i]);
      for (std::size_t i = 0; i < d.outputs.size(); ++i) CHECK(back.outputs[i] == d.outputs[i]);
    }
    back.input_types = d.input_types;  // (for padded values the text has the blocks)
    back.output_types = d.output_types;
    proved += pt::prove(made.source, back).proved ? 1 : 0;
    const auto inputs = pt::inputs_of_seed(made.source, seed);
    const auto expected = pt::emulate(d, inputs), got = pt::emulate(back, inputs);
    for (int i = 0; i < expected.size(); ++i)
      CHECK_MESSAGE(pt::equal(expected[i], got[i]), "seed ", seed, ": output ", i, "\n",
                    str(pt::print(d)), "\n", str(pt::print(back)));
  }
  CHECK(read > 200);
  CHECK(proved > 200);
  CHECK(parts > 0);
  MESSAGE(proved, " of ", read, " are proved; ", parts, " have parts of axes");
}
