#include "ingest/nccl/log_reader.h"

#include <algorithm>
#include <cstring>

#include "base/text_scan.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclMember;

// NCCL writes at most 1 KiB a line; launchers put a little before it. What is longer is read up to here.
constexpr size_t kLineLimit = 8192;
constexpr size_t kNcclLineLimit = 1023;
constexpr size_t kTextLimit = 1024;

bool MayBeNccl(std::string_view line) { return line.find("NCCL ") != std::string_view::npos; }

}  // namespace

NcclLogReader::NcclLogReader(std::string_view file_name, std::optional<int32_t> rank) : rank_(rank) {
  job_.files.emplace_back(file_name);
  job_.texts.emplace_back();
}

void NcclLogReader::Read(std::string_view text) {
  LineScanner lines(text);
  for (std::string_view line; lines.Next(&line);) {
    Line(line.substr(0, kLineLimit), lines.number(), line.size() > kLineLimit);
  }
}

void NcclLogReader::Line(std::string_view raw, uint64_t number, bool cut) {
  if (!MayBeNccl(raw)) {
    ++job_.lines.other;
    return;
  }
  std::string storage;
  const std::string_view line = WithoutColours(raw, storage);
  const std::optional<NcclLogLine> parsed = ParseNcclLogLine(line);
  if (!parsed) return BareLine(line, number);
  const std::optional<uint32_t> process = FindProcess(*parsed);
  if (!process) {
    ++job_.lines.unknown;
    return;
  }
  NcclLineInHand hand{.line = *parsed, .message = parsed->message, .number = number, .process = *process};
  Words words(hand.message);
  if (words.Skip("[Rank ") && words.TakeNumber() && words.Skip("] ")) hand.message = words.rest();
  ++Process(hand).line_count;
  const size_t length = line.size() - parsed->prefix.size();
  if (cut || length >= kNcclLineLimit) ++job_.lines.cut;

  const char* kind = nullptr;
  if (parsed->level == NcclLevel::kCall) {
    kind = "api_call";
  } else if (parsed->level == NcclLevel::kTrace) {
    kind = "trace";
  } else if (parsed->level == NcclLevel::kWarn || parsed->level == NcclLevel::kAbort) {
    kind = HandleNcclError(*this, hand);
  } else {
    kind = HandleNcclEvent(*this, hand);
    if (kind == nullptr) kind = HandleNcclError(*this, hand);
  }
  if (kind != nullptr) {
    ++job_.lines.nccl;
    Count(kind);
    return;
  }
  ++job_.lines.unknown;
  if (job_.unknown_samples.size() < kMostUnknownSamples) {
    job_.unknown_samples.push_back(job_.files[0] + ":" + std::to_string(number) + ": " +
                                   std::string(hand.message.substr(0, 200)));
  }
}

/// "NCCL version 2.9.9+cuda11.2": NCCL's, without the form of its other lines.
void NcclLogReader::BareLine(std::string_view line, uint64_t number) {
  constexpr std::string_view kVersion = "NCCL version ";
  const size_t at = line.find(kVersion);
  if (at == std::string_view::npos || at + kVersion.size() >= line.size() || line[at + kVersion.size()] < '1' ||
      line[at + kVersion.size()] > '9') {
    ++job_.lines.other;
    return;
  }
  ++job_.lines.nccl;
  Count("version");
  const int32_t rank = LauncherRank(line.substr(0, at)).value_or(-1);
  const std::string_view version = line.substr(at + kVersion.size(), 64);
  bare_versions_.try_emplace(rank, std::string(version.substr(0, version.find(' '))), number);
}

std::optional<uint32_t> NcclLogReader::FindProcess(const NcclLogLine& line) {
  const std::optional<int32_t> launcher = LauncherRank(line.prefix);
  ProcessKey key{std::string(line.host.substr(0, 255)), line.pid, launcher.value_or(-1)};
  const auto found = processes_.find(key);
  if (found != processes_.end()) return found->second;
  if (processes_.size() >= kProcessLimit) return {};
  const auto idx = static_cast<uint32_t>(job_.processes.size());
  evidence::NcclProcess& process = job_.processes.emplace_back();
  process.host = std::get<0>(key);
  process.pid = line.pid;
  process.launcher_rank = launcher ? launcher : rank_;
  processes_.emplace(std::move(key), idx);
  return idx;
}

