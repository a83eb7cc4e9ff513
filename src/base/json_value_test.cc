#include "base/json_value.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

JsonTree Tree(std::string_view text, const JsonOptions& options = {}) {
  Result<JsonTree> tree = ParseJson(text, options);
  EXPECT_TRUE(tree) << text;
  return std::move(*tree);
}

TEST(JsonValueTest, AValueIsOfOneType) {
  const JsonTree tree =
      Tree(R"({"text":"a\u0000b","int":-3,"uint":18446744073709551615,"real":3.0,"yes":true,"no":null})");
  const JsonValue root = tree.root();
  EXPECT_EQ(root["text"].Text(), std::string_view("a\0b", 3));
  EXPECT_EQ(root["text"].Int(), std::nullopt);
  EXPECT_EQ(root["int"].Int(), -3);
  EXPECT_EQ(root["int"].Uint(), std::nullopt);
  EXPECT_EQ(root["int"].Number(), -3.0);
  EXPECT_EQ(root["uint"].Uint(), UINT64_MAX);
  EXPECT_EQ(root["uint"].Int(), std::nullopt);
  EXPECT_EQ(root["real"].Number(), 3.0);
  EXPECT_EQ(root["real"].Int(), std::nullopt);
  EXPECT_EQ(root["yes"].Bool(), true);
  EXPECT_TRUE(root["no"].IsNull());
  EXPECT_TRUE(root["no"]);
  EXPECT_FALSE(root.Known("no"));
  EXPECT_TRUE(root.Known("yes"));
}

TEST(JsonValueTest, Int32IsWhatFits) {
  const JsonTree tree = Tree("[2147483647,2147483648,-2147483648,-2147483649]");
  EXPECT_EQ(tree.root()[0].Int32(), INT32_MAX);
  EXPECT_EQ(tree.root()[1].Int32(), std::nullopt);
  EXPECT_EQ(tree.root()[2].Int32(), INT32_MIN);
  EXPECT_EQ(tree.root()[3].Int32(), std::nullopt);
}

TEST(JsonValueTest, APathThatLeadsNowhereIsNone) {
  const JsonTree tree = Tree(R"({"a":{"b":{"c":"there"}},"list":[1]})");
  const JsonValue root = tree.root();
  EXPECT_EQ(root.At({"a", "b", "c"}).Text(), "there");
  EXPECT_FALSE(root.At({"a", "x", "c"}));
  EXPECT_FALSE(root["list"]["a"]);
  EXPECT_FALSE(JsonValue()["a"]);
  EXPECT_EQ(JsonValue().TextOrEmpty(), "");
  EXPECT_FALSE(JsonValue().IsObject() || JsonValue().IsArray() || JsonValue().IsNull());
  EXPECT_EQ(JsonValue().size(), 0u);
}

TEST(JsonValueTest, ElementsAndMembersStandInTheTextsOrder) {
  const JsonTree tree = Tree(R"({"b":[3,1,2],"a":null})");
  std::vector<int64_t> numbers;
  for (const JsonValue element : tree.root()["b"].elements()) numbers.push_back(element.Int().value_or(-1));
  EXPECT_EQ(numbers, (std::vector<int64_t>{3, 1, 2}));
  std::vector<std::string> names;
  for (const auto& [name, value] : tree.root().members()) names.emplace_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"b", "a"}));
  for (const JsonValue element : tree.root()["a"].elements()) FAIL() << element.ToJson();
  for (const auto& [name, value] : tree.root()["b"].members()) FAIL() << name;
}

TEST(JsonValueTest, AValueIsWrittenAgainWithoutBlanks) {
  EXPECT_EQ(Tree(R"( { "a" : [ 1 , 2.5, "x\n" ] } )").root().ToJson(), R"({"a":[1,2.5,"x\n"]})");
  EXPECT_EQ(JsonValue().ToJson(), "");
}

TEST(ParseJsonTest, WhatIsNoJsonIsRefusedWithThePlace) {
  for (const std::string_view text : {"", "{", "[1,]", "{\"a\":}", "nul", "1 2"}) {
    const Result<JsonTree> tree = ParseJson(text);
    ASSERT_FALSE(tree) << text;
    EXPECT_EQ(tree.error().code, ErrorCode::kCorruptData);
    EXPECT_FALSE(tree.error().message.empty());
    EXPECT_LE(tree.error().byte_offset.value_or(99), text.size());
  }
}

TEST(ParseJsonTest, BytesAndDepthAreLimited) {
  EXPECT_TRUE(ParseJson("[[1]]", {.most_bytes = 5, .most_depth = 2}));
  EXPECT_EQ(ParseJson("[[1]]", {.most_bytes = 4}).error().code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(ParseJson("[[[1]]]", {.most_depth = 2}).error().code, ErrorCode::kLimitExceeded);
  EXPECT_TRUE(ParseJson(R"([["[[[\"[[["]])", {.most_depth = 2}));  // Brackets of a text are none.
}

TEST(ParseJsonTest, DepthCostsNoCallStack) {
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(ParseJson(deep));
}

TEST(ParseJsonTest, EncodingIsCheckedWhereItIsAskedFor) {
  EXPECT_TRUE(ParseJson("\"\xff\""));
  EXPECT_FALSE(ParseJson("\"\xff\"", {.checks_encoding = true}));
}

TEST(ParseJsonTest, NumbersMayStayTexts) {
  EXPECT_EQ(Tree("[1.50]", {.numbers_as_texts = true}).root()[0].Text(), "1.50");
}

TEST(TakeJsonTest, TakesOneValueAfterTheOther) {
  std::string_view text = R"({"a":1}{"a":2} rest)";
  for (const int64_t value : {1, 2}) {
    const Result<JsonTree> tree = TakeJson(&text);
    ASSERT_TRUE(tree);
    EXPECT_EQ(tree->root()["a"].Int(), value);
  }
  EXPECT_EQ(text, " rest");
  EXPECT_FALSE(TakeJson(&text));
  EXPECT_EQ(text, " rest");
}

}  // namespace
}  // namespace lockstep
