"""Seeds of Nsight Systems' exports: databases, and SQL that makes them."""
import sqlite3

from corpus import write

PID = 42 << 24
TID = PID + 43
SCHEMA = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName, shortName);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, globalTid, domainId, jsonText);
"""
DEVICE = f"""
INSERT INTO StringIds VALUES (0, ''), (1, 'gemm<float>(int)'), (2, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL'), (3, 'cudaLaunchKernel_v7000');
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0'), ('EXPORT_CONFIG_TIME_SHIFT', '0');
INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'RANK="3"'), ('CAPTURE_EVENT_TYPE', 'Cuda');
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'node1'), ('DeviceEnvironment', 'A=1;RANK=3;WORLD_SIZE=4');
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 7, 1, {PID}, 1, 1), (150, 300, 0, 20, 2, {PID}, 2, 2);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50, 60, {TID}, 1, 3), (70, 80, {TID}, 2, 3);
INSERT INTO NVTX_EVENTS VALUES (40, 400, 59, 'step 1', NULL, {TID}, 0, NULL), (-5, NULL, 75, 'gloo', NULL, {TID}, 1, NULL),
  (60, 90, 59, 'all_reduce', NULL, {TID}, 1, NULL), (65, 95, 60, 'crosses', NULL, {TID}, 0, NULL), (70, NULL, 59, 'open', NULL, {TID}, 0, NULL),
  (65, 75, 59, 'ncclAllReduce', NULL, {TID}, 2, '{{"NCCL communicator ID": "0x1f", "Message size [bytes]": "1,024"}}');
"""
MPI = f"""
CREATE TABLE MPI_RANKS (globalTid, rank); CREATE TABLE MPI_COMMUNICATORS (rank, commHandle, parentHandle, size, members);
CREATE TABLE MPI_COLLECTIVES_EVENTS (start, end, globalTid, textId, commHandle, size, recvSize, requestHandle);
CREATE TABLE MPI_START_WAIT_EVENTS (start, end, globalTid, textId, requestHandle);
CREATE TABLE MPI_P2P_EVENTS (start, end, globalTid, textId, commHandle, remoteRank, size, requestHandle);
INSERT INTO StringIds VALUES (10, 'MPI_Iallreduce'), (11, 'MPI_Wait'), (12, 'MPI_Sendrecv');
INSERT INTO MPI_RANKS VALUES ({TID}, 2); INSERT INTO MPI_COMMUNICATORS VALUES (2, 7, 0, 4, NULL);
INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (500, 510, {TID}, 10, 7, 64, 64, 99);
INSERT INTO MPI_START_WAIT_EVENTS VALUES (520, 600, {TID}, 11, 99);
INSERT INTO MPI_P2P_EVENTS VALUES (610, 610, {TID}, 12, 7, 3, 16, NULL), (610, 640, {TID}, 12, 7, 1, 16, NULL);
"""
HOSTILE = """
CREATE VIEW OSRT_API AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM c) SELECT start, start AS end FROM c;
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (9223372036854775807, -9223372036854775808, 'x', x'00', -1, NULL, 99, NULL), (NULL, 1, 0, 0, 0, 0, 0, 0);
INSERT INTO StringIds VALUES (900, CAST(x'61ff00' AS TEXT));
"""


def database(sql):
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA page_size = 512")
    connection.executescript(sql)
    return connection.serialize()


for name, script in (("device", SCHEMA + DEVICE), ("mpi", SCHEMA + DEVICE + MPI), ("hostile", SCHEMA + DEVICE + HOSTILE),
                     ("ownerless", "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId); INSERT INTO "
                                   "CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7), (1, 2, 1, 7);"),
                     ("foreign", "CREATE TABLE t (x);")):
    write("nsight_export", f"sql_{name}", b"\0" + script.encode())
    whole = database(script)
    write("nsight_export", f"file_{name}", b"\1" + whole)
    if name == "device":
        write("nsight_export", "file_cut", b"\1" + whole[:len(whole) * 2 // 3])
        damaged = bytearray(whole)
        for at in range(700, len(damaged), 611):
            damaged[at] ^= 0x5A
        write("nsight_export", "file_damaged", b"\1" + bytes(damaged))
