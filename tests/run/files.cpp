// `load` and `save`: .npy, .npz and safetensors files, valid and invalid.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/files.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

namespace {

struct layer {
  BOOST_HANA_DEFINE_STRUCT(layer, (pt::tensor<float, 4, 3>, up), (pt::tensor<pt::bf16, 3>, bias));
};
struct net {
  BOOST_HANA_DEFINE_STRUCT(net, (std::vector<layer>, layers), (pt::tensor<pt::f16>, scale));
};
net two_layers() {
  net n;
  n.layers.resize(2);
  return n;
}

pt::array filled(const pt::tensor_type& type, unsigned seed) {
  std::mt19937 random(seed);
  pt::array a(type);
  for (std::int64_t i = 0; i < type.bytes(); ++i)
    a.mutable_bytes()[i] =
        static_cast<std::byte>(random() % (type.element == pt::dtype::boolean ? 2 : 256));
  return a;
}
/// True if both arrays have the same bits, including those of NaN.
bool same(const pt::array& a, const pt::array& b) {
  return a.type() == b.type() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.type().bytes())) == 0;
}
bool same(const pt::results& a, const pt::results& b) {
  bool all = a.names() == b.names();
  for (int i = 0; all && i < a.size(); ++i) all = same(a[i], b[i]);
  return all;
}

/// A file that the destructor removes.
struct temporary {
  std::string path;
  explicit temporary(const std::string& name) : path("files_test_" + name) {}
  ~temporary() { std::remove(path.c_str()); }
  const std::string& of(std::string_view bytes) const {
    pt::run_detail::write_file(path, bytes);
    return path;
  }
};
template <class F>
std::string thrown(const F& f) {
  try {
    f();
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}

/// Returns a safetensors file of any header with this number of bytes.
std::string safetensors(std::string_view header, std::size_t data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + std::string(header) + std::string(data, '\1');
}
std::string why(std::string_view header, std::size_t data) {
  const temporary file("wrong.safetensors");
  return thrown([&] { pt::load(file.of(safetensors(header, data))); });
}

}  // namespace

TEST_CASE("arrays of all types load as they were saved") {
  std::vector<pt::named_array> list;
  for (int t = 0; t < pt::dtype_count; ++t)
    list.push_back({"a." + std::to_string(t), filled({static_cast<pt::dtype>(t), {2, 3}}, 7u + t)});
  list.push_back({"scalar", pt::array(2.5f)});
  list.push_back({"empty", pt::array({pt::dtype::i16, {0, 4}})});
  list.push_back({"a\n\"b\\ \xc3\xa9", pt::array(true)});
  for (const char* name : {"all.npz", "all.safetensors"}) {
    const temporary file(name);
    pt::save(file.path, list);
    const pt::results back = pt::load(file.path);
    REQUIRE(back.size() == static_cast<int>(list.size()));
    for (const auto& each : list) CHECK(same(back[each.name], each.value));
    CHECK(back.names()[0] == "a.0");  // in their order
  }
  const temporary one("one.npy");
  pt::save(one.path, {list[2]});
  CHECK(same(pt::load(one.path).only(), list[2].value));
  CHECK(same(pt::load(one.path, pt::input<pt::bf16, 2, 3>("w")).only(), list[2].value));
}

