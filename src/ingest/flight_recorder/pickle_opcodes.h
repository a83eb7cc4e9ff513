#pragma once

#include <cstdint>
#include <string>

namespace lockstep::ingest {

/// Opcodes of a pickle that only say data: those that PyTorch's writer of dumps has, and those that Python's own writer
/// has beside them, in any protocol from 0 to 5, for a dump that was read and written again. Python's documentation of
/// `pickletools` defines them.
enum class Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kFloat = 'F',
  kBinFloat = 'G',
  kInt = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLong = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kDict = 'd',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kPut = 'p',
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
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95,
};

/// "GLOBAL", "REDUCE", ...; of a byte that is not an opcode "byte 0xff".
std::string OpcodeName(uint8_t byte);
/// Whether the opcode imports or calls something when Python reads it.
bool OpcodeRunsCode(uint8_t byte);

}  // namespace lockstep::ingest
