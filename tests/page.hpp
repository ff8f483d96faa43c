/// Properties of every HTML page that reports write.
#pragma once

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "xml.hpp"

inline std::size_t count(std::string_view all, std::string_view words) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = all.find(words, at)) != all.npos; at += words.size()) ++n;
  return n;
}
/// Checks that each picture is well-formed and that elements are closed.
inline void check_page(std::string_view page) {
  REQUIRE(page.starts_with("<!DOCTYPE html>\n"));
  CHECK(page.ends_with("</html>\n"));
  for (std::size_t at = 0; (at = page.find("<svg ", at)) != page.npos; ++at) {
    const std::size_t end = page.find("</svg>", at);
    REQUIRE(end != page.npos);
    CHECK(xml_checker(page.substr(at, end + 6 - at)).run() == "");
  }
  for (const char* tag : {"table", "tr", "td", "th", "details", "pre", "code", "div", "p", "h2"})
    CHECK_MESSAGE(
        count(page, std::string("<") + tag + ">") + count(page, std::string("<") + tag + " ") ==
            count(page, std::string("</") + tag + ">"),
        tag);
  for (std::size_t at = 0; (at = page.find("<table ", at)) != page.npos; ++at) {
    const std::string_view table = page.substr(at, page.find("</table>", at) - at);
    CHECK(count(table, "<td") == count(table, "<th ") * (count(table, "<tr>") - 1));
  }
  for (const char* outside : {"http:", "https:", " src=", "url(", "@import"})
    CHECK_MESSAGE(count(page, outside) == 0, outside);
  CHECK(count(page, "<script") == 1);
  CHECK(count(page, "<img") == 0);
}
