#include "base/json_object.h"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep {
namespace {

/// The error that reading leaves; empty where there is none.
std::string ErrorOf(std::string_view text, const std::function<void(JsonObject&)>& read,
                    ErrorCode code = ErrorCode::kCorruptData) {
  const Result<JsonTree> tree = ParseJson(text);
  EXPECT_TRUE(tree) << text;
  JsonObject object(tree->root(), "");
  read(object);
  const Status status = object.status();
  if (status) return "";
  EXPECT_EQ(status.error().code, code);
  return status.error().message;
}

TEST(JsonObjectTest, MembersAreReadIntoVariables) {
  int32_t whole = 0;
  uint64_t large = 0;
  bool truth = false;
  std::string text;
  std::optional<int64_t> there, absent, null;
  double number = 0;
  EXPECT_EQ(
      ErrorOf(
          R"({"whole":-7,"large":18446744073709551615,"truth":true,"text":"a","there":5,"null":null,"number":-1.5})",
          [&](JsonObject& object) {
            object.Read("whole", &whole);
            object.Uint("large", &large);
            object.Read("truth", &truth);
            object.Text("text", &text);
            object.Read("there", &there);
            object.Read("absent", &absent);
            object.Read("null", &null);
            object.Number("number", 2, &number);
          }),
      "");
  EXPECT_EQ(whole, -7);
  EXPECT_EQ(large, UINT64_MAX);
  EXPECT_TRUE(truth);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(there, 5);
  EXPECT_EQ(absent, std::nullopt);
  EXPECT_EQ(null, std::nullopt);
  EXPECT_EQ(number, -1.5);
}

TEST(JsonObjectTest, ErrorsNameTheMember) {
  int32_t whole = 0;
  std::string text;
  bool truth = false;
  double number = 0;
  EXPECT_EQ(ErrorOf(R"({"a":"x"})", [&](JsonObject& object) { object.Int("a", 0, 9, &whole); }),
            "a is not a whole number");
  EXPECT_EQ(
      ErrorOf(R"({"a":10})", [&](JsonObject& object) { object.Int("a", 0, 9, &whole); }, ErrorCode::kInvalidArgument),
      "a is 10, outside 0 .. 9");
  EXPECT_EQ(ErrorOf(R"({"a":18446744073709551615})", [&](JsonObject& object) { object.Int("a", 0, 9, &whole); },
                    ErrorCode::kInvalidArgument),
            "a is over 9");
  EXPECT_EQ(ErrorOf(R"({"a":2147483648})", [&](JsonObject& object) { object.Read("a", &whole); }),
            "a: expected an integer in its range");
  EXPECT_EQ(ErrorOf(R"({"a":1})", [&](JsonObject& object) { object.Text("a", &text); }), "a is not a string");
  EXPECT_EQ(
      ErrorOf(R"({"a":"12345"})", [&](JsonObject& object) { object.Text("a", &text, 4); }, ErrorCode::kInvalidArgument),
      "a is longer than 4 bytes");
  EXPECT_EQ(ErrorOf(R"({"a":"b c"})", [&](JsonObject& object) { object.Word("a", "-", 9, &text); },
                    ErrorCode::kInvalidArgument),
            "a may hold letters, digits and \"-\" only");
  EXPECT_EQ(ErrorOf(R"({"a":1})", [&](JsonObject& object) { object.Bool("a", &truth); }),
            "a is neither true nor false");
  EXPECT_EQ(ErrorOf(R"({"a":3})", [&](JsonObject& object) { object.Number("a", 2, &number); }),
            "a is not a number up to 2");
  EXPECT_EQ(ErrorOf("{}", [&](JsonObject& object) { object.Required("a"); }), "a is missing");
  EXPECT_EQ(ErrorOf("[]", [](JsonObject&) {}), "the document is not an object");
  EXPECT_EQ(whole, 0);
  EXPECT_EQ(text, "");
}

TEST(JsonObjectTest, TheFirstErrorEndsTheReading) {
  int32_t after = 0;
  EXPECT_EQ(ErrorOf(R"({"a":"x","b":1})",
                    [&](JsonObject& object) {
                      object.Read("a", &after);
                      object.Read("b", &after);
                    }),
            "a: expected an integer in its range");
  EXPECT_EQ(after, 0);
}

TEST(JsonObjectTest, ErrorsWithinListsNameThePath) {
  std::vector<int32_t> ranks;
  const auto read = [&](JsonObject& object) {
    object.Objects("rows", 3, [&](JsonObject& row) {
      row.Objects("inner", 3, [&](JsonObject& inner) { inner.Read("rank", &ranks.emplace_back()); });
    });
  };
  EXPECT_EQ(ErrorOf(R"({"rows":[{"inner":[{"rank":1},{"rank":2}]},{}]})", read), "");
  EXPECT_EQ(ranks, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(ErrorOf(R"({"rows":[{},{"inner":[{"rank":1},{"rank":"x"}]}]})", read),
            "rows[1].inner[1].rank: expected an integer in its range");
  EXPECT_EQ(ErrorOf(R"({"rows":[{},7]})", read), "rows[1]: expected an object");
  EXPECT_EQ(ErrorOf(R"({"rows":{}})", read), "rows: expected an array");
  EXPECT_EQ(ErrorOf(R"({"rows":[{},{},{},{}]})", read, ErrorCode::kLimitExceeded),
            "rows: 4 elements; at most 3 are read");
}

TEST(JsonObjectTest, AnInnerObjectMayBeMissingButNotAnother) {
  int32_t rank = 0;
  const auto read = [&](JsonObject& object) {
    object.Inner("a", [&](JsonObject& inner) { inner.Read("rank", &rank); });
  };
  EXPECT_EQ(ErrorOf("{}", read), "");
  EXPECT_EQ(ErrorOf(R"({"a":{"rank":3}})", read), "");
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(ErrorOf(R"({"a":{"rank":"x"}})", read), "a.rank: expected an integer in its range");
  EXPECT_EQ(ErrorOf(R"({"a":[]})", read), "a: expected an object");
}

TEST(JsonObjectTest, WhatAVariableIsToHoldIsSaidWhereItIsOfAnotherType) {
  std::string text;
  bool truth = false;
  EXPECT_EQ(ErrorOf(R"({"a":1})", [&](JsonObject& object) { object.Read("a", &text); }), "a: expected a text");
  EXPECT_EQ(ErrorOf(R"({"a":1})", [&](JsonObject& object) { object.Read("a", &truth); }), "a: expected true or false");
}

TEST(JsonObjectTest, AListIsReadWithThePathsOfItsElements) {
  std::vector<std::string> paths;
  const auto read = [&](JsonObject& object) {
    object.List("a", 2, [&](JsonValue, std::string path) -> Status {
      paths.push_back(std::move(path));
      return {};
    });
  };
  EXPECT_EQ(ErrorOf(R"({"a":[1,2]})", read), "");
  EXPECT_EQ(paths, (std::vector<std::string>{"a[0]", "a[1]"}));
  EXPECT_EQ(ErrorOf(R"({"a":{}})", read), "a is not a list");
  EXPECT_EQ(ErrorOf(R"({"a":[1,2,3]})", read, ErrorCode::kInvalidArgument), "a has over 2 elements");
}

}  // namespace
}  // namespace lockstep
