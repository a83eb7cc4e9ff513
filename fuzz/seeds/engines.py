"""Seeds of what inference engines say of themselves. The first byte is the engine (even: vLLM), the second where the first look ends."""
import sys
import pathlib

from corpus import write

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/monitoring"))
from fake_engine import Sglang, Vllm  # noqa: E402

for name, first, engine in (("vllm", b"\x00", Vllm("m")), ("vllm_old", b"\x00", Vllm("m", is_old=True)), ("sglang", b"\x01", Sglang("q"))):
    for seconds in (0.1, 0.4, 30, 1e9):
        engine.serve(seconds, first_token_s=seconds / 4, tokens=2)
    write("engine_metrics", name, first + b"\xff" + engine.text().encode()[:6000])
BUCKET = 'vllm:e2e_request_latency_seconds_bucket{le="%s",model_name="m"} %s\n'
for name, text in {
    "down": "".join(BUCKET % pair for pair in (("1", 5), ("2", 4), ("+Inf", 3))),
    "bounds": "".join(BUCKET % pair for pair in (("-Inf", 1), ("-5", 2), ("0", 3), ("inf", 4), ("nan", 5), ("", 6))),
    "huge": "".join(BUCKET % pair for pair in (("1", "1e300"), ("+Inf", "1e308"))) + 'vllm:num_requests_running{} 1e308\nvllm:num_requests_running{engine="1"} 1e308\n',
    "models": "".join(f'vllm:num_requests_running{{model_name="m{number}"}} 1\n' for number in range(20)),
    "command": "python3\0-m\0vllm.entrypoints.openai.api_server\0--port\x008001\0",
    "listeners": "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0\n",
}.items():
    write("engine_metrics", name, b"\x00\x80" + text.encode())
