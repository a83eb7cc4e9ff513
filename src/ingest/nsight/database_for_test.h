#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

/// SQLite files for tests, made by SQLite itself.
namespace lockstep::ingest::nsight::test {

/// A folder of the running test's own, emptied at its beginning and gone with this.
class TestFolder {
 public:
  TestFolder() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / (std::string("lockstep_") + test->test_suite_name() + "_" +
                                                      test->name() + "_" + std::to_string(::getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string File(const std::string& name) const { return (path_ / name).string(); }
  size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline void Execute(const std::string& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message << " in " << sql;
  sqlite3_free(message);
  sqlite3_close(connection);
}

inline std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The tables that a small report has, with rows for StringIds. Process 42 has thread 43: globalPid is 42 << 24.
inline constexpr int64_t kPid = int64_t{42} << 24;
inline constexpr int64_t kTid = kPid + 43;
inline constexpr int64_t kStartNs = 1'700'000'000'000'000'000;  ///< Of the session.
inline constexpr const char* kSchema = R"(
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
  CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
  CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, name TEXT, nameEnum INTEGER, value TEXT);
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
      correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
      nameId INTEGER);
  CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
      textId INTEGER, domainId INTEGER);
  INSERT INTO StringIds VALUES (0, ''), (1, 'gemm(float*)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'),
      (4, 'cuLaunchKernelEx'), (5, 'forward'), (6, 'train');
  INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');
  INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
  INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'Hostname', 619, 'node7');
)";

}  // namespace lockstep::ingest::nsight::test
