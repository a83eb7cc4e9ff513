#!/usr/bin/env python3
"""Writes the seeds of nccl_log_fuzz, nccl_topology_fuzz and ras_report_fuzz. Everything in them is made up here."""
import json
import pathlib

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target, name, text):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def line(rank, message, level="INFO", prefix="", source=""):
    return f"{prefix}n{rank // 2}:{10 + rank % 2}:{20 + rank} [{rank % 2}] {source}NCCL {level} {message}\n"


def init(rank, state, extra=" commId 0xab"):
    return line(rank, f"ncclCommInitRank comm 0x5{rank} rank {rank} nranks 4 cudaDev 0 nvmlDev 0 busId 1a000{extra} - Init {state}")


def logs():
    start = "".join(init(rank, "START") for rank in range(4))
    done = "".join(init(rank, "COMPLETE") for rank in range(4))
    write("nccl_log", "init", start + done)
    write("nccl_log", "init_missing", "".join(init(rank, "START") for rank in (0, 1, 3)))
    write("nccl_log", "old_version", "".join(
        line(rank, f"Trees [0] 1/-1/-1->{rank}->-1 [1] -1/2/-1->{rank}->0", prefix=f"[1,{rank}]<stdout>:")
        + line(rank, f"comm 0x5{rank} rank {rank} nranks 4 cudaDev 0 busId 1a0 - Init COMPLETE", prefix=f"[1,{rank}]<stdout>:")
        for rank in range(4)) + "[1,0]<stdout>:NCCL version 2.9.9+cuda11.2\n")
    write("nccl_log", "split", start + done + "".join(line(
        rank, f"ncclCommSplit comm 0x6{rank} rank {rank // 2} nranks 2 cudaDev 0 nvmlDev 0 busId 1a parent 0x5{rank} "
        f"splitCount 1 color {rank % 2} key 0- Init START") for rank in range(4)))
    write("nccl_log", "process", "".join((
        line(0, "NCCL version 2.27.3+cuda12.9"), line(1, "NCCL version 2.27.7+cuda12.9"), line(0, "cudaDriverVersion 12080"),
        line(0, "Bootstrap: Using eth0:10.0.0.1<0>"), line(1, "Bootstrap : Using docker0:172.17.0.1<0>"),
        line(0, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"), line(0, "Using network Socket"),
        line(1, "NET/IB : No device found."), line(1, "NET/Socket : Using [0]eth0:10.0.0.2<0> [1]eth1:fe80::1%eth1<0>"),
        line(0, "NCCL_ALGO set by environment to Ring"), line(1, "NCCL_SHM_DISABLE set by environment to 1."),
        line(0, "NET/OFI Setting FI_X environment variable to 1"), line(0, "Setting affinity for GPU 3 to ff,00ff"),
        line(0, "NVLS multicast support is not available on dev 0"), line(0, "ENV/Plugin: Closing env plugin ncclEnvDefault"))))
    write("nccl_log", "channels", init(0, "START") + "".join((
        line(0, "Channel 00/02 : 0 1 2 3"), line(0, "Ring 00 : 3 -> 0 -> 1"), line(0, "Tree 0 : -1 -> 0 -> 1/2/-1"),
        line(0, "Channel 07/0 : 0[0] -> 1[1] via P2P/CUMEM"), line(0, "Channel 01 : 0[a01d0] -> 3[a01c0] [send] via NET/AWS Libfabric/1(2)/GDRDMA/Shared"),
        line(0, "Channel 01/0 : 3[0] -> 0[1] [receive] via NET/IB/0"), line(0, "Channel 02 : 0[0] -> 1[1] via SHM/direct/direct"),
        line(0, "Connected all rings, use ring PXN 0 GDR 1"), line(0, "Connected all trees"),
        line(0, "24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer"),
        line(0, "Init timings - ncclCommInitRank: rank 0 nranks 4 total 42.13 (kernels 0.17, bootstrap 41.93, rest 0.00)"))))
    write("nccl_log", "operations", start + "".join(
        line(rank, f"{'AllGather' if rank == 2 and op == 15 else 'AllReduce'}: opCount {op:x} sendbuff 0x1 recvbuff 0x2 count {op} "
             f"datatype 7 op 0 root 0 comm 0x5{rank} [nranks=4] stream 0x4") for op in (14, 15, 16) for rank in range(4)
        if not (rank == 3 and op == 16)) + line(0, "AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}"))
    stamp = "[2026-11-21 03:35:23] "
    write("nccl_log", "errors", "".join((
        line(0, "NET/IB : Got completion from peer 10.0.0.1<36406> with error 12, opcode 0", "WARN", stamp, "net.cc:1 "),
        line(1, "NET/IB: Got completion from peer 10.0.0.2<5> with status=IBV_WC_WR_FLUSH_ERR(5) opcode=1", "WARN", stamp),
        line(2, "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1", "WARN"),
        line(3, "socketProgress: Connection closed by remote peer node-3<41234>", "WARN", stamp),
        line(0, "Cuda failure 'out of memory'", "WARN"), line(0, "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000", "WARN"),
        line(1, "transport/net.cc:1362 -> 6 [Progress Thread]"), line(1, "HINT: NCCL_IB_TIMEOUT is too short"), line(1, "new thing", "WARN"))))
    write("nccl_log", "colours", "\x1b[31mn:1:2 [0] NCCL INFO Using network \x1b[1mIB\x1b[0m\r\n(Worker pid=3) n:1:3 NCCL CALL ncclGroupStart()\n"
          "12: n:1:2 [0] 1.5 f:3 NCCL TRACE x\nother\n\0\0")


def machines():
    gpu = ('<pci busid="0:{0}" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="{1}"><gpu dev="{0}" sm="80" rank="{0}" gdr="{2}">'
           '<nvlink target="0:f" count="{3}" tclass="0x068000"/></gpu></pci>')
    nic = '<pci busid="0:a{0}" class="0x020000" link_speed="" link_width="0"><nic><net name="mlx5_{0}" dev="{0}" speed="{1}" gdr="1"/></nic></pci>'
    switch = '<pci busid="f:{0}" class="0x060400">{1}</pci>'
    system = '<!-- made up -->\n<system version="1">\n<cpu numaid="0" arch="x86_64" vendor="x" affinity="ff">{}</cpu></system>\n'
    write("nccl_topology", "sound", system.format(switch.format(0, gpu.format(0, 16, 1, 12) + nic.format(0, 400000))))
    write("nccl_topology", "degraded", system.format(
        switch.format(0, gpu.format(0, 16, 1, 12) + nic.format(0, 400000)) + switch.format(1, gpu.format(1, 8, 0, 11) + nic.format(1, 100000))
        + switch.format(2, gpu.format(2, 16, 1, 12))))
    write("nccl_topology", "entities", '<?xml version="1.0"?><!DOCTYPE system [<!ENTITY a "aaaa">]><system><cpu numaid="&a;"/></system>')
    write("nccl_topology", "cut", system.format(gpu.format(0, 16, 1, 12))[:-30])
    write("nccl_topology", "graphs", '<graphs version="1"><graph id="0" pattern="4" nchannels="1" speedintra="12" speedinter="12" '
          'typeintra="SYS" typeinter="PIX"><channel><net dev="0"/><gpu dev="0"/></channel></graph></graphs>')


def ras():
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "abort_flag": False}
    answer = {"nccl_version": "2.29.1", "timestamp": "2025-12-19 13:06:53", "communicators_count": 1, "communicators": [
        {"hash": "0xae", "size": 2, "ranks": [{"rank": 0, "host": "a", "pid": 1, "status": status, "collective_counts": {"AllReduce": 3}}],
         "missing_ranks": [{"rank": 1, "host": "b", "pid": 2, "status": {"unresponsive": True, "considered_dead": False}}]}],
        "ras": {"timeouts_count": 1}}
    write("ras_report", "json", "SERVER PROTOCOL 2\nOK\n" + json.dumps(answer))
    write("ras_report", "event", json.dumps({"event": "PEER_DEAD", "peer": {"host": "a", "pid": 1}, "details": "x"}) * 2)
    table = ("Job summary\n===========\n\nCommunicators... (0.00s)\n=============\n\n"
             "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
             "    #  in group  per comm  per node  per comm  in group\n"
             "    0         1         2         2         4         4   RUNNING  MISMATCH\n")
    write("ras_report", "text", "NCCL version 2.28.3 compiled with CUDA 12.9\n" + table + "\nErrors\n======\n\n#0-0 (27a0) INCOMPLETE\n"
          "  Missing communicator data from 1 rank\n  The missing rank: 3\n\nWarnings\n========\n\n#0-0 (27a0) MISMATCH\n"
          "  2 ranks have launched up to operation 6650\n  1 rank has launched up to operation 6649\n"
          "  Rank 2 -- GPU 0 managed by process 483072 on node 192.0.2.10\n")
    write("ras_report", "monitor", "RAS Monitor Mode - watching\n====\n\n [2025-12-19 13:07:07] PEER_DEAD: Process 7 on node a managing GPU 1\n")


def write_all():
    logs()
    machines()
    ras()


if __name__ == "__main__":
    write_all()
