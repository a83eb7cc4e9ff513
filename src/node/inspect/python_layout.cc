#include "node/inspect/python_layout.h"

#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>

#include "node/inspect/elf_bias.h"
#include "node/inspect/privilege.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/remote_memory.h"

namespace lockstep::inspect {
namespace {

constexpr size_t kMaxSymbols = size_t{1} << 20;
constexpr uint64_t kMaxOffset = uint64_t{1} << 22;  // Of any field: the runtime has some 460 KB.

// By offsetof over CPython's own headers of 3.11.2, 3.11.7 and 3.12.1, 64-bit; internal structures do not change within
// a minor version.
constexpr PythonLayout kPython311 = {
    .minor = 11,
    .interpreters_head = 40,
    .interpreter_next = 0,
    .threads_head = 16,
    .thread_next = 8,
    .thread_interpreter = 16,
    .thread_native_id = 160,
    .thread_frame = 56,
    .frame_in_cframe = true,
    .cframe_frame = 8,
    .frame_code = 32,
    .frame_previous = 48,
    .frame_instruction = 56,
    .frame_owner = 69,
    .code_filename = 112,
    .code_name = 120,
    .code_qualname = 128,
    .code_linetable = 136,
    .code_firstlineno = 72,
    .code_instructions = 184,
    .bytes_size = 16,
    .bytes_data = 32,
    .text_length = 16,
    .text_state = 32,
    .text_ascii_data = 48,
    .text_compact_data = 72,
    .object_type = 8,
    .gil_holder = 368,
    .gil_locked = 376,
    .gil_place = PythonLayout::GilPlace::kRuntime,
};

constexpr PythonLayout Python312() {
  PythonLayout layout = kPython311;
  layout.minor = 12;
  layout.threads_head = 72;
  layout.thread_native_id = 144;
  layout.cframe_frame = 0;
  layout.frame_code = 0;
  layout.frame_previous = 8;
  layout.frame_owner = 70;
  layout.first_shim_owner = 3;
  layout.code_firstlineno = 68;
  layout.code_instructions = 192;
  layout.text_ascii_data = 40;
  layout.text_compact_data = 56;
  layout.gil_place = PythonLayout::GilPlace::kBehindPointer;
  layout.gil_pointer = 384;
  layout.gil_holder = 8;
  layout.gil_locked = 16;
  return layout;
}

/// What _PyRuntime begins with since 3.13, for debuggers: _Py_DebugOffsets, here as 64-bit words behind the cookie.
namespace words313 {
enum Word : size_t {
  kFreeThreaded = 1,
  kInterpretersHead = 4,
  kInterpreterNext = 7,
  kThreadsHead = 8,
  kGilLocked = 16,
  kGilHolder = 17,
  kThreadNext = 20,
  kThreadInterpreter = 21,
  kThreadFrame = 22,
  kThreadNativeId = 24,
  kFramePrevious = 28,
  kFrameCode = 29,
  kFrameInstruction = 30,
  kFrameOwner = 32,
  kCodeFilename = 34,
  kCodeName = 35,
  kCodeQualname = 36,
  kCodeLinetable = 37,
  kCodeFirstlineno = 38,
  kCodeInstructions = 42,
  kObjectType = 44,
  kBytesSize = 64,
  kBytesData = 65,
  kTextState = 67,
  kTextLength = 68,
  kTextAsciiSize = 69,
  kCount = 72,
};
}  // namespace words313

Result<PythonLayout> ReadLayout313(pid_t pid, const PythonSymbols& symbols) {
  using namespace words313;
  const std::string bytes = ReadMemory(pid, symbols.runtime, 8 + kCount * 8);
  if (bytes.size() != 8 + kCount * 8 || !bytes.starts_with("xdebugpy"))
    return Error{.code = ErrorCode::kUnsupported, .message = "its Python has no table of offsets where 3.13 has it"};
  std::array<uint64_t, kCount> word = {};
  std::memcpy(word.data(), bytes.data() + 8, sizeof(word));
  if (word[kFreeThreaded] != 0)
    return Error{.code = ErrorCode::kUnsupported, .message = "its Python is built without the global lock"};
  const PythonLayout layout = {
      .minor = 13,
      .interpreters_head = word[kInterpretersHead],
      .interpreter_next = word[kInterpreterNext],
      .threads_head = word[kThreadsHead],
      .thread_next = word[kThreadNext],
      .thread_interpreter = word[kThreadInterpreter],
      .thread_native_id = word[kThreadNativeId],
      .thread_frame = word[kThreadFrame],
      .frame_code = word[kFrameCode],
      .frame_previous = word[kFramePrevious],
      .frame_instruction = word[kFrameInstruction],
      .frame_owner = word[kFrameOwner],
      .first_shim_owner = 3,
      .code_filename = word[kCodeFilename],
      .code_name = word[kCodeName],
      .code_qualname = word[kCodeQualname],
      .code_linetable = word[kCodeLinetable],
      .code_firstlineno = word[kCodeFirstlineno],
      .code_instructions = word[kCodeInstructions],
      .bytes_size = word[kBytesSize],
      .bytes_data = word[kBytesData],
      .text_length = word[kTextLength],
      .text_state = word[kTextState],
      .text_ascii_data = word[kTextAsciiSize],
      .text_compact_data = word[kTextAsciiSize] + 16,  // A length and a pointer more.
      .object_type = word[kObjectType],
      .gil_holder = word[kGilHolder],
      .gil_locked = word[kGilLocked],
      .gil_place = PythonLayout::GilPlace::kInterpreter,
  };
  // Beyond any structure's size they are not offsets.
  if (std::any_of(word.begin() + 1, word.end(), [](uint64_t value) { return value > kMaxOffset; }))
    return Error{.code = ErrorCode::kUnsupported, .message = "its Python's table of offsets is not valid"};
  return layout;
}

struct SymbolName {
  std::string_view name;
  uint64_t PythonSymbols::*place;
};
constexpr std::array<SymbolName, 4> kNames = {{{"_PyRuntime", &PythonSymbols::runtime},
                                               {"Py_Version", &PythonSymbols::version},
                                               {"PyCode_Type", &PythonSymbols::code_type},
                                               {"PyUnicode_Type", &PythonSymbols::text_type}}};

void ReadSymbolTable(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, uint64_t bias, PythonSymbols* symbols) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const size_t count = std::min<size_t>(header.sh_size / header.sh_entsize, kMaxSymbols);
  for (size_t i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) return;
    if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
    const char* name = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (name == nullptr) continue;
    for (const SymbolName& wanted : kNames) {
      if (wanted.name == name) symbols->*wanted.place = symbol.st_value + bias;
    }
  }
}

