// Every error that the shape rule of an op reports, from one table.
#include "op_errors.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include <partita/ir/builder.hpp>

#include "op_errors_basic.hpp"
#include "op_errors_control.hpp"
#include "op_errors_elementwise.hpp"
#include "op_errors_linalg.hpp"
#include "op_errors_movement.hpp"
#include "op_errors_windows.hpp"
#include "texts.hpp"

namespace pt = partita;
using unit::str;

namespace {

std::vector<op_error> all_op_errors() {
  std::vector<op_error> list;
  add_basic_errors(list);
  add_control_errors(list);
  add_elementwise_errors(list);
  add_linalg_errors(list);
  add_movement_errors(list);
  add_windows_errors(list);
  return list;
}

/// Returns the error of `emit` for the op on parameters of these types, or "" if the op is valid.
std::string reported(const op_error& e) {
  pt::builder b;
  std::vector<pt::value_id> operands;
  for (const pt::tensor_type& t : e.operands)
    operands.push_back(pt::ops::parameter(b, std::to_string(operands.size()), t));
  REQUIRE(!b.failed());
  pt::vec<pt::program> regions;
  for (const auto& r : e.regions) regions.push_back(r);
  const pt::value_id v = b.emit(*e.op, operands, e.attrs, e.declared, std::move(regions));
  const std::string message = str(b.p.error.message);
  CHECK((v == -1) == b.failed());
  if (!b.failed()) return message;
  // Ops that follow an error are not added.
  const int ops = b.p.op_count();
  CHECK(pt::ops::stop_gradient(b, v) == -1);
  CHECK(pt::ops::parameter(b, "x", {pt::dtype::f32, {-3}}) == -1);
  CHECK(b.p.op_count() == ops);
  CHECK(str(b.p.error.message) == message);
  return message;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the codes of shape rules (S1xx, and P017 for a number of operands) that follow `before`
/// in the headers below a folder of include/partita.
std::set<std::string> codes_after(const std::string& before, const std::string& folder) {
  std::set<std::string> codes;
  const std::regex pattern(before + "(S1[0-9][0-9]|P017)");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           PARTITA_SOURCE_DIR "/include/partita/" + folder)) {
    if (entry.path().extension() != ".hpp") continue;
    const std::string text = contents(entry.path());
    for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i)
      codes.insert((*i)[1]);
  }
  return codes;
}

bool has_compile_fail_case(std::string code) {
  code[0] = 's';
  for (const auto& entry :
       std::filesystem::directory_iterator(PARTITA_SOURCE_DIR "/tests/compile_fail"))
    if (entry.path().filename().string().rfind(code + "_", 0) == 0) return true;
  return false;
}

}  // namespace

TEST_CASE("shape rules refuse each invalid op with the full message") {
  for (const op_error& e : all_op_errors()) {
    CHECK(reported(e) == std::string(e.message));
    CHECK(e.message.substr(0, 5) == std::string(e.code) + " ");
    CHECK_MESSAGE(
        std::find(std::begin(pt::registry), std::end(pt::registry), e.op) != std::end(pt::registry),
        e.op->name, " is not in the registry");
  }
}

TEST_CASE("every code of a shape rule has a row, every other code a compile_fail case") {
  std::set<std::string> rows;
  for (const op_error& e : all_op_errors()) rows.insert(std::string(e.code));
  std::set<std::string> known;
  for (const char* folder : {"ir", "op", "dsl"}) {
    // A shape rule reports errors by c.fail("CODE", ...).
    for (const std::string& code : codes_after("\\.fail\\(\\s*\"", folder))
      CHECK_MESSAGE(rows.count(code) == 1, code, " has no row in tests/unit/op_errors_*.hpp");
    known.merge(codes_after("", folder));
  }
  for (const std::string& code : known)
    CHECK_MESSAGE((rows.count(code) == 1 || has_compile_fail_case(code)), code,
                  " has neither a row in tests/unit/op_errors_*.hpp nor a case in compile_fail");
  CHECK(known.size() >= 18);
  for (const std::string& code : rows)
    CHECK_MESSAGE(known.count(code) == 1, code, " is no code of include/partita");
}
