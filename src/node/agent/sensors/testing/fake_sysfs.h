#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace lockstep::agent {

/// A tree laid out as the kernel's, with what a test puts there.
class FakeSysfs : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(folder_.made()); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }

 private:
  const TemporaryFolder folder_{"fake_sysfs"};

 protected:
  const std::filesystem::path root_ = folder_.path();
};

}  // namespace lockstep::agent
