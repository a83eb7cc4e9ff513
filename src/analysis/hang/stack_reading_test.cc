#include "analysis/hang/stack_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/hang/job_for_test.h"

namespace lockstep::hang {
namespace {

using evidence::StackFrame;
using evidence::ThreadStack;

const StackFrame kStep = {"step", "/home/user/train.py", 40};
const char kC10d[] = "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py";

MainThread ReadPython(std::vector<StackFrame> frames) {
  ThreadStack thread;
  thread.is_main = true;
  thread.python = std::move(frames);
  return ReadMainThread({thread});
}

MainThread ReadNative(const std::string& function, std::vector<StackFrame> python = {kStep, kModule}) {
  ThreadStack thread;
  thread.is_main = true;
  thread.python = std::move(python);
  thread.native = {{"__futex_wait", "libc.so.6", 0}, {function, "libtorch.so", 0}};
  return ReadMainThread({thread});
}

TEST(StackReadingTest, ACollectiveIsNamedAndTheUsersLineKept) {
  const MainThread main = ReadPython({{"all_reduce", kC10d, 2800}, {"wrapper", kC10d, 80}, kStep, kModule});
  EXPECT_EQ(main.place, MainThreadPlace::kCollective);
  EXPECT_EQ(main.operation, OperationKind::kAllReduce);
  EXPECT_EQ(main.function, "step");
  EXPECT_EQ(main.line, 40);
}

TEST(StackReadingTest, TheOutermostOfNestedCallsIsWhatTheUserCalled) {
  const MainThread main =
      ReadPython({{"all_gather", kC10d, 3000}, {"broadcast_object_list", kC10d, 2900}, kStep, kModule});
  EXPECT_EQ(main.operation_name, "broadcast");
}

TEST(StackReadingTest, AFunctionOfTheUsersWithACollectivesNameIsNone) {
  EXPECT_EQ(ReadPython({{"all_reduce", "/home/user/comm.py", 3}, kModule}).place, MainThreadPlace::kOutside);
}

TEST(StackReadingTest, SendsAndReceivesAreToldFromCollectives) {
  EXPECT_EQ(ReadPython({{"recv", kC10d, 2000}, kModule}).place, MainThreadPlace::kP2p);
  EXPECT_EQ(ReadPython({{"isend", kC10d, 2000}, kModule}).operation, OperationKind::kSend);
}

TEST(StackReadingTest, MakingAGroupIsAWaitForTheStore) {
  const MainThread main = ReadPython({{"new_group", kC10d, 5000}, kModule});
  EXPECT_EQ(main.place, MainThreadPlace::kStoreWait);
  EXPECT_EQ(main.operation_name, "new_group");
}

TEST(StackReadingTest, TheHookOfAnExceptionMeansThatItWasRaised) {
  EXPECT_EQ(ReadPython({{"_distributed_excepthook", kC10d, 10}, kModule}).place, MainThreadPlace::kRaised);
}

TEST(StackReadingTest, TheInterpretersShutdownIsAnEnd) {
  EXPECT_EQ(ReadPython({{"_shutdown", "/usr/lib/python3.11/threading.py", 1553}}).place, MainThreadPlace::kExiting);
}

TEST(StackReadingTest, TheDataLoaderIsNamed) {
  const MainThread main = ReadPython(
      {{"_try_get_data", "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", 1}, kStep, kModule});
  EXPECT_EQ(main.place, MainThreadPlace::kOutside);
  EXPECT_EQ(main.activity, "in the data loader");
  EXPECT_EQ(main.function, "step");
}

TEST(StackReadingTest, NativeFramesTellWhatPythonDoesNot) {
  EXPECT_EQ(ReadNative("gloo::allreduce").place, MainThreadPlace::kCollective);
  EXPECT_EQ(ReadNative("gloo::rendezvous::Context::connectFullMesh").place, MainThreadPlace::kStoreWait);
  EXPECT_EQ(ReadNative("gloo::rendezvous::PrefixStore::get").place, MainThreadPlace::kStoreWait);
  EXPECT_EQ(ReadNative("cudaStreamSynchronize").place, MainThreadPlace::kDeviceSync);
  EXPECT_EQ(ReadNative("qsort").place, MainThreadPlace::kOutside);
}

TEST(StackReadingTest, NativeFramesAloneTellACollectiveButNotWhatLiesOutside) {
  EXPECT_EQ(ReadNative("c10d::Work::wait", {}).place, MainThreadPlace::kCollective);
  EXPECT_EQ(ReadNative("qsort", {}).place, MainThreadPlace::kUnknown);
}

TEST(StackReadingTest, TheKernelTellsAnUninterruptibleWait) {
  ThreadStack thread;
  thread.is_main = true;
  thread.python = {kStep, kModule};
  thread.state = 'D';
  thread.wait_channel = "nfs_wait_bit_killable";
  EXPECT_EQ(ReadMainThread({thread}).activity, "in an uninterruptible wait of the kernel (nfs_wait_bit_killable)");
}

TEST(StackReadingTest, AThreadThatWritesEvidenceSaysNothingOfWhereItWas) {
  EXPECT_TRUE(ReadPython({{"_dump_nccl_trace", "torch/_C", 0}, kModule}).dumps_itself);
  EXPECT_FALSE(ReadPython({kStep, kModule}).dumps_itself);
}

TEST(StackReadingTest, WithoutAStackNothingIsKnown) {
  EXPECT_EQ(ReadMainThread({}).place, MainThreadPlace::kUnknown);
  EXPECT_EQ(ReadMainThread({ThreadStack{}}).place, MainThreadPlace::kUnknown);
}

TEST(MainThreadTest, IsTheMarkedOneElseTheOneOfTheModule) {
  ThreadStack worker;
  worker.python = {{"run", "/usr/lib/python3.11/threading.py", 1}};
  ThreadStack module;
  module.python = {kModule};
  ThreadStack marked;
  marked.is_main = true;
  const std::vector<ThreadStack> unmarked = {worker, module};
  EXPECT_EQ(FindMainThread(unmarked), &unmarked[1]);
  const std::vector<ThreadStack> with_mark = {worker, module, marked};
  EXPECT_EQ(FindMainThread(with_mark), &with_mark[2]);
  EXPECT_EQ(FindMainThread({worker, worker}), nullptr);
}

TEST(MainThreadTest, DoesNotHoldTheLockThatAnotherHolds) {
  ThreadStack main;
  main.is_main = true;
  ThreadStack holder;
  holder.holds_gil = true;
  const std::vector<ThreadStack> threads = {main, holder};
  EXPECT_EQ(FindLockHolder(threads), &threads[1]);
  holder.python = {{"import_module", "/usr/lib/python3.11/importlib/__init__.py", 126},
                   {"_answer", "/mnt/package/lockstep/_hang.py", 197}};
  EXPECT_EQ(FindLockHolder({main, holder}), nullptr) << "it holds it because we asked";
  main.holds_gil = true;
  EXPECT_EQ(FindLockHolder({main, ThreadStack{}}), nullptr);
}

}  // namespace
}  // namespace lockstep::hang
