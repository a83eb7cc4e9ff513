#pragma once

/// The bytes of a file, from lockstep_NAME_begin to lockstep_NAME_end, both of type const char[]. A source that has one
/// is compiled alone and depends on the file (CMakeLists.txt).
#define LOCKSTEP_EMBED(name, file)                                       \
  asm(".pushsection .rodata.lockstep_" #name                             \
      ", \"a\", @progbits\n"                                             \
      ".global lockstep_" #name "_begin\n.global lockstep_" #name        \
      "_end\n"                                                           \
      "lockstep_" #name "_begin:\n.incbin \"" file "\"\nlockstep_" #name \
      "_end:\n"                                                          \
      ".byte 0\n.popsection\n");                                         \
  extern "C" const char lockstep_##name##_begin[];                       \
  extern "C" const char lockstep_##name##_end[]