TEST_CASE("parameters and the state of an optimizer are saved and loaded") {
  const net spec = two_layers();
  const auto params = pt::input("params", spec);
  const auto opt = pt::input("opt", pt::adam_state_for(spec));
  const auto step = pt::trace(
      [](auto p, auto s, auto x) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& q) {
              auto h = x;
              for (const auto& l : q.layers) {
                auto y = matmul(h, l.up) + pt::convert<float>(l.bias);
                h = concatenate<1>(y, pt::slice<1, 0, 1>(y)) * pt::convert<float>(q.scale);
              }
              return mean(h * h);
            },
            p);
        const auto [next, state] = pt::adam({}, p, g, s);
        return std::tuple{pt::output("params", next), pt::output("opt", state),
                          pt::output("loss", loss)};
      },
      params, opt, pt::input<float, 2, 4>("x"));
  std::vector<pt::array> start;
  for (int i = 0; i + 1 < step.input_count(); ++i)
    start.push_back(pt::as_type(filled({pt::dtype::u8, step.input_type(i).shape}, 3u + i),
                                step.input_type(i).element));
  const pt::array x = pt::as_type(filled({pt::dtype::i8, {2, 4}}, 1), pt::dtype::f32);
  const pt::results once = pt::evaluate(step, start, x);
  for (const char* name : {"state.npz", "state.safetensors"}) {
    const temporary file(name);
    pt::save(file.path, once, "params", "opt");
    // By specs, or by the program's own inputs; then training continues unchanged.
    const pt::results specs = pt::load(file.path, params, opt);
    const pt::results inputs = pt::load(file.path, step, "params", "opt");
    CHECK(same(specs, inputs));
    CHECK(specs.names()[1] == "params.layers.0.bias");
    const std::vector<pt::array> kept(once.begin(), once.begin() + specs.size());
    CHECK(pt::equal(pt::evaluate(step, specs, x), pt::evaluate(step, kept, x)));
    // A load of only some arrays of the file must be requested.
    CHECK(thrown([&] { pt::load(file.path, params); })
              .starts_with("N007 file: \"" + file.path +
                           "\" has an array \"opt.m.layers.0.up\" of "
                           "tensor<4x3xf32> (and 10 more) that is not asked for; "));
    CHECK(pt::load(file.path, pt::load_options{.others = true}, params).size() == 5);
    CHECK(thrown([&] { pt::load(file.path, step, "parms"); }) ==
          "N010 file: no input is named \"parms\" or is below it; known: params.layers.0.up, "
          "params.layers.0.bias, params.layers.1.up, params.layers.1.bias, params.scale, "
          "opt.m.layers.0.up, opt.m.layers.0.bias, opt.m.layers.1.up and 9 more; did you mean "
          "\"params\"?");
    net deeper = spec;
    deeper.layers.resize(3);
    CHECK(thrown([&] { pt::load(file.path, pt::input("params", deeper), opt); })
              .starts_with("N005 file: \"" + file.path +
                           "\" has no array \"params.layers.2.up\" of "
                           "tensor<4x3xf32> (and lacks 1 more); known: "));
    CHECK(thrown([&] { pt::load(file.path, pt::input<float>("params.scale")); }) ==
          "N006 file: \"" + file.path +
              "\": array \"params.scale\" is tensor<f16>; tensor<f32> is "
              "needed; as_type converts it");
    CHECK(thrown([&] { pt::load(file.path, pt::input<float, 3, 4>("params.layers.0.up")); }) ==
          "N006 file: \"" + file.path +
              "\": array \"params.layers.0.up\" is tensor<4x3xf32>; "
              "tensor<3x4xf32> is needed");
    // Extents that are unknown match any size.
    CHECK(pt::load(file.path, pt::load_options{.others = true},
                   pt::input_spec<pt::tensor<float, pt::dyn, 3>>{"params.layers.0.up", {}})
              .only()
              .shape() == pt::shape{4, 3});
  }
}

TEST_CASE("arrays may have the names of a tree") {
  const temporary file("tree.safetensors");
  const auto spec = pt::input<layer>("params");
  const pt::array up = filled({pt::dtype::f32, {4, 3}}, 1),
                  bias = filled({pt::dtype::bf16, {3}}, 2);
  pt::save(file.path, spec, up, bias);
  CHECK(same(pt::load(file.path)["params.bias"], bias));
  pt::save(file.path, spec, std::vector{up, bias});
  CHECK(same(pt::load(file.path, spec)[0], up));
  CHECK(thrown([&] { pt::save(file.path, spec, up); }) ==
        "R001 save: 1 arrays are given; \"params\" has 2 tensors");
  CHECK(thrown([&] { pt::save(file.path, spec, bias, up); }) ==
        "N006 file: \"" + file.path +
            "\": array \"params.up\" is tensor<3xbf16>; tensor<4x3xf32> is "
            "needed");
  CHECK(thrown([&] { pt::save("w.bin", spec, up, bias); }) ==
        "N009 file: \"w.bin\" has an unknown extension; use .safetensors, .npz or .npy");
  CHECK(thrown([&] { pt::load("w.bin"); }).starts_with("N009 "));
  CHECK(thrown([&] { pt::load("none.npz"); }) == "N004 file: \"none.npz\" cannot be read");
  CHECK(thrown([&] { pt::save("no_such_folder/w.npz", spec, up, bias); }) ==
        "N004 file: \"no_such_folder/w.npz\" cannot be written");
  CHECK(thrown([&] { pt::save("w.npy", spec, up, bias); }) ==
        "N003 file: \"w.npy\": .npy holds one array; 2 are given");
  CHECK(thrown([&] {
          pt::save(file.path, std::vector<pt::named_array>{{"w", up}, {"v", up}, {"w", bias}});
        }) == "N008 file: \"" + file.path + "\": two arrays are named \"w\"");
  CHECK(thrown([&] { pt::save(file.path, {{"__metadata__", up}}); }).starts_with("N003 "));
  CHECK(thrown([&] { pt::save(file.path, {{"\xff", up}}); }).starts_with("N003 "));
}

