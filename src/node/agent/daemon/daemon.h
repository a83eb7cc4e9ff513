#pragma once

namespace lockstep::agent {

/// The program `lockstepd`: reads its flags and /etc/lockstep/lockstep.toml, serves until SIGTERM. Returns its exit
/// status: 0 stopped; 1 failed; 2 misused.
int DaemonMain(int argc, char** argv);

}  // namespace lockstep::agent
