#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace lockstep {
namespace {

TEST(JsonWriterTest, ValuesStandInTheirOrder) {
  JsonWriter json;
  json.StartObject().Key("a").Int(-5).Key("b").Uint(UINT64_MAX).Key("c").StartArray();
  json.Bool(true).Null().Text("x").Double(0.5).EndArray().Key("d").Raw("{\"e\":[]}").EndObject();
  EXPECT_EQ(json.text(), R"({"a":-5,"b":18446744073709551615,"c":[true,null,"x",0.5],"d":{"e":[]}})");
  EXPECT_EQ(json.Take(), json.text());
}

TEST(JsonWriterTest, WhatJsonCannotSayIsNull) {
  JsonWriter json;
  json.StartArray().Double(std::nan("")).Double(std::numeric_limits<double>::infinity()).TextOrNull("").EndArray();
  EXPECT_EQ(json.text(), "[null,null,null]");
}

TEST(JsonWriterTest, AnOptionalIsWrittenAsItsTypeOrNull) {
  JsonWriter json;
  json.StartArray().Optional(std::optional<int32_t>(-1)).Optional(std::optional<uint64_t>(UINT64_MAX));
  json.Optional(std::optional<bool>(false)).Optional(std::optional<double>(1)).Optional(std::optional<double>(NAN));
  json.Optional(std::optional<std::string>("")).Optional(std::optional<int64_t>()).EndArray();
  EXPECT_EQ(json.text(), R"([-1,18446744073709551615,false,1.0,null,"",null])");
}

TEST(JsonWriterTest, TextsAreEscapedAndMadeValid) {
  EXPECT_EQ(JsonQuoted("a\"\\\n\x01\x7f"), "\"a\\\"\\\\\\n\\u0001\x7f\"");
  EXPECT_EQ(JsonQuoted("\xff\xc3\xa4"), "\"\xef\xbf\xbd\xc3\xa4\"");
  EXPECT_EQ(JsonQuoted(""), "\"\"");
}

TEST(JsonWriterTest, ADocumentIsIndentedAndEndsItsLine) {
  std::ostringstream out;
  {
    JsonDocument json(out, 2);
    json.StartObject().Key("a").StartArray().Int(1).EndArray().Key("b").Raw("{\"c\":2}").EndObject();
    json.EndLine();
  }
  EXPECT_EQ(out.str(), "{\n  \"a\": [\n    1\n  ],\n  \"b\": {\"c\":2}\n}\n");
}

TEST(JsonWriterTest, AStreamWritesWhatIsLongerThanItsBlocks) {
  constexpr int kCount = 100'000;
  std::ostringstream out;
  {
    JsonStream json(out);
    json.StartArray();
    for (int i = 0; i < kCount; ++i) json.Int(7);
    json.EndArray();
    json.EndLine();
  }
  std::string expected = "[7";
  for (int i = 1; i < kCount; ++i) expected += ",7";
  EXPECT_EQ(out.str(), expected + "]\n");
}

}  // namespace
}  // namespace lockstep
