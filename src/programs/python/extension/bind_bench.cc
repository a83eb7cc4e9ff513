#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "measure/collectives/backend.h"
#include "measure/runner/bench_flags.h"
#include "measure/runner/bench_program.h"
#include "programs/python/extension/bindings.h"
#include "programs/python/extension/errors.h"

namespace lockstep::python {
namespace {

namespace py = pybind11;

using collective_bench::Call;
using collective_bench::Operation;

constexpr const char* kProgram = "lockstep.bench";
constexpr const char* kFooter =
    "One rank of a job that torchrun started (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set).\n"
    "The method, the sizes and the table are those of lockstep bench collectives (docs/bench.md).\n"
    "\n"
    "Examples:\n"
    "  torchrun --nproc-per-node 4 -m lockstep.bench\n"
    "  torchrun --nproc-per-node 8 -m lockstep.bench --backend nccl all_reduce -b 8 -e 8G\n"
    "  torchrun --nproc-per-node 4 -m lockstep.bench --pairs -o bench.html --beside mpi.json";

/// Ranks that talk through the Python object's `broadcast` and `gather`.
class PythonCommunicator final : public Communicator {
 public:
  explicit PythonCommunicator(py::object backend)
      : backend_(std::move(backend)),
        process_(backend_.attr("rank").cast<size_t>()),
        process_count_(backend_.attr("world_size").cast<size_t>()) {}
  size_t process() const override { return process_; }
  size_t process_count() const override { return process_count_; }
  void Broadcast(std::string* bytes) override {
    *bytes = backend_.attr("broadcast")(py::bytes(*bytes)).cast<std::string>();
    ++traffic_.message_count;
    (is_root() ? traffic_.sent_bytes : traffic_.received_bytes) += bytes->size();
  }
  std::vector<std::string> Gather(std::string bytes) override {
    ++traffic_.message_count;
    traffic_.sent_bytes += bytes.size();
    auto all = backend_.attr("gather")(py::bytes(bytes)).cast<std::vector<std::string>>();
    for (const std::string& each : all) traffic_.received_bytes += each.size();
    return all;
  }
  Traffic traffic() const override { return traffic_; }

 private:
  py::object backend_;
  size_t process_;
  size_t process_count_;
  Traffic traffic_;
};

/// The Python class TorchBackend of lockstep.bench. What it raises passes through, up to who called run_bench().
class PythonBackend final : public collective_bench::Backend {
 public:
  explicit PythonBackend(py::object backend) : backend_(std::move(backend)), communicator_(backend_) {}

  std::string name() const override { return backend_.attr("name").cast<std::string>(); }
  std::string device() const override { return backend_.attr("device_text").cast<std::string>(); }
  Communicator& communicator() override { return communicator_; }
  bool Has(Operation operation, bool in_place) const override {
    return backend_.attr("has")(OperationName(operation), in_place).cast<bool>();
  }
  std::string WhyNot(Operation operation) const override {
    return backend_.attr("why_not")(OperationName(operation)).cast<std::string>();
  }
  size_t max_count(const Call& /*call*/) const override { return SIZE_MAX; }
  Result<void*> Allocate(size_t bytes) override {
    const auto address = backend_.attr("allocate")(bytes).cast<uintptr_t>();
    if (address == 0) return Error{.code = ErrorCode::kLimitExceeded, .message = "there is not enough memory"};
    return reinterpret_cast<void*>(address);
  }
  void Free(void* memory) override {
    prepared_ = py::object();  // It holds the memory, too.
    prepared_for_ = {};
    backend_.attr("free")(Address(memory));
  }
  Status CopyIn(void* to, const void* from, size_t bytes) override {
    backend_.attr("copy_in")(Address(to),
                             py::memoryview::from_memory(const_cast<void*>(from), static_cast<py::ssize_t>(bytes)));
    return {};
  }
  Status CopyOut(void* to, const void* from, size_t bytes) override {
    backend_.attr("copy_out")(py::memoryview::from_memory(to, static_cast<py::ssize_t>(bytes)), Address(from));
    return {};
  }
  size_t InPlaceSendOffset(const Call& call) const override {
    return call.operation == Operation::kAllGather ? communicator_.process() * call.count : 0;
  }
  size_t InPlaceReceiveOffset(const Call& call) const override {
    return call.operation == Operation::kReduceScatter ? communicator_.process() * call.count : 0;
  }
  bool is_queued() const override { return backend_.attr("is_queued").cast<bool>(); }
  Status Run(const Call& call, const void* send, void* receive) override {
    // The same call many times: what is timed is PyTorch's function, and not how its arguments are made.
    const Prepared wanted{call.operation, call.count, call.in_place, Address(send), Address(receive)};
    if (wanted != prepared_for_) {
      prepared_ = backend_.attr("prepare")(OperationName(call.operation), DataTypeName(call.type),
                                           ReductionName(call.reduction), call.root, call.count, call.in_place,
                                           Address(send), Address(receive));
      prepared_for_ = wanted;
    }
    prepared_();
    return {};
  }
  Status Wait() override {
    backend_.attr("wait")();
    return {};
  }
  Status Barrier() override {
    backend_.attr("barrier")();
    return {};
  }
  Status Transfer(int from, int to, void* memory, size_t bytes) override {
    backend_.attr("transfer")(from, to, Address(memory), bytes);
    return {};
  }

 private:
  using Prepared = std::tuple<Operation, size_t, bool, uintptr_t, uintptr_t>;
  static uintptr_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

  py::object backend_;
  PythonCommunicator communicator_;
  py::object prepared_;
  Prepared prepared_for_ = {};
};

/// Measures as one rank of a job. `make_backend(name, timeout_s)` is asked for who carries collectives out once the
/// arguments make sense; `name` is empty where they leave it open. Of all ranks' common words one speaks.
int RunBench(std::vector<std::string> arguments, bool speaks, const py::function& make_backend) {
  CLI::App app("Measure torch.distributed's collectives by size: time, algbw, busbw, slow links", kProgram);
  std::vector<std::string> operations;
  app.add_option("WHAT", operations,
                 "Which: all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_recv "
                 "(all of them)")
      ->type_name("");
  std::string backend;
  app.add_option("--backend", backend,
                 "PyTorch's: gloo and mpi on memory of the host, nccl on a device a rank (nccl where there are "
                 "devices, else gloo)")
      ->type_name("NAME");
  bench_program::BenchFlags flags;
  flags.Declare(app);
  app.footer(kFooter);
  const auto refuse = [speaks](const std::string& why) {
    if (speaks) std::cerr << fmt::format("{0}: {1}\nTry: python -m {0} --help\n", kProgram, why);
    return bench_program::kMisused;
  };
  try {
    std::reverse(arguments.begin(), arguments.end());
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    if (speaks) std::cout << app.help() << std::flush;
    return bench_program::kDone;
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  const auto words = flags.Make(operations);
  if (!words) return refuse(words.error().message);
  PythonBackend measured(make_backend(backend, words->timeout.count()));
  return ValueOrRaise(bench_program::MeasureAndTell(&measured, *words));
}

}  // namespace

void BindBench(py::module_& module) {
  module.def("run_bench", RunBench, py::arg("arguments"), py::arg("speaks"), py::arg("make_backend"));
}

}  // namespace lockstep::python
