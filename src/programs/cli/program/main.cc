#include "programs/cli/cli.h"

int main(int argc, char** argv) { return lockstep::cli::Main(argc, argv); }
