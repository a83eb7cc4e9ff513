#pragma once

#include <cstdint>
#include <string>

namespace lockstep::ingest {

/// Opcodes of a pickle that only say data: those that PyTorch's writer of dumps has, and APPEND and SETITEM, which
/// Python's own writer has beside them. Python's documentation of `pickletools` defines them.
enum class Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kAppend = 'a',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kBinUnicode8 = 0x8d,
};

/// "GLOBAL", "REDUCE", ...; of a byte that is no opcode "byte 0xff".
std::string OpcodeName(uint8_t byte);
/// Whether the opcode imports or calls something when Python reads it.
bool OpcodeRunsCode(uint8_t byte);

}  // namespace lockstep::ingest
