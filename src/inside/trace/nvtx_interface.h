#pragma once

#include <stddef.h>

#include <cstdint>

/// What NVTX 3 and an injection library say to each other: the part of its binary interface that spans need, as NVIDIA
/// documents it (github.com/NVIDIA/NVTX, "injection"). The program's own NVTX header loads the library that
/// NVTX_INJECTION64_PATH names, and asks it to put its functions into tables.
namespace lockstep::instrument::nvtx {

enum TableId : uint32_t { kCallbackTable = 1 };
enum Module : uint32_t { kCore = 1, kCore2 = 5 };

/// Places in the function table of kCore.
enum CoreFunction : uint32_t {
  kMarkEx = 1,
  kMarkA = 2,
  kMarkW = 3,
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
};

/// Of kCore2, which has domains.
enum Core2Function : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
};

using Function = void (*)();
/// Each entry points to where the program keeps a function's address, or is null where it does not use it.
using FunctionTable = Function**;

struct CallbackTable {
  size_t struct_size;
  int (*get_module_function_table)(uint32_t module, FunctionTable* table, uint32_t* size);
};

using GetTable = const void* (*)(uint32_t table_id);

enum class MessageType : int32_t { kUnknown = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

struct EventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  MessageType message_type;
  const void* message;  ///< char, wchar_t, or what registering a string gave.
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, message) == 40);

}  // namespace lockstep::instrument::nvtx