TEST_CASE("invalid safetensors files are refused with the reason") {
  const std::string file = "file: \"files_test_wrong.safetensors\"";
  const std::string one = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(why(one, 8).empty());
  CHECK(
      why(R"( {"\u00e9\ud83d\ude00" : { "shape" : [ ] , "data_offsets":[0,1],"dtype":"I8"}, "__metadata__":{"format":"pt"}}  )",
          1)
          .empty());
  CHECK(why("{}", 0).empty());
  CHECK(why(one, 7) ==
        "N002 " + file + ": its data has 7 bytes; \"w\" ends at byte 8: it is truncated");
  CHECK(why(one, 9) == "N001 " + file + ": 1 bytes follow the last array");
  const auto entry = [](std::string_view name, std::string_view rest) {
    return "\"" + std::string(name) + "\":{\"dtype\":\"U8\"," + std::string(rest) + "}";
  };
  const auto two = [&](std::string_view a, std::string_view b) {
    return "{" + entry("a", a) + "," + entry("b", b) + "}";
  };
  CHECK(why(two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[4],"data_offsets":[2,6])"), 6) ==
        "N001 " + file + ": array \"b\" begins at byte 2 of the data, but \"a\" ends at byte 4");
  CHECK(why(two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[4],"data_offsets":[0,4])"), 4)
            .starts_with("N001 "));
  CHECK(why(two(R"("shape":[4],"data_offsets":[0,4])", R"("shape":[4],"data_offsets":[6,10])"),
            10) == "N001 " + file + ": bytes 4 to 6 of the data belong to no array");
  CHECK(why("{" + entry("a", R"("shape":[1],"data_offsets":[0,1])") + "," +
                entry("a", R"("shape":[1],"data_offsets":[1,2])") + "}",
            2) == "N008 " + file + ": two arrays are named \"a\"");
  const auto single = [&](std::string_view rest, std::size_t data) {
    return why("{" + entry("a", rest) + "}", data);
  };
  CHECK(single(R"("shape":[3],"data_offsets":[0,4])", 4) ==
        "N001 " + file + ": array \"a\" is tensor<3xu8>, which does not match bytes 0 to 4");
  CHECK(single(R"("shape":[3],"data_offsets":[4,0])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[4294967296,4294967296],"data_offsets":[0,0])", 0).starts_with("N001 "));
  CHECK(single(R"("shape":[9223372036854775807,3],"data_offsets":[0,4])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[9223372036854775808],"data_offsets":[0,4])", 4) ==
        "N001 " + file +
            ": its header is not a safetensors header: a whole number below 2^63 is missing at "
            "byte 28");
  CHECK(single(R"("shape":[-4],"data_offsets":[0,4])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[04],"data_offsets":[0,4])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[4.0],"data_offsets":[0,4])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,4])", 4).starts_with("N003 "));
  CHECK(single(R"("shape":[4],"data_offsets":[0,4,4])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[4],"data_offsets":[4])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[4])", 4) ==
        "N001 " + file +
            ": its header is not a safetensors header: \"a\" lacks data_offsets at byte 31");
  CHECK(single(R"("shape":[4],"shape":[4],"data_offsets":[0,4])", 4).starts_with("N001 "));
  // Further members are ignored, as in the safetensors library.
  CHECK(single(R"("shape":[4],"more":1,"data_offsets":[0,4])", 4).empty());
  CHECK(single(R"("shape":[4],"x":{"y":[1,-2.5e+3,null,true,{"z":"q"}]},"data_offsets":[0,4])", 4)
            .empty());
  CHECK(single(R"("shape":[4],"more":-,"data_offsets":[0,4])", 4).starts_with("N001 "));
  CHECK(single(R"("shape":[4],"more":[1,],"data_offsets":[0,4])", 4).starts_with("N001 "));
  CHECK(single("\"more\":" + std::string(100, '[') + std::string(100, ']') +
                   R"(,"shape":[4],"data_offsets":[0,4])",
               4)
            .empty());
  CHECK(single("\"more\":" + std::string(1000, '[') + std::string(1000, ']') +
                   R"(,"shape":[4],"data_offsets":[0,4])",
               4)
            .starts_with("N001 "));
  CHECK(why(R"({"__metadata__":null,)" + one.substr(1), 8).empty());
  CHECK(why(R"({"__metadata__":{},"__metadata__":{},)" + one.substr(1), 8).starts_with("N001 "));
  CHECK(why(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4) ==
        "N003 " + file + ": array \"a\": element type F8_E4M3 is not supported");
  CHECK(why(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2).empty());
  for (const char* header :
       {"", "[]", "{", "{\"a", "{\"a\"}", "{\"a\":1}", "{\"a\":{}", "{}{}", "{\"a\\x\":{}}",
        "{\"\\ud800\":{}}", "{\"\\ud800\\u0041\":{}}", "{\"\\udc00\":{}}", "{\"\xff\":{}}",
        "{\"a\nb\":{}}", "{\"\\u12g4\":{}}", "{\"__metadata__\":{\"a\":1}}",
        "{\"__metadata__\":{\"a\":\"b\",}}"})
    CHECK_MESSAGE(why(header, 0).starts_with("N001 "), header);
  const temporary raw("raw.safetensors");
  CHECK(thrown([&] { pt::load(raw.of("abc")); }) ==
        "N001 file: \"files_test_raw.safetensors\": it is not a safetensors file: it has 3 bytes");
  CHECK(thrown([&] {
          pt::load(raw.of("PK\3\4 and some more bytes"));
        }).starts_with("N002 file: \"files_test_raw.safetensors\": its header needs "));
  CHECK(thrown([&] { pt::load(raw.of(std::string(8, '\xff') + "{}")); }).starts_with("N002 "));
  std::string bools = safetensors(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 1);
  bools.back() = '\2';
  CHECK(thrown([&] { pt::load(raw.of(bools)); }) ==
        "N001 file: \"files_test_raw.safetensors\": array \"a\": a bool is 2, neither 0 nor 1");
}

