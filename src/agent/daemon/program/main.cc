#include "agent/daemon/daemon.h"

int main(int argc, char** argv) { return lockstep::agent::DaemonMain(argc, argv); }