PythonSymbols FindIn(int fd, const MemoryRange& range) {
  PythonSymbols symbols;
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(fd, ELF_C_READ_MMAP, nullptr), elf_end);
  uint64_t bias = 0;
  if (elf == nullptr || !FindBias(elf.get(), range, &bias)) return symbols;
  for (Elf_Scn* section = elf_nextscn(elf.get(), nullptr); section != nullptr;
       section = elf_nextscn(elf.get(), section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    if (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) continue;
    ReadSymbolTable(elf.get(), section, header, bias, &symbols);
  }
  return symbols;
}

bool MayBePython(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("libpython");
}

}  // namespace

PythonSymbols FindPython(pid_t pid) {
  const std::vector<MemoryRange> ranges = ReadMaps(pid);
  if (!BecomeOwnerOf(pid)) return {};
  elf_version(EV_CURRENT);
  const std::string program = ReadProcLink(pid, "exe");
  std::set<std::string> seen;
  for (const MemoryRange& range : ranges) {
    if (!range.executable || range.inode == 0 || (!MayBePython(range.path) && range.path != program)) continue;
    if (!seen.insert(range.path).second) continue;
    const UniqueFd file = OpenMappedFile(pid, range.path);
    if (!file.valid()) continue;
    const PythonSymbols symbols = FindIn(file.get(), range);
    if (symbols.runtime != 0 && symbols.version != 0 && symbols.code_type != 0 && symbols.text_type != 0)
      return symbols;
  }
  return {};
}

Result<PythonLayout> ReadLayout(pid_t pid, const PythonSymbols& symbols) {
  if (symbols.runtime == 0)
    return Error{.code = ErrorCode::kUnsupported, .message = "no CPython of 3.11 or later is found in it"};
  uint64_t version = 0;
  if (!ReadMemoryValue(pid, symbols.version, &version))
    return Error{.code = ErrorCode::kIo, .message = "its memory cannot be read"};
  if (version >> 24 == 3 && ((version >> 16) & 0xff) == 11) return kPython311;
  if (version >> 24 == 3 && ((version >> 16) & 0xff) == 12) return Python312();
  if (version >> 24 == 3 && ((version >> 16) & 0xff) == 13) return ReadLayout313(pid, symbols);
  return Error{.code = ErrorCode::kUnsupported,
               .message = fmt::format("frames of Python {}.{} are not supported", (version >> 24) & 0xff,
                                      (version >> 16) & 0xff)};
}

}  // namespace lockstep::inspect