TEST_CASE("an array of an unsupported type is an error only if it is requested") {
  const temporary file("mixed.safetensors");
  const std::string eight = R"("dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})";
  const std::string deep = R"("dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,4],"data_offsets":[4,8]})";
  const std::string plain = R"("dtype":"F32","shape":[2],"data_offsets":[8,16]})";
  file.of(safetensors(R"({"a":{)" + eight + R"(,"b":{)" + deep + R"(,"w":{)" + plain + "}", 16));
  const pt::results all = pt::load(file.path);
  CHECK(all.size() == 1);
  CHECK(all["w"].size() == 2);
  CHECK(thrown([&] { all["a"]; }) ==
        "N003 file: \"" + file.path + "\": array \"a\": element type F8_E4M3 is not supported");
  CHECK(thrown([&] { all["b"]; }) ==
        "N003 file: \"" + file.path + "\": array \"b\": a rank above 8 is not supported");
  const auto w = pt::input<float, 2>("w");
  const pt::load_options others{.others = true};
  CHECK(pt::load(file.path, others, w).size() == 1);
  CHECK(thrown([&] { pt::load(file.path, w); }).starts_with("N007 "));
  CHECK(thrown([&] { pt::load(file.path, others, pt::input<float, 2>("a")); }) ==
        "N003 file: \"" + file.path + "\": array \"a\": element type F8_E4M3 is not supported");
  // NumPy's complex numbers, texts, objects, and compressed entries.
  for (const char* type : {"<c8", "<U5", "|O", "|S3", "<M8[ns]"}) {
    const temporary zip("mixed.npz");
    pt::save(zip.path,
             {{"a", filled({pt::dtype::u8, {8}}, 1)}, {"w", filled({pt::dtype::f32, {2}}, 1)}});
    std::string bytes = pt::run_detail::read_file(zip.path);
    const std::string from = "'descr': '|u1'", dict = "'descr': '" + std::string(type) + "'";
    const std::size_t at = bytes.find(from), begin = bytes.find("\x93NUMPY");
    // The header keeps its length: spaces at its end reserve room.
    std::string header = bytes.substr(begin, bytes.find('\n', begin) - begin);
    const std::size_t length = header.size();
    header.replace(at - begin, from.size(), dict);
    header = header.substr(0, header.find('}') + 1);
    header.resize(length, ' ');
    bytes.replace(begin, length, header);
    const std::uint32_t crc = pt::run_detail::crc32(
        std::string_view(bytes).substr(begin, bytes.find("PK", begin) - begin));
    for (const std::size_t place : {bytes.find("PK\3\4") + 14, bytes.find("PK\1\2") + 16})
      for (int i = 0; i < 4; ++i) bytes[place + i] = static_cast<char>(crc >> (8 * i));
    const pt::results mixed = pt::load(zip.of(bytes));
    CHECK(mixed.size() == 1);
    CHECK(mixed["w"].size() == 2);
    CHECK(thrown([&] { mixed["a"]; }).starts_with("N003 file: \"" + zip.path + ":a.npy\""));
  }
}

