"""Seeds of operation traces. The first byte is the size of the pieces, less one."""
from corpus import write

HEADER = "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
TABLE = HEADER + """0,0,0,23,backward-compute,0.8486716747283936,0.13867968320846558,0,0,0,0
0,0,0,23,layernorm-grads-all-reduce,1.9860749244689941,4.630399780580774e-05,0,-1,-1,-1
1,0,1,23,forward-compute,0.048943519592285156,0.06345897912979126,0,0,0,0
0,3,6,23,gc,1.9850859642028809,0,0,-1,0,-1
"""
PRIMUS = '{"1": {"total": 7556.98974609375, "memory": 84.345703125, "fwd_start": [0.04947400093078613, 2746.5], ' \
         '"fwd_end": [1666.2584228515625, 2806.9], "bwd_start": [5397.5], "bwd_end": [5468.75]}, "2": {"total": 5}}'
for name, text in {
    "table": TABLE,
    "crlf": TABLE.replace("\n", "\r\n"),
    "quoted": '\ufeff"seq_id",optype,step,stage,dp_rank,duration,start_ts\n0,"gc",1,1,1,0,0.5\n',
    "bad_lines": HEADER + "0,0,0,1,gc,nan,0,0,-1,-1,-1\n0,0\n\n0,0,0,1,gc,9e9,9e9,0,0,0,0\n0,0,0,1,gc,1,1,0,0,0,0",
    "huge": HEADER + "99999999,0,0,99999999999999999999,gc,1e30,1e-400,0,0,0,0\n",
    "headless": "0,0,0,1,gc,1,1,0,0,0,0\n",
    "primus": PRIMUS,
    "primus_cut": PRIMUS[:150],
    "primus_unsound": PRIMUS.replace("[5397.5]", "[[5397.5]]").replace('"total": 5', '"total": -5'),
    "primus_config": '{"world_size": 8, "pp_size": 8, "vp_size": 1, "num_mbs": 16, "train_iters": 20}',
}.items():
    write("op_trace", name, b"\x06" + text.encode())