uint32_t NcclLogReader::Intern(std::string_view text) {
  if (text.empty()) return 0;
  const auto [found, inserted] =
      texts_.try_emplace(std::string(text.substr(0, kTextLimit)), static_cast<uint32_t>(job_.texts.size()));
  if (inserted) job_.texts.push_back(found->first);
  return found->second;
}

uint32_t NcclLogReader::NewMember(uint32_t process) {
  if (job_.members.size() >= kMemberLimit) return static_cast<uint32_t>(job_.members.size() - 1);
  const auto idx = static_cast<uint32_t>(job_.members.size());
  job_.members.emplace_back().process = process;
  members_of_process_[process].push_back(idx);
  return idx;
}

NcclMember& NcclLogReader::MemberOfThread(const NcclLineInHand& hand) {
  Thread& thread = threads_[{hand.process, hand.line.tid}];
  if (thread.member != UINT32_MAX) return job_.members[thread.member];
  const std::vector<uint32_t>& members = members_of_process_[hand.process];
  // Threads other than the one that creates write about it too; old versions' lines come before their communicator's.
  thread.member = members.size() == 1 && job_.members[members[0]].pointer != 0 ? members[0] : NewMember(hand.process);
  return job_.members[thread.member];
}

NcclMember& NcclLogReader::MemberInCreation(const NcclLineInHand& hand) {
  Thread& thread = threads_[{hand.process, hand.line.tid}];
  if (thread.closed || thread.member == UINT32_MAX) thread = Thread{NewMember(hand.process), false};
  return job_.members[thread.member];
}

NcclMember& NcclLogReader::MemberOfConnection(const NcclLineInHand& hand, int32_t from, int32_t to) {
  const auto fits = [&](const NcclMember& member) {
    return member.rank < 0 || ((member.rank == from || member.rank == to) &&
                               (member.rank_count < 0 || std::max(from, to) < member.rank_count));
  };
  const auto thread = threads_.find({hand.process, hand.line.tid});
  if (thread != threads_.end() && thread->second.member != UINT32_MAX && fits(job_.members[thread->second.member])) {
    return job_.members[thread->second.member];
  }
  // Connections are made when they are first used since 2.23, by another thread than the one that created.
  const std::vector<uint32_t>& members = members_of_process_[hand.process];
  constexpr size_t kSearchLimit = 64;
  for (size_t i = members.size(); i-- > 0 && members.size() - i <= kSearchLimit;) {
    if (fits(job_.members[members[i]])) return job_.members[members[i]];
  }
  return MemberOfThread(hand);
}

NcclMember& NcclLogReader::MemberOfPointer(const NcclLineInHand& hand, uint64_t pointer, bool create_anew) {
  Thread& thread = threads_[{hand.process, hand.line.tid}];
  if (pointer != 0 && !create_anew) {
    const auto found = members_by_pointer_.find({hand.process, pointer});
    if (found != members_by_pointer_.end()) {
      thread.member = found->second;
      return job_.members[thread.member];
    }
  }
  const bool usable =
      thread.member != UINT32_MAX && !thread.closed && !create_anew && job_.members[thread.member].pointer == 0;
  if (!usable) {
    thread.member = NewMember(hand.process);
    thread.closed = false;
  }
  NcclMember& member = job_.members[thread.member];
  if (pointer != 0) {
    member.pointer = pointer;
    members_by_pointer_[{hand.process, pointer}] = thread.member;
  }
  return member;
}

void NcclLogReader::CloseThread(const NcclLineInHand& hand) { threads_[{hand.process, hand.line.tid}].closed = true; }

evidence::NcclJob NcclLogReader::Finish() {
  for (evidence::NcclProcess& process : job_.processes) {
    if (!process.version.empty()) continue;
    auto found = bare_versions_.find(process.launcher_rank.value_or(-1));
    if (found == bare_versions_.end() && job_.processes.size() == 1) found = bare_versions_.begin();
    if (found == bare_versions_.end()) continue;
    process.version = found->second.first;
    process.version_place = {0, found->second.second};
  }
  // A line without a process: one of several processes wrote it, and it is not known which.
  if (const auto found = bare_versions_.find(-1); found != bare_versions_.end() && !job_.processes.empty()) {
    evidence::NcclProcess& first = job_.processes.front();
    if (first.version.empty()) {
      first.version = found->second.first;
      first.version_place = {0, found->second.second};
    }
  }
  return std::move(job_);
}

}  // namespace lockstep::ingest