TEST_CASE("invalid .npy and .npz files are refused with the reason") {
  const temporary file("wrong.npy");
  const auto npy = [&](std::string_view dict, std::size_t data) {
    std::string bytes("\x93NUMPY\1\0", 8);
    bytes += static_cast<char>(dict.size());
    bytes += '\0';
    return thrown([&] { pt::load(file.of(bytes + std::string(dict) + std::string(data, '\0'))); });
  };
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8).empty());
  CHECK(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24).empty());
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9) ==
        "N001 file: \"files_test_wrong.npy\": 1 bytes follow the 8 of tensor<2xf32>");
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7) ==
        "N002 file: \"files_test_wrong.npy\": it ends after 74 bytes; 1 more are expected");
  CHECK(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8) ==
        "N003 file: \"files_test_wrong.npy\": element type '>f4' is not supported");
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8).starts_with("N001 "));
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", 8).starts_with("N001 "));
  CHECK(npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", 8).starts_with("N001 "));
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0)
            .starts_with("N001 "));
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296), }", 0)
            .starts_with("N001 "));
  CHECK(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1152921504606846975,), }", 0)
            .starts_with("N00"));
  CHECK(npy("{'shape': (2,), }", 8).starts_with("N001 "));

  // Entries that share one place: a small file would expand to a large one.
  const temporary zip("wrong.npz");
  pt::save(zip.path,
           {{"a", filled({pt::dtype::u8, {1000}}, 1)}, {"b", filled({pt::dtype::u8, {1000}}, 1)}});
  std::string bytes = pt::run_detail::read_file(zip.path);
  const std::size_t first = bytes.find("PK\1\2"), second = bytes.find("PK\1\2", first + 1);
  const std::size_t end = bytes.rfind("PK\5\6");
  std::string entries;
  for (int i = 0; i < 20; ++i) entries += bytes.substr(first, second - first);
  std::string tail = bytes.substr(end);
  tail[10] = 20;
  CHECK(thrown([&] {
          pt::load(zip.of(bytes.substr(0, first) + entries + tail));
        }).starts_with("N001 file: \"files_test_wrong.npz\": its arrays overlap"));
  bytes[first + 46] = 'b';
  CHECK(thrown([&] { pt::load(zip.of(bytes)); }) ==
        "N008 file: \"files_test_wrong.npz\": two arrays are named \"b\"");
}

TEST_CASE("files with wrong bytes are refused or loaded, without other effects") {
  // PARTITA_FILE_CASES sets a larger number.
  const char* const more = std::getenv("PARTITA_FILE_CASES");
  const int cases = more != nullptr ? std::atoi(more) : 500;
  const std::vector<pt::named_array> list{{"w.up", filled({pt::dtype::f32, {3, 2}}, 1)},
                                          {"w.bias", filled({pt::dtype::bf16, {3}}, 2)},
                                          {"mask", filled({pt::dtype::boolean, {4}}, 3)},
                                          {"n", filled({pt::dtype::i64, {}}, 4)}};
  int refused = 0;
  for (const char* name : {"fuzz.npz", "fuzz.safetensors", "fuzz.npy"}) {
    const temporary file(name);
    pt::save(file.path, std::string_view(name) == "fuzz.npy" ? std::vector{list[0]} : list);
    const std::string whole = pt::run_detail::read_file(file.path);
    std::mt19937 random(5);
    for (int i = 0; i < cases; ++i) {
      std::string bytes = whole;
      for (unsigned n = random() % 4 + 1; n-- > 0 && !bytes.empty();) {
        const std::size_t at = random() % bytes.size();
        switch (random() % 5) {
          case 0:
            bytes[at] = static_cast<char>(random());
            break;
          case 1:
            bytes[at] = "0123456789[]{},:\"\\-"[random() % 19];
            break;
          case 2:
            bytes.erase(at, random() % 9);
            break;
          case 3:
            bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
            break;
          default:
            bytes.resize(at + 1);
        }
      }
      if (thrown([&] { pt::load(file.of(bytes)); }) != "") ++refused;
    }
  }
  CHECK(refused > cases);  // (changes of element values cannot be detected)
}
