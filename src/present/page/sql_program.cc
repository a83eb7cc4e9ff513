#include "present/page/sql_program.h"

#include "present/page/embed.h"

LOCKSTEP_EMBED(sql_worker, LOCKSTEP_SQL_WORKER);
LOCKSTEP_EMBED(sql_engine, LOCKSTEP_SQL_ENGINE);

namespace lockstep::page {

std::string_view SqlWorker() { return {lockstep_sql_worker_begin, lockstep_sql_worker_end}; }
std::string_view SqlEngine() { return {lockstep_sql_engine_begin, lockstep_sql_engine_end}; }

}  // namespace lockstep::page
