#include "node/agent/capture/capture_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/ascii.h"

namespace lockstep::agent {
namespace {

constexpr size_t kMaxTextBytes = size_t{16} << 20;
constexpr std::string_view kEnding = ".json";
constexpr std::string_view kTemporary = ".json.new";

bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c); });
}

bool EndsWith(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

// Null: read. Else why not.
const char* ReadWhole(int folder, const std::string& name, std::string* text) {
  const UniqueFd file(openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat entry;
  if (!file.valid() || fstat(file.get(), &entry) != 0) return std::strerror(errno);
  if (!S_ISREG(entry.st_mode)) return "is not a regular file";
  if (static_cast<uint64_t>(entry.st_size) > kMaxTextBytes) return "is larger than 16 MiB";
  char bytes[16384];
  while (text->size() <= kMaxTextBytes) {
    const ssize_t count = read(file.get(), bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::strerror(errno);
    if (count == 0) return nullptr;
    text->append(bytes, count);
  }
  return "is larger than 16 MiB";
}

}  // namespace

int StoreFiles::Create(int folder, const char* name) {
  return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}
ssize_t StoreFiles::Write(int file, const char* bytes, size_t size) { return write(file, bytes, size); }
int StoreFiles::Sync(int file) { return fsync(file); }
int StoreFiles::Rename(int folder, const char* from, const char* to) { return renameat(folder, from, folder, to); }
int StoreFiles::Unlink(int folder, const char* name) { return unlinkat(folder, name, 0); }

Error CaptureStore::Failed(const std::string& what, const std::string& name) const {
  return Error{.code = ErrorCode::kIo, .message = what + ": " + std::strerror(errno), .file = folder_ + "/" + name};
}

Result<std::unique_ptr<CaptureStore>> CaptureStore::Open(const std::string& folder, StoreFiles* files) {
  static StoreFiles real;  // Stateless.
  std::unique_ptr<CaptureStore> store(new CaptureStore());
  store->folder_ = folder;
  store->files_ = files != nullptr ? files : &real;
  for (size_t slash = folder.find('/', 1); !folder.empty(); slash = folder.find('/', slash + 1)) {
    if (mkdir(folder.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST && slash == std::string::npos) {
      return Error{
          .code = ErrorCode::kIo, .message = std::string("cannot be made: ") + std::strerror(errno), .file = folder};
    }
    if (slash == std::string::npos) break;
  }
  store->fd_ = UniqueFd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat entry;
  if (!store->fd_.valid() || fstat(store->fd_.get(), &entry) != 0) {
    return Error{
        .code = ErrorCode::kIo, .message = std::string("cannot be opened: ") + std::strerror(errno), .file = folder};
  }
  if (entry.st_uid != geteuid()) {
    return Error{.code = ErrorCode::kPermissionDenied,
                 .message = fmt::format("belongs to uid {}, not to the daemon's", entry.st_uid),
                 .file = folder};
  }
  if ((entry.st_mode & 0077) != 0 && fchmod(store->fd_.get(), 0700) != 0) {
    return Error{
        .code = ErrorCode::kPermissionDenied, .message = "is open to others and cannot be closed", .file = folder};
  }
  return store;
}

CaptureStore::Loaded CaptureStore::Load() {
  Loaded loaded;
  std::vector<std::string> names;
  const int copy = openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = copy >= 0 ? fdopendir(copy) : nullptr;
  if (entries == nullptr) {
    if (copy >= 0) close(copy);
    loaded.problems.push_back(Failed("cannot be listed", "").ToString());
    return loaded;
  }
  while (const dirent* entry = readdir(entries)) names.emplace_back(entry->d_name);
  closedir(entries);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (EndsWith(name, kTemporary)) files_->Unlink(fd_.get(), name.c_str());
    if (!EndsWith(name, kEnding)) continue;
    Entry entry;
    entry.id = name.substr(0, name.size() - kEnding.size());
    if (!IsId(entry.id)) continue;  // Not one of ours.
    if (const char* why = ReadWhole(fd_.get(), name, &entry.text)) {
      loaded.problems.push_back(SetAside(entry.id, why));
      continue;
    }
    loaded.entries.push_back(std::move(entry));
  }
  return loaded;
}

Status CaptureStore::Write(const std::string& id, const std::string& text) {
  if (!IsId(id)) return Error{.code = ErrorCode::kInvalidArgument, .message = "is not a capture id", .file = id};
  const std::string temporary = id + std::string(kTemporary);
  const std::string name = id + std::string(kEnding);
  files_->Unlink(fd_.get(), temporary.c_str());
  Status status;
  {
    const UniqueFd file(files_->Create(fd_.get(), temporary.c_str()));
    if (!file.valid()) return Failed("cannot be made", temporary);
    for (size_t done = 0; status && done < text.size();) {
      const ssize_t count = files_->Write(file.get(), text.data() + done, text.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count == 0) errno = ENOSPC;
      if (count <= 0) {
        status = Failed("cannot be written", temporary);
      } else {
        done += count;
      }
    }
    if (status && files_->Sync(file.get()) != 0) status = Failed("cannot be flushed", temporary);
  }
  if (status && files_->Rename(fd_.get(), temporary.c_str(), name.c_str()) != 0) {
    status = Failed("cannot be renamed", temporary);
  }
  if (!status) {
    files_->Unlink(fd_.get(), temporary.c_str());
    return status;
  }
  if (files_->Sync(fd_.get()) != 0) return Failed("its folder cannot be flushed", name);
  return {};
}

Status CaptureStore::Remove(const std::string& id) {
  if (!IsId(id)) return Error{.code = ErrorCode::kInvalidArgument, .message = "is not a capture id", .file = id};
  const std::string name = id + std::string(kEnding);
  if (files_->Unlink(fd_.get(), name.c_str()) != 0 && errno != ENOENT) return Failed("cannot be removed", name);
  return {};
}

std::string CaptureStore::SetAside(const std::string& id, const std::string& why) {
  const std::string name = id + std::string(kEnding);
  const std::string aside = name + ".corrupt";
  const bool renamed = files_->Rename(fd_.get(), name.c_str(), aside.c_str()) == 0;
  return fmt::format(
      "{}/{}: {}; {}", folder_, name, why,
      renamed ? "set aside as " + aside : "and could not be set aside: " + std::string(std::strerror(errno)));
}

}  // namespace lockstep::agent
