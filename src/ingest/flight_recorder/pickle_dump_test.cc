#include "ingest/flight_recorder/pickle_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "ingest/flight_recorder/dump_for_test.h"
#include "ingest/flight_recorder/pickle_opcodes.h"
#include "ingest/flight_recorder/record_for_test.h"

namespace lockstep::ingest {
namespace {

using evidence::FlightEntry;
using evidence::FlightRecord;
using evidence::kNotRecorded;
using test::Dump;
using test::DumpOperation;
using test::PickleWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

FlightRecord ReadPickle(const std::string& bytes, PlainEntryPath path = PlainEntryPath::kUsed) {
  auto record = test::One(ReadPickleDump(bytes, path));
  EXPECT_TRUE(record.has_value()) << record.error().ToString();
  return record ? std::move(*record) : FlightRecord{};
}

Error ErrorOf(const std::string& bytes) {
  auto record = test::One(ReadPickleDump(bytes));
  EXPECT_FALSE(record.has_value());
  return record ? Error{} : record.error();
}

PickleWriter Begun() {
  PickleWriter out;
  out.Dict().Text("version").Text("2.10").Text("entries").List();
  return out;
}
std::string Ended(PickleWriter& out) { return out.EndList().EndDict().Take(); }

// A dump with one entry that has one key.
FlightEntry EntryWith(const std::string& key, const std::function<void(PickleWriter&)>& value, size_t note_count = 0) {
  PickleWriter out = Begun();
  out.Dict().Text(key);
  value(out);
  out.EndDict();
  const FlightRecord record = ReadPickle(Ended(out));
  EXPECT_EQ(record.notes.size(), note_count) << key;
  EXPECT_EQ(record.entries.size(), 1u);
  return record.entries.empty() ? FlightEntry{} : record.entries[0];
}

Dump DumpOf(size_t count) {
  Dump dump;
  dump.groups = {{"0", "default_pg", "[0, 1]"}};
  dump.progress = {{0, {5, -1, 4}}};
  dump.frames = {{"f", "/a.py", 1}, {"g", "/b.py", 2}};
  for (size_t i = 0; i < count; ++i) {
    DumpOperation& operation = dump.operations.emplace_back();
    operation.frames = {i % 2, 1};
    operation.record_id = static_cast<int64_t>(i);
    operation.duration_ms = 0.25;
    operation.input_sizes = {{static_cast<int64_t>(i % 3), 70000}, {}};
    operation.input_dtypes = {"Float", "Half"};
  }
  return dump;
}

TEST(PickleDumpTest, EveryOpcodeForNumbersIsRead) {
  const auto record_id = [](std::string_view bytes) {
    return EntryWith("record_id", [&](PickleWriter& out) { out.Raw(bytes); }).record_id;
  };
  EXPECT_EQ(record_id("K\xff"), 255);
  EXPECT_EQ(record_id("M\xff\xff"), 65535);
  EXPECT_EQ(record_id("J\xff\xff\xff\x7f"), 2147483647);
  EXPECT_EQ(record_id("J\xff\xff\xff\xff"), kNotRecorded);
  EXPECT_EQ(record_id(std::string_view("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 10)), INT64_MAX);
  EXPECT_EQ(record_id("\x8a\x02\x01\x7f"), 0x7f01);
  EXPECT_EQ(record_id("\x8a\x02\x01\xff"), kNotRecorded);  // Negative.
  EXPECT_EQ(record_id(std::string_view("\x8a\x00", 2)), 0);
  EXPECT_EQ(record_id("N"), kNotRecorded);
}

TEST(PickleDumpTest, TextsOfBothLengthsAreRead) {
  const std::string_view longer("\x8d\x02\0\0\0\0\0\0\0ok", 11);
  PickleWriter out = Begun();
  out.Dict().Text("profiling_name").Raw(longer).EndDict();
  const FlightRecord record = ReadPickle(Ended(out));
  EXPECT_EQ(record.texts[record.entries[0].operation], "ok");
}

TEST(PickleDumpTest, TuplesOfEveryLengthAreLists) {
  for (const auto& [bytes, sizes] :
       std::vector<std::pair<std::string_view, std::string>>{{")", ""},
                                                             {"K\x05\x85\x85", "[5,]"},
                                                             {"K\x05K\x06\x86\x85", "[5,6,]"},
                                                             {"K\x05K\x06K\x07\x87\x85", "[5,6,7,]"},
                                                             {"((K\x05K\x06K\x07K\x08tt", "[5,6,7,8,]"},
                                                             {"])\x86", "[][]"}}) {
    PickleWriter out = Begun();
    out.Dict().Text("input_sizes").Raw(bytes).EndDict();
    const FlightRecord record = ReadPickle(Ended(out));
    EXPECT_EQ(test::TextOf(record.size_lists[record.entries[0].input_sizes]), sizes);
  }
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

TEST(PickleDumpTest, WhatPythonWritesIsReadToo) {
  // pickle.dumps(dump, 2): lists and dicts are numbered before they are filled; APPEND and SETITEM for single items.
  const FlightRecord record = ReadPickle(
      FromHex("80027d710028580700000076657273696f6e71015803000000322e3471025807000000656e747269657371035d71047d7105"
              "2858090000007265636f72645f696471064b05580b000000696e7075745f73697a657371075d71085d7109284b014b026561"
              "58060000006672616d6573710a5d710b7d710c2858040000006e616d65710d580100000066710e580800000066696c656e61"
              "6d65710f580100000078711058040000006c696e6571114b0375617561580900000070675f73746174757371127d71135801"
              "0000003471147d711558180000006c6173745f656e7175657565645f636f6c6c65637469766571164b037373752e"));
  ASSERT_EQ(record.entries.size(), 1u);
  EXPECT_THAT(record.notes, IsEmpty());
  EXPECT_EQ(record.entries[0].record_id, 5);
  EXPECT_EQ(test::TextOf(record.size_lists[record.entries[0].input_sizes]), "[1,2,]");
  EXPECT_EQ(test::StackOf(record, record.entries[0]), "f x:3;");
  EXPECT_EQ(record.groups[0].last_enqueued, 3);
}

// pickle.dumps of one and the same dump in protocols 0, 1, 2 and 4. Of this one 3 differs from 2, and 5 from 4, in its
// number alone.
constexpr std::string_view kOneDump[] = {
    "286470300a5676657273696f6e0a70310a56322e31300a70320a7356656e74726965730a70330a286c70340a286470350a567265"
    "636f72645f69640a70360a49350a73567468726561645f69640a70370a4c3134303237383834383533373038384c0a735670726f"
    "66696c696e675f6e616d650a70380a56636166e9205c75323731335c75303030615c7530303563205c5530303031663630300a70"
    "390a73566475726174696f6e5f6d730a7031300a46302e32350a7356726574697265640a7031310a4930310a735669735f703270"
    "0a7031320a4930300a735674696d655f646973636f76657265645f737461727465645f6e730a7031330a4e7356696e7075745f73"
    "697a65730a7031340a286c7031350a286c7031360a49310a614937303030300a6161286c7031370a61735670726f636573735f67"
    "726f75700a7031380a2856300a7031390a5664656661756c745f70670a7032300a747032310a73566672616d65730a7032320a28"
    "6c7032330a28647032340a566e616d650a7032350a56660a7032360a735666696c656e616d650a7032370a56780a7032380a7356"
    "6c696e650a7032390a49330a73617361735670675f7374617475730a7033300a28647033310a6731390a28647033320a566c6173"
    "745f656e7175657565645f636f6c6c6563746976650a7033330a492d310a7373732e",
    "7d710028580700000076657273696f6e71015804000000322e313071025807000000656e747269657371035d71047d7105285809"
    "0000007265636f72645f696471064b0558090000007468726561645f696471074c3134303237383834383533373038384c0a580e"
    "00000070726f66696c696e675f6e616d6571085810000000636166c3a920e29c930a5c20f09f98807109580b0000006475726174"
    "696f6e5f6d73710a473fd0000000000000580700000072657469726564710b4930310a580600000069735f703270710c4930300a"
    "581a00000074696d655f646973636f76657265645f737461727465645f6e73710d4e580b000000696e7075745f73697a6573710e"
    "5d710f285d7110284b014a70110100655d711165580d00000070726f636573735f67726f75707112285801000000307113580a00"
    "000064656661756c745f7067711474711558060000006672616d657371165d71177d71182858040000006e616d65711958010000"
    "0066711a580800000066696c656e616d65711b580100000078711c58040000006c696e65711d4b0375617561580900000070675f"
    "737461747573711e7d711f68137d712058180000006c6173745f656e7175657565645f636f6c6c65637469766571214affffffff"
    "7373752e",
    "80027d710028580700000076657273696f6e71015804000000322e313071025807000000656e747269657371035d71047d710528"
    "58090000007265636f72645f696471064b0558090000007468726561645f696471078a0600c2ef36957f580e00000070726f6669"
    "6c696e675f6e616d6571085810000000636166c3a920e29c930a5c20f09f98807109580b0000006475726174696f6e5f6d73710a"
    "473fd0000000000000580700000072657469726564710b88580600000069735f703270710c89581a00000074696d655f64697363"
    "6f76657265645f737461727465645f6e73710d4e580b000000696e7075745f73697a6573710e5d710f285d7110284b014a701101"
    "00655d711165580d00000070726f636573735f67726f757071125801000000307113580a00000064656661756c745f7067711486"
    "711558060000006672616d657371165d71177d71182858040000006e616d657119580100000066711a580800000066696c656e61"
    "6d65711b580100000078711c58040000006c696e65711d4b0375617561580900000070675f737461747573711e7d711f68137d71"
    "2058180000006c6173745f656e7175657565645f636f6c6c65637469766571214affffffff7373752e",
    "80049560010000000000007d94288c0776657273696f6e948c04322e3130948c07656e7472696573945d947d94288c097265636f"
    "72645f6964944b058c097468726561645f6964948a0600c2ef36957f8c0e70726f66696c696e675f6e616d65948c10636166c3a9"
    "20e29c930a5c20f09f9880948c0b6475726174696f6e5f6d7394473fd00000000000008c077265746972656494888c0669735f70"
    "327094898c1a74696d655f646973636f76657265645f737461727465645f6e73944e8c0b696e7075745f73697a6573945d94285d"
    "94284b014a70110100655d94658c0d70726f636573735f67726f7570948c0130948c0a64656661756c745f70679486948c066672"
    "616d6573945d947d94288c046e616d65948c0166948c0866696c656e616d65948c0178948c046c696e65944b03756175618c0970"
    "675f737461747573947d9468137d948c186c6173745f656e7175657565645f636f6c6c656374697665944affffffff7373752e"};

const std::vector<std::string>& OneDumpInEveryProtocol() {
  static const std::vector<std::string> dumps = [] {
    std::vector<std::string> made;
    for (const std::string_view hex : kOneDump) {
      made.push_back(FromHex(hex));
      if (!hex.starts_with("80")) continue;
      made.push_back(made.back());
      ++made.back()[1];
    }
    return made;
  }();
  return dumps;
}

TEST(PickleDumpTest, EveryProtocolOfPythonsIsRead) {
  for (const std::string& bytes : OneDumpInEveryProtocol()) {
    EXPECT_EQ(SniffFlightRecord(bytes), FlightFormat::kPickle);
    const FlightRecord record = ReadPickle(bytes);
    EXPECT_THAT(record.notes, IsEmpty());
    ASSERT_EQ(record.entries.size(), 1u);
    const FlightEntry& entry = record.entries[0];
    EXPECT_EQ(
        test::TextOf(record, entry),
        "5 in unknown 0 default_pg: caf\u00e9 \u2713\n\\ \U0001F600 unknown unknown unknown, created unknown started "
        "unknown "
        "completed unknown took 250000 of unknown, [1,70000,][]  ->  , thread  140278848537088, state 0 retired 1 p2p "
        "false");
    EXPECT_EQ(test::StackOf(record, entry), "f x:3;");
    ASSERT_EQ(record.groups.size(), 2u);
    EXPECT_EQ(record.groups[0].last_enqueued, -1);
  }
}

TEST(PickleDumpTest, EveryProtocolLeavesWhatWasWholeBeforeACut) {
  for (const std::string& bytes : OneDumpInEveryProtocol()) {
    size_t most = 0;
    for (size_t length = 0; length < bytes.size(); ++length) {
      const auto record = test::One(ReadPickleDump(std::string_view(bytes).substr(0, length)));
      if (!record) {
        EXPECT_EQ(record.error().code, ErrorCode::kCorruptData) << length;
        EXPECT_EQ(most, 0u) << length;
        continue;
      }
      EXPECT_TRUE(record->truncated);
      ASSERT_GE(record->entries.size(), most) << length;
      most = record->entries.size();
    }
    EXPECT_EQ(most, 1u);
  }
}

TEST(PickleDumpTest, NumbersThatAreNoneAreRefused) {
  EXPECT_THAT(ErrorOf("I7x\n.").message, HasSubstr("INT: a number that is none"));
  EXPECT_THAT(ErrorOf("L99999999999999999999L\n.").message, HasSubstr("LONG: a number that is too large"));
  EXPECT_THAT(ErrorOf("(lp-1\n.").message, HasSubstr("PUT: a number that is none"));
  EXPECT_THAT(ErrorOf("g7\n.").message, HasSubstr("refers to number 7, which was never given"));
}

TEST(PickleDumpTest, ListsInSeveralPiecesAreOneList) {
  PickleWriter out;
  out.Dict().Text("entries").List();
  for (int64_t i = 0; i < 5; ++i) out.Dict().Text("record_id").Int(i).EndDict();
  out.EndList().Mark();
  for (int64_t i = 5; i < 8; ++i) out.Dict().Text("record_id").Int(i).EndDict();
  const FlightRecord record = ReadPickle(out.EndList().EndDict().Take());
  ASSERT_EQ(record.entries.size(), 8u);
  EXPECT_EQ(record.entries[7].record_id, 7);
}

TEST(PickleDumpTest, TheShortCutForUsualEntriesChangesNothing) {
  const std::string bytes = PickleOf(DumpOf(40));
  const FlightRecord with = ReadPickle(bytes), without = ReadPickle(bytes, PlainEntryPath::kUnused);
  EXPECT_EQ(test::TextOf(with), test::TextOf(without));
  for (size_t i = 0; i < with.entries.size(); ++i) {
    EXPECT_EQ(test::StackOf(with, with.entries[i]), test::StackOf(without, without.entries[i]));
  }
}

// Entries that follow the expected ones but for one thing: another state, stack, size, number without a value, group.
TEST(PickleDumpTest, AnEntryThatIsNearlyAsExpectedIsReadAsItIs) {
  Dump dump = DumpOf(120);
  for (size_t i = 0; i < dump.operations.size(); ++i) {
    test::DumpOperation& operation = dump.operations[i];
    operation.record_id = i % 11 == 0 ? 7 : static_cast<int64_t>(i) << (i % 5 * 10);
    operation.op_id = i % 7 == 0 ? -1 : static_cast<int64_t>(i) * 300;
    if (i % 13 == 0) operation.state = "scheduled", operation.retired = false, operation.completed_ns.reset();
    if (i % 13 == 1) operation.completed_ns = operation.time_created_ns + 1;
    if (i % 17 == 0) operation.frames = {0};
    if (i % 19 == 0) operation.input_sizes = {{static_cast<int64_t>(i)}};
    if (i % 23 == 0) operation.pg_id = 3;
    if (i % 29 == 0) operation.duration_ms = 0.25 * static_cast<double>(i);
  }
  const std::string bytes = PickleOf(dump);
  const FlightRecord with = ReadPickle(bytes), without = ReadPickle(bytes, PlainEntryPath::kUnused);
  EXPECT_EQ(test::TextOf(with), test::TextOf(without));
  ASSERT_EQ(with.entries.size(), 120u);
  for (size_t i = 0; i < with.entries.size(); ++i) {
    EXPECT_EQ(test::TextOf(with, with.entries[i]), test::TextOf(without, without.entries[i])) << i;
    EXPECT_EQ(test::StackOf(with, with.entries[i]), test::StackOf(without, without.entries[i])) << i;
  }
}

TEST(PickleDumpTest, EqualContentHasEqualIndices) {
  const FlightRecord record = ReadPickle(PickleOf(DumpOf(12)));
  EXPECT_EQ(record.stacks.size(), 3u);
  EXPECT_EQ(record.size_lists.size(), 5u);  // None, three inputs, one output.
  for (size_t i = 3; i < 12; ++i) {
    EXPECT_EQ(record.entries[i].input_sizes, record.entries[i - 3].input_sizes);
    EXPECT_EQ(record.entries[i].stack, record.entries[i - 2].stack);
  }
}

TEST(PickleDumpTest, EveryOtherOpcodeIsRefusedByNameAndPosition) {
  const std::string known = "(.FGIJKLMNVXadeghjlpqrstu)]}\x80\x85\x86\x87\x88\x89\x8a\x8c\x8d\x94\x95";
  for (int byte = 0; byte < 256; ++byte) {
    if (known.find(static_cast<char>(byte)) != std::string::npos) continue;
    PickleWriter out = Begun();
    const Error error = ErrorOf(out.Op(static_cast<uint8_t>(byte)).Take());
    EXPECT_EQ(error.code, ErrorCode::kUnsupported) << byte;
    EXPECT_THAT(error.message, StartsWith(OpcodeName(static_cast<uint8_t>(byte)) + ": "));
    EXPECT_EQ(error.byte_offset, 45u) << byte;
  }
}

TEST(PickleDumpTest, WhatCallsCodeIsRefusedAsSuch) {
  EXPECT_THAT(ErrorOf("\x80\x02"
                      "cos\nsystem\nX\x02\0\0\0id\x85R.")
                  .ToString(),
              HasSubstr("byte 2: GLOBAL: this opcode makes Python"));
  for (const auto& [bytes, name] : std::vector<std::pair<std::string, std::string>>{{"K\1)R.", "REDUCE"},
                                                                                    {"K\1)b.", "BUILD"},
                                                                                    {"K\1)\x81.", "NEWOBJ"},
                                                                                    {"(ios\nsystem\n.", "INST"},
                                                                                    {"(K\1o.", "OBJ"},
                                                                                    {"\x82\x01.", "EXT1"},
                                                                                    {"\x83\x01\x01.", "EXT2"},
                                                                                    {"P1\n.", "PERSID"},
                                                                                    {"K\1Q.", "BINPERSID"},
                                                                                    {"K\1K\1\x93.", "STACK_GLOBAL"}}) {
    const Error error = ErrorOf("\x80\x02" + bytes);
    EXPECT_EQ(error.code, ErrorCode::kUnsupported);
    EXPECT_THAT(error.message, StartsWith(name + ": this opcode makes Python import or call something"));
  }
}

TEST(PickleDumpTest, LimitsHold) {
  std::string deep = "\x80\x02";
  for (int i = 0; i < 65; ++i) deep += "](";
  EXPECT_THAT(ErrorOf(deep).ToString(), HasSubstr("nests deeper than 64 levels"));
  std::string tuples = "\x80\x02K\1";
  for (int i = 0; i < 65; ++i) tuples += "\x85";
  EXPECT_EQ(ErrorOf(tuples + ".").code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(ErrorOf("\x80\x02K\1\x8a\x09"
                    "123456789.")
                .code,
            ErrorCode::kLimitExceeded);
  EXPECT_EQ(ErrorOf(std::string("\x80\x02}r\xff\xff\xff\xff.")).code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(ErrorOf("\x80\x02](" + std::string(size_t{5} << 20, 'N')).code, ErrorCode::kLimitExceeded);
  EXPECT_THAT(ErrorOf(PickleOf(DumpOf(1)) + "x").ToString(), HasSubstr("continues after its end"));
  EXPECT_FALSE(ReadPickle(PickleOf(DumpOf(1)) + "\n ").truncated);
}

TEST(PickleDumpTest, LengthsBeyondTheFileAreACut) {
  PickleWriter out = Begun();
  out.Dict().Text("record_id").Int(3).EndDict();
  const FlightRecord record = ReadPickle(out.Raw("X\xff\xff\xff\xff").Raw("abc").Take());
  EXPECT_TRUE(record.truncated);
  EXPECT_EQ(record.entries.size(), 1u);
}

TEST(PickleDumpTest, SharedListsDoNotMultiply) {
  // Each list holds the one before ten times: ten to the thirtieth numbers if it were written out.
  std::string laughs = "\x80\x02](K\1K\1eq";
  laughs += '\0';
  for (char i = 0; i < 30; ++i) {
    laughs += "](";
    for (int j = 0; j < 10; ++j) (laughs += 'h') += i;
    (laughs += "eq") += static_cast<char>(i + 1);
  }
  EXPECT_EQ(ErrorOf(laughs + ".").code, ErrorCode::kCorruptData);

  // One long shape, asked for by very many lists of sizes.
  PickleWriter out = Begun();
  out.List();
  for (int i = 0; i < 20000; ++i) out.Int(i % 200);
  const uint32_t shape = out.EndList().Put();
  for (int i = 0; i < 2000; ++i) {
    out.Dict().Text("record_id").Int(i).Text("input_sizes").List();
    for (int j = 0; j < i; ++j) out.Get(shape);
    out.EndList().EndDict();
  }
  EXPECT_EQ(ErrorOf(Ended(out)).code, ErrorCode::kLimitExceeded);
}

TEST(PickleDumpTest, ListsThatHoldThemselvesAreRefused) {
  EXPECT_EQ(ErrorOf(std::string("\x80\x02]q\0(h\0e.", 9)).code, ErrorCode::kUnsupported);
  EXPECT_EQ(ErrorOf(std::string("\x80\x02}q\0(X\1\0\0\0ah\0u.", 16)).code, ErrorCode::kUnsupported);
  EXPECT_EQ(ErrorOf(std::string("\x80\x02]q\0h\0a.", 8)).code, ErrorCode::kUnsupported);
}

TEST(PickleDumpTest, NonsenseForTheStackIsRefused) {
  for (const std::string bytes : {"e.",    "u.",        "t.",           "a.",      "s.",         "\x86.",        "(e.",
                                  "](]u.", "K\1(K\2e.", "}(K\1u.",      "h\5.",    "j\5\5\5\5.", "q\1.",         "](.",
                                  ".",     "K\1K\2.",   "K\1\x80\x02.", "](q\1e.", "]q\1q\2.",   "K\1q\1K\2q\1."}) {
    SCOPED_TRACE(bytes);
    EXPECT_FALSE(ErrorOf("\x80\x02" + bytes).message.empty());
  }
}

TEST(PickleDumpTest, WrongTypesAreNotedAndUnknown) {
  const auto text = [](PickleWriter& out) { out.Text("x"); };
  const auto number = [](PickleWriter& out) { out.Int(7); };
  const auto list = [](PickleWriter& out) { out.List().Int(1).Text("a").EndList(); };
  const auto real = [](PickleWriter& out) { out.Float(-1.5); };
  EXPECT_EQ(EntryWith("record_id", text, 1).record_id, kNotRecorded);
  EXPECT_EQ(EntryWith("collective_seq_id", list, 1).collective_sequence, kNotRecorded);
  EXPECT_EQ(EntryWith("time_created_ns", real, 1).created_unix_ns, kNotRecorded);
  EXPECT_EQ(EntryWith("duration_ms", real, 1).duration_ns, kNotRecorded);
  EXPECT_EQ(EntryWith(
                "timeout_ms", [](PickleWriter& out) { out.Int(INT64_MAX); }, 1)
                .timeout_ns,
            kNotRecorded);
  EXPECT_EQ(EntryWith("input_sizes", list, 1).input_sizes, 0u);
  EXPECT_EQ(EntryWith("input_dtypes", list, 1).input_dtypes, 0u);
  EXPECT_EQ(EntryWith("frames", number, 1).stack, 0u);
  EXPECT_EQ(EntryWith("profiling_name", number, 1).operation, 0u);
  EXPECT_EQ(EntryWith("thread_id", text, 1).thread_id, kNotRecorded);
  EXPECT_EQ(EntryWith("state", text, 1).state, evidence::EntryState::kUnknown);
  EXPECT_EQ(EntryWith("retired", number, 1).retired, evidence::Tristate::kUnknown);
  EXPECT_FALSE(EntryWith("is_p2p", text, 1).is_p2p);
  EntryWith("process_group", number, 1);

  PickleWriter out;
  out.Dict()
      .Text("version")
      .Int(3)
      .Text("pg_config")
      .List()
      .EndList()
      .Text("pg_status")
      .Int(1)
      .Text("entries")
      .Dict()
      .EndDict();
  EXPECT_THAT(ReadPickle(out.EndDict().Take()).notes, ::testing::SizeIs(4));
}

TEST(PickleDumpTest, EntriesThatAreNoneAreNotedAndLeftOut) {
  PickleWriter out = Begun();
  out.None().Dict().Text("record_id").Int(1).EndDict().Int(5);
  const FlightRecord record = ReadPickle(Ended(out));
  EXPECT_EQ(record.entries.size(), 1u);
  EXPECT_THAT(record.notes, ElementsAre(HasSubstr("\"entries\" has an impossible value, 2 times")));
}

TEST(PickleDumpTest, BadUtf8IsReplaced) {
  PickleWriter out = Begun();
  out.Dict()
      .Text("profiling_name")
      .Text(
          "a\xff"
          "b")
      .EndDict();
  const FlightRecord record = ReadPickle(Ended(out));
  EXPECT_EQ(record.texts[record.entries[0].operation],
            "a\xEF\xBF\xBD"
            "b");
}

TEST(PickleDumpTest, ACutBehindTwoMarksAtOnePlaceIsRefused) {
  // A list, in it an empty dict, and what should be its content opened twice: both go when the cut dump is closed.
  EXPECT_THAT(ErrorOf(std::string("\x80\x02](]}((", 8)).message, HasSubstr("ends before any content"));
}

TEST(PickleDumpTest, ACutAnywhereLeavesWhatWasWhole) {
  const std::string bytes = PickleOf(DumpOf(6));
  const FlightRecord whole = ReadPickle(bytes);
  size_t most = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto record = test::One(ReadPickleDump(std::string_view(bytes).substr(0, length)));
    const auto by_stack = test::One(ReadPickleDump(std::string_view(bytes).substr(0, length), PlainEntryPath::kUnused));
    ASSERT_EQ(record.has_value(), by_stack.has_value()) << length;
    if (!record) {
      EXPECT_EQ(record.error().code, ErrorCode::kCorruptData);
      EXPECT_EQ(most, 0u);
      continue;
    }
    EXPECT_TRUE(record->truncated);
    EXPECT_THAT(record->notes, IsEmpty()) << length;
    EXPECT_EQ(test::TextOf(*record), test::TextOf(*by_stack));
    ASSERT_GE(record->entries.size(), most) << length;
    most = record->entries.size();
    for (size_t i = 0; i < most; ++i) {
      EXPECT_EQ(test::TextOf(*record, record->entries[i]), test::TextOf(whole, whole.entries[i])) << length;
    }
  }
  EXPECT_EQ(most, 6u);
}

}  // namespace
}  // namespace lockstep::ingest
