// Texts from outside: /proc, sockets, answers. Whole ones are read, damaged ones harm nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "node/inspect/devices.h"
#include "node/inspect/job_dump.h"
#include "node/inspect/job_files.h"
#include "node/inspect/local_server.h"
#include "node/inspect/proc_files.h"
#include "node/inspect/remote_memory.h"
#include "node/inspect/syscall_name.h"
#include "node/inspect/tcp_sockets.h"

namespace lockstep::inspect {
namespace {

using namespace std::string_literals;

TEST(ParseTest, BlockedCallTellsWhereAThreadSleeps) {
  const auto call = ParseBlockedCall("202 0x7f1 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe1000 0x7f1234567890\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->number, 202);
  EXPECT_EQ(call->stack_pointer, 0x7ffe1000u);
  EXPECT_EQ(call->program_counter, 0x7f1234567890u);
  EXPECT_EQ(ParseBlockedCall("-1 0x7ffe1000 0x7f12")->number, -1);
  for (const char* text : {"", "running", "202", "202 0x1", "202 a b c d e f g h"})
    EXPECT_FALSE(ParseBlockedCall(text));
}

TEST(ParseTest, SystemCallsHaveNames) {
  EXPECT_EQ(SyscallName(SYS_futex), "futex");
  EXPECT_EQ(SyscallName(-1), "");
  EXPECT_EQ(SyscallName(99999), "syscall_99999");
}

TEST(ParseTest, SocketTableHasBothFamilies) {
  const auto v4 = ParseSocketTable(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 0200000A:0016 08 0000000A:000000FF 00:00000000 00000000  1000        0 12345 1\n"
      "   1: nonsense\n");
  ASSERT_EQ(v4.size(), 1u);
  EXPECT_EQ(v4[0].inode, 12345u);
  EXPECT_EQ(v4[0].socket.local, "127.0.0.1:8080");
  EXPECT_EQ(v4[0].socket.remote, "10.0.0.2:22");
  EXPECT_EQ(v4[0].socket.state, "CLOSE_WAIT");
  EXPECT_EQ(v4[0].socket.send_queue_bytes, 10u);
  EXPECT_EQ(v4[0].socket.receive_queue_bytes, 255u);
  const auto v6 = ParseSocketTable(
      "   0: 0000000000000000FFFF00000100007F:D7CE 00000000000000000000000001000000:0001 01 0:0 0:0 0 0 0 7 1\n");
  ASSERT_EQ(v6.size(), 1u);
  EXPECT_EQ(v6[0].socket.local, "127.0.0.1:55246");
  EXPECT_EQ(v6[0].socket.remote, "[::1]:1");
}

TEST(ParseTest, MapsKeepPathsWithSpaces) {
  const auto ranges = ParseMaps(
      "7f00-7f10 r-xp 00001000 fe:01 42                         /lib/a b.so (deleted)\n"
      "8000-7000 r-xp 0 0:0 0\nnonsense\n"
      "9000-a000 rw-p 00000000 00:00 0 \n");
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].path, "/lib/a b.so (deleted)");
  EXPECT_TRUE(ranges[0].executable);
  EXPECT_EQ(ranges[0].file_offset, 0x1000u);
  EXPECT_EQ(ranges[0].inode, 42u);
  EXPECT_TRUE(ranges[1].writable);
}

TEST(ParseTest, HelperAnswerIsReadAsFarAsItCame) {
  const std::string answer =
      "lockstep.hang/1\npid 7\nfacts 24\nrank 3\ntorch 2.13.0+cpu\n"
      "stacks 60\nT 7 MainThread\nF 12 /a b/train.py\tstep\nF 3 /x.py\t<module>\nZ\n"
      "time 1763800000123456789\nrecord 4\n\x80\x02}.end\n"s;
  JobDump dump;
  ASSERT_TRUE(ParseHelperAnswer(answer, &dump));
  EXPECT_EQ(dump.facts["rank"], "3");
  EXPECT_EQ(dump.facts["torch"], "2.13.0+cpu");
  ASSERT_EQ(dump.threads.size(), 1u);
  EXPECT_EQ(dump.threads[0].tid, 7);
  EXPECT_TRUE(dump.threads[0].is_main);
  ASSERT_EQ(dump.threads[0].python.size(), 2u);
  EXPECT_EQ(dump.threads[0].python[0].file, "/a b/train.py");
  EXPECT_EQ(dump.threads[0].python[0].function, "step");
  EXPECT_EQ(dump.threads[0].python[0].line, 12);
  EXPECT_EQ(dump.record, "\x80\x02}."s);
  EXPECT_EQ(dump.record_unix_ns, 1'763'800'000'123'456'789);
  for (size_t size = 0; size < answer.size(); ++size) {
    JobDump part;
    ParseHelperAnswer(std::string_view(answer).substr(0, size), &part);
    EXPECT_TRUE(part.record.empty() || part.record == dump.record);
  }
  JobDump none;
  EXPECT_FALSE(ParseHelperAnswer("HTTP/1.1 400 Bad Request\r\n", &none));
}

TEST(ParseTest, HelperRecordHasTheTimeThatWasToldBeforeIt) {
  JobDump dump;
  ASSERT_TRUE(ParseHelperAnswer("lockstep.hang/1\ntime 5\nrecord 1\natime 6\nrecord 1\nbend\n", &dump));
  EXPECT_EQ(dump.record, "b");
  EXPECT_EQ(dump.record_unix_ns, 6);
  JobDump older;
  ASSERT_TRUE(ParseHelperAnswer("lockstep.hang/1\ntime 5\nrecord 1\natime 6\nrecord 9\nb", &older));
  EXPECT_EQ(older.record, "a");
  EXPECT_EQ(older.record_unix_ns, 5);
  JobDump odd;
  ASSERT_TRUE(ParseHelperAnswer("lockstep.hang/1\ntime -5 s\nrecord 1\naend\n", &odd));
  EXPECT_EQ(odd.record, "a");
  EXPECT_EQ(odd.record_unix_ns, 0);
}

TEST(ParseTest, HelperSocketIsOneThatTheProcessHasOpen) {
  const std::string table =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 101 /tmp/lockstep-hang-0/hang-7-0a1b2c3d.sock\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 102 @abstract\n"
      "0000000000000000: 00000002 00000000 00010000 0001 01 103 /tmp/other.sock\n";
  EXPECT_EQ(FindHelperSocket(table, {99, 101, 103}), "/tmp/lockstep-hang-0/hang-7-0a1b2c3d.sock");
  EXPECT_EQ(FindHelperSocket(table, {102, 103}), "");
  EXPECT_EQ(FindHelperSocket("", {1}), "");
}

TEST(ParseTest, HttpAnswerIsWhole) {
  const auto answer = ParseHttpAnswer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npongmore");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "pong");
  for (const char* text : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npong"})
    EXPECT_FALSE(ParseHttpAnswer(text)) << text;
}

TEST(ParseTest, GpuLinesAreNamedAfterTheirQuery) {
  const auto devices = ParseGpuLines(
      "0, NVIDIA H100 80GB HBM3, P0, 100 %, 70000 MiB, 81559 MiB, 55, 0, 00000000:1B:00.0\n"
      "1, NVIDIA H100 80GB HBM3, P0, [Unknown Error], [N/A], 81559 MiB, 55, 2, 00000000:1C:00.0\n"
      "nonsense\n");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "0 NVIDIA H100 80GB HBM3");
  EXPECT_EQ(devices[0].state, "ok");
  EXPECT_EQ(devices[1].state, "error");
  EXPECT_EQ(devices[0].facts[1], std::make_pair("utilization.gpu"s, "100 %"s));
}

TEST(ParseTest, GpuLinesOfTheLongerQueryTellHealth) {
  const auto devices = ParseGpuLines(
      "0, NVIDIA A100, P0, 9 %, 10 MiB, 81559 MiB, 55, 0, 00000000:1B:00.0, 0x0000000000000008, 8, 16, [N/A], No, "
      "Yes\n",
      kGpuHealthQuery);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].facts.back(), std::make_pair("remapped_rows.failure"s, "Yes"s));
  EXPECT_EQ(devices[0].facts.at(devices[0].facts.size() - 3), std::make_pair("pcie.link.width.max"s, "16"s));
}

}  // namespace
}  // namespace lockstep::inspect
