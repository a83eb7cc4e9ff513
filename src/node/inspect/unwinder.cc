#include "node/inspect/unwinder.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "node/inspect/elf_bias.h"
#include "node/inspect/shown_text.h"
#include "node/inspect/stack_limits.h"

namespace lockstep::inspect {
namespace {

constexpr size_t kMaxMangledBytes = 4096;
constexpr size_t kMaxVdsoBytes = size_t{64} << 10;

/// Debugging information beside the file is not looked for: it could lie anywhere, and be fetched over the network.
int FindNoDebugInfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) {
  return -1;
}
int FindNoElf(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

const Dwfl_Callbacks kCallbacks = {.find_elf = FindNoElf,
                                   .find_debuginfo = FindNoDebugInfo,
                                   .section_address = dwfl_offline_section_address,
                                   .debuginfo_path = nullptr};

bool FindBiasOfFile(int fd, const MemoryRange& range, uint64_t* bias) {
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(fd, ELF_C_READ_MMAP, nullptr), elf_end);
  return elf != nullptr && FindBias(elf.get(), range, bias);
}

/// The kernel's own code in each process is not a file: its copy is, as long as the descriptor is open.
UniqueFd CopyToFile(const std::string& bytes) {
  UniqueFd fd(::memfd_create("vdso", MFD_CLOEXEC));
  if (!fd.valid() || ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return {};
  return fd;
}

std::string Demangle(const char* name) {
  if (std::strncmp(name, "_Z", 2) != 0 || std::strlen(name) > kMaxMangledBytes) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && plain != nullptr ? plain.get() : name;
}

}  // namespace

std::unique_ptr<Unwinder> Unwinder::Create(pid_t pid, const std::vector<MemoryRange>& ranges) {
  elf_version(EV_CURRENT);
  std::unique_ptr<Unwinder> unwinder(new Unwinder(pid));
  unwinder->dwfl_ = dwfl_begin(&kCallbacks);
  if (unwinder->dwfl_ == nullptr) return nullptr;
  unwinder->AddModules(ranges);
  static const Dwfl_Thread_Callbacks kThreadCallbacks = {.next_thread = GetThread,
                                                         .get_thread = GetThreadById,
                                                         .memory_read = ReadWord,
                                                         .set_initial_registers = SetRegisters,
                                                         .detach = nullptr,
                                                         .thread_detach = nullptr};
  if (!dwfl_attach_state(unwinder->dwfl_, nullptr, pid, &kThreadCallbacks, unwinder.get())) return nullptr;
  return unwinder;
}

Unwinder::~Unwinder() {
  if (dwfl_ != nullptr) dwfl_end(dwfl_);
}

void Unwinder::AddModules(const std::vector<MemoryRange>& ranges) {
  std::set<std::string> seen;
  dwfl_report_begin(dwfl_);
  for (const MemoryRange& range : ranges) {
    if (!range.executable || range.path.empty() || !seen.insert(range.path).second) continue;
    UniqueFd file;
    if (range.path == "[vdso]") {
      file = CopyToFile(ReadMemory(pid_, range.start, std::min<size_t>(range.end - range.start, kMaxVdsoBytes)));
    } else if (range.inode != 0 && range.path.starts_with('/')) {
      file = OpenMappedFile(pid_, range.path);
    }
    uint64_t bias = 0;
    if (!file.valid() || !FindBiasOfFile(file.get(), range, &bias)) continue;
    // The descriptor is libdw's from here on, unless it refuses it.
    if (dwfl_report_elf(dwfl_, range.path.c_str(), range.path.c_str(), file.get(), bias, true) != nullptr)
      (void)file.Release();
  }
  dwfl_report_end(dwfl_, nullptr, nullptr);
}

pid_t Unwinder::GetThread(Dwfl*, void*, void**) { return 0; }

bool Unwinder::GetThreadById(Dwfl*, pid_t, void* argument, void** thread_argument) {
  *thread_argument = argument;
  return true;
}

bool Unwinder::ReadWord(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* argument) {
  const ThreadSnapshot* snapshot = static_cast<Unwinder*>(argument)->snapshot_;
  if (snapshot == nullptr || address < snapshot->stack_address) return false;
  const uint64_t offset = address - snapshot->stack_address;
  if (snapshot->stack.size() < sizeof(*word) || offset > snapshot->stack.size() - sizeof(*word)) return false;
  std::memcpy(word, snapshot->stack.data() + offset, sizeof(*word));
  return true;
}

bool Unwinder::SetRegisters(Dwfl_Thread* thread, void* argument) {
  const ThreadSnapshot* snapshot = static_cast<Unwinder*>(argument)->snapshot_;
  for (size_t i = 0; i < snapshot->registers.size(); ++i) {
    if (!snapshot->registers[i]) continue;
    const Dwarf_Word value = *snapshot->registers[i];
    if (!dwfl_thread_state_registers(thread, static_cast<int>(i), 1, &value)) return false;
  }
  return true;
}

int Unwinder::TakeFrame(Dwfl_Frame* frame, void* argument) {
  auto* stack = static_cast<Stack*>(argument);
  Dwarf_Addr address = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &address, &is_activation)) return DWARF_CB_ABORT;
  // A call's return address may belong to the next function or line.
  stack->addresses.push_back(is_activation || address == 0 ? address : address - 1);
  return stack->addresses.size() < kMaxFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

Unwinder::Stack Unwinder::Unwind(const ThreadSnapshot& snapshot) {
  snapshot_ = &snapshot;
  Stack stack;
  const int result = dwfl_getthread_frames(dwfl_, snapshot.tid, TakeFrame, &stack);
  snapshot_ = nullptr;
  stack.complete = result == 0 && !stack.addresses.empty();
  return stack;
}

evidence::StackFrame Unwinder::Describe(uint64_t address) {
  if (const auto found = described_.find(address); found != described_.end()) return found->second;
  evidence::StackFrame frame;
  if (Dwfl_Module* module = dwfl_addrmodule(dwfl_, address); module != nullptr) {
    const char* path = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    frame.file = ShownText(path == nullptr ? "" : path);
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* name = dwfl_module_addrinfo(module, address, &offset, &symbol, nullptr, nullptr, nullptr);
    if (name != nullptr) frame.function = ShownText(Demangle(name));
  }
  described_.emplace(address, frame);
  return frame;
}

void Unwinder::AddLine(uint64_t address, evidence::StackFrame* frame) {
  Dwfl_Module* module = dwfl_addrmodule(dwfl_, address);
  Dwfl_Line* found = module == nullptr ? nullptr : dwfl_module_getsrc(module, address);
  int line = 0;
  const char* file = found == nullptr ? nullptr : dwfl_lineinfo(found, nullptr, &line, nullptr, nullptr, nullptr);
  if (file == nullptr) return;
  frame->file = ShownText(file);
  frame->line = line;
}

}  // namespace lockstep::inspect
