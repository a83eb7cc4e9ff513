"""Seeds of tables of Nsight Compute and of `nsys stats`."""
from corpus import write

FACTS = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",'
PIPE = "sass_thread_inst_executed_op_{}_pred_on.sum.{}"
METRICS = {
    "gpu__time_duration.sum": ("usecond", "431.648"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "64.8"),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "61,5"),
    "sm__cycles_elapsed.avg.per_second": ("cycle/nsecond", "1.3"),
    "smsp__cycles_elapsed.avg.per_second": ("cycle/nsecond", "1.3"),
    "dram__cycles_elapsed.avg.per_second": ("cycle/nsecond", "6.2"),
    "dram__bytes.sum.peak_sustained": ("byte/cycle", "96"),
    "dram__bytes.sum.per_second": ("Gbyte/second", "47.9"),
    "sm__" + PIPE.format("ffma", "peak_sustained"): ("inst/cycle", "10240"),
    "smsp__" + PIPE.format("ffma", "per_cycle_elapsed"): ("inst/cycle", "1,891.5"),
    "sm__inst_executed_pipe_tensor.sum.peak_sustained": ("inst/cycle", "80"),
    "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed": ("inst/cycle", "7"),
}
LAUNCH = '"0","7","python","127.0.0.1","void f<int>(a, ""b"")","1","7","(32, 1, 1)","(8, 1, 1)","0","8.6",'


def quoted(cells):
    return ",".join(f'"{cell}"' for cell in cells) + "\n"


RAW = FACTS + quoted(METRICS) + '"",' * 11 + quoted(unit for unit, _ in METRICS.values()) + LAUNCH + quoted(
    value for _, value in METRICS.values())
DETAILS = (FACTS + '"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description",'
           '"Estimated Speedup Type","Estimated Speedup"\n' + LAUNCH + '"SOL","Duration","msecond","2.5",\n'
           + LAUNCH + '"SOL","","","","SOLBottleneck","OPT","do, this","local","25.5"\n')
STATS = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range\n"
for name, text in {
    "raw": "==PROF== Connected\nloss 2\n" + RAW,
    "raw_cut": RAW[:-60],
    "raw_huge": RAW.replace("47.9", "1e300").replace("1.3", "1e308"),
    "raw_tiny": RAW.replace("47.9", "1e-300").replace("10240", "1e-320"),
    "raw_zero": RAW.replace("431.648", "0").replace("64.8", "0").replace("61,5", "n/a"),
    "details": DETAILS,
    "stats": "Processing [x]\n" + STATS + '75.0,1500,3,1,1,1,9,1,PushPop,"a, b"\n1,2\n-1,-5,1,1,1,1,1,1,x,y\n',
    "stats_tsv": STATS.replace(",", "\t").replace("(ns)", "(ms)") + "75\t9e15\t9e18\t1\t1\t1\t9\t1\tx\ty\n",
    "open_quote": FACTS + '"m"\n"0","7","never closed',
}.items():
    write("kernel_profile", name, text.encode())
