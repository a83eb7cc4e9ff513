// Runs a libFuzzer target once on every file of the folders named, without libFuzzer.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i], error)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    if (error) {
      fmt::print(stderr, "{}: {}\n", argv[i], error.message());
      return 1;
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    fmt::print("{}\n", file.filename().string());
    std::fflush(stdout);  // A crash must not take the name of its input with it.
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  fmt::print("{} inputs replayed\n", files.size());
  return files.empty() ? 1 : 0;
}
