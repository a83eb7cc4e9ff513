// Put in front of an MPI program (LD_PRELOAD): MPI's collectives, of which one rank's results are wrong, or one pair of
// ranks slow; and its end, to which one rank does not come. For tests of what finds such things.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

int Setting(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

int Rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

bool IsSlowPair(int peer) {
  const int a = Setting("SLOW_RANK_A");
  const int b = Setting("SLOW_RANK_B");
  return (Rank() == a && peer == b) || (Rank() == b && peer == a);
}

}  // namespace

extern "C" int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const int status = PMPI_Allreduce(send, receive, count, type, op, comm);
  if (Rank() == Setting("WRONG_RANK") && count > 100) static_cast<char*>(receive)[17] ^= 0x40;
  return status;
}

extern "C" int MPI_Finalize() {
  if (Rank() == Setting("STUCK_RANK")) {
    while (true) ::pause();
  }
  return PMPI_Finalize();
}

extern "C" int MPI_Send(const void* send, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  if (count > 1000 && IsSlowPair(peer)) ::usleep(200'000);
  return PMPI_Send(send, count, type, peer, tag, comm);
}
