#include "report/declared_tables.h"

namespace lockstep::report {

const std::vector<DeclaredTable>& DeclaredTables() {
  static const std::vector<DeclaredTable> kTables = [] {
    std::vector<DeclaredTable> tables;
    DeclareGroupTables(&tables);
    DeclareDdpTables(&tables);
    DeclarePipelineTables(&tables);
    DeclareMoeTables(&tables);
    DeclareInferenceTables(&tables);
    DeclareRegionTables(&tables);
    DeclareCounterTables(&tables);
    DeclareFlopsTables(&tables);
    DeclareKernelProfileTables(&tables);
    DeclareFabricTables(&tables);
    return tables;
  }();
  return kTables;
}

}  // namespace lockstep::report
