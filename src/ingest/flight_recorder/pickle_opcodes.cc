#include "ingest/flight_recorder/pickle_opcodes.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace lockstep::ingest {

namespace {

struct NamedOpcode {
  uint8_t byte;
  std::string_view name;
  bool runs_code = false;
};

constexpr std::array kOpcodes = {
    NamedOpcode{'(', "MARK"},
    NamedOpcode{'.', "STOP"},
    NamedOpcode{'0', "POP"},
    NamedOpcode{'1', "POP_MARK"},
    NamedOpcode{'2', "DUP"},
    NamedOpcode{'F', "FLOAT"},
    NamedOpcode{'I', "INT"},
    NamedOpcode{'J', "BININT"},
    NamedOpcode{'K', "BININT1"},
    NamedOpcode{'L', "LONG"},
    NamedOpcode{'M', "BININT2"},
    NamedOpcode{'N', "NONE"},
    NamedOpcode{'P', "PERSID", true},
    NamedOpcode{'Q', "BINPERSID", true},
    NamedOpcode{'R', "REDUCE", true},
    NamedOpcode{'S', "STRING"},
    NamedOpcode{'T', "BINSTRING"},
    NamedOpcode{'U', "SHORT_BINSTRING"},
    NamedOpcode{'V', "UNICODE"},
    NamedOpcode{'X', "BINUNICODE"},
    NamedOpcode{'a', "APPEND"},
    NamedOpcode{'b', "BUILD", true},
    NamedOpcode{'c', "GLOBAL", true},
    NamedOpcode{'d', "DICT"},
    NamedOpcode{'}', "EMPTY_DICT"},
    NamedOpcode{'e', "APPENDS"},
    NamedOpcode{'g', "GET"},
    NamedOpcode{'h', "BINGET"},
    NamedOpcode{'i', "INST", true},
    NamedOpcode{'j', "LONG_BINGET"},
    NamedOpcode{'l', "LIST"},
    NamedOpcode{']', "EMPTY_LIST"},
    NamedOpcode{'o', "OBJ", true},
    NamedOpcode{'p', "PUT"},
    NamedOpcode{'q', "BINPUT"},
    NamedOpcode{'r', "LONG_BINPUT"},
    NamedOpcode{'s', "SETITEM"},
    NamedOpcode{'t', "TUPLE"},
    NamedOpcode{')', "EMPTY_TUPLE"},
    NamedOpcode{'u', "SETITEMS"},
    NamedOpcode{'G', "BINFLOAT"},
    NamedOpcode{'B', "BINBYTES"},
    NamedOpcode{'C', "SHORT_BINBYTES"},
    NamedOpcode{0x80, "PROTO"},
    NamedOpcode{0x81, "NEWOBJ", true},
    NamedOpcode{0x82, "EXT1", true},
    NamedOpcode{0x83, "EXT2", true},
    NamedOpcode{0x84, "EXT4", true},
    NamedOpcode{0x85, "TUPLE1"},
    NamedOpcode{0x86, "TUPLE2"},
    NamedOpcode{0x87, "TUPLE3"},
    NamedOpcode{0x88, "NEWTRUE"},
    NamedOpcode{0x89, "NEWFALSE"},
    NamedOpcode{0x8a, "LONG1"},
    NamedOpcode{0x8b, "LONG4"},
    NamedOpcode{0x8c, "SHORT_BINUNICODE"},
    NamedOpcode{0x8d, "BINUNICODE8"},
    NamedOpcode{0x8e, "BINBYTES8"},
    NamedOpcode{0x8f, "EMPTY_SET"},
    NamedOpcode{0x90, "ADDITEMS"},
    NamedOpcode{0x91, "FROZENSET"},
    NamedOpcode{0x92, "NEWOBJ_EX", true},
    NamedOpcode{0x93, "STACK_GLOBAL", true},
    NamedOpcode{0x94, "MEMOIZE"},
    NamedOpcode{0x95, "FRAME"},
    NamedOpcode{0x96, "BYTEARRAY8"},
    NamedOpcode{0x97, "NEXT_BUFFER", true},
    NamedOpcode{0x98, "READONLY_BUFFER"},
};

const NamedOpcode* Find(uint8_t byte) {
  for (const NamedOpcode& opcode : kOpcodes) {
    if (opcode.byte == byte) return &opcode;
  }
  return nullptr;
}

}  // namespace

std::string OpcodeName(uint8_t byte) {
  const NamedOpcode* opcode = Find(byte);
  return opcode != nullptr ? std::string(opcode->name) : fmt::format("byte 0x{:02x}", byte);
}

bool OpcodeRunsCode(uint8_t byte) {
  const NamedOpcode* opcode = Find(byte);
  return opcode != nullptr && opcode->runs_code;
}

}  // namespace lockstep::ingest
