#!/usr/bin/env python3
"""A small server of generated text, with the lines that make it watched, and a load for it.

    LOCKSTEP_TRACE=/tmp/serving examples/serve_tokens.py serve --port 8000
    examples/serve_tokens.py load http://127.0.0.1:8000 --clients 2 --seconds 30
    lockstep top

The model is a recurrent network of random weights: what it says means nothing, what it costs does. Needs PyTorch, and the lockstep
package (PYTHONPATH=build/release/python)."""

import argparse
import http.client
import http.server
import json
import random
import sys
import threading
import time
import urllib.parse

HIDDEN = 1024
LETTERS = 128


def make_model():
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(1)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(LETTERS, HIDDEN)
            self.cells = nn.ModuleList(nn.GRUCell(HIDDEN, HIDDEN) for _ in range(2))
            self.head = nn.Linear(HIDDEN, LETTERS)

        @torch.inference_mode()
        def generate(self, prompt, count):
            """`count` letters after the prompt, one at a time."""
            states = [torch.zeros(1, HIDDEN) for _ in self.cells]
            letter = 0
            for given in prompt.encode("ascii", "replace")[:64]:
                letter = given % LETTERS
                states = self.step(letter, states)
            for _ in range(count):
                states = self.step(letter, states)
                letter = int(self.head(states[-1]).argmax())
                yield chr(letter)

        def step(self, letter, states):
            value = self.embed(torch.tensor([letter]))
            new = []
            for cell, state in zip(self.cells, states, strict=True):
                value = cell(value, state)
                new.append(value)
            return new

    return Model().eval()


def serve(port):
    import lockstep

    model = make_model()
    sys.setswitchinterval(0.0005)  # A request that arrives is taken up soon, also while another one computes.

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # Else the answer's body waits 40 ms for the client to acknowledge its head.

        def do_POST(self):  # noqa: N802  (as http.server calls it)
            # The three lines of lockstep's: a request, its outputs, and that it failed if it raises.
            with lockstep.request("generate", parent=self.headers.get("traceparent")) as request:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                letters = []
                if not 0 < asked["count"] <= 4096:
                    request.end(failed=True)
                    self.send_error(400, "count: 1 to 4096")
                    return
                for letter in model.generate(asked["prompt"], asked["count"]):
                    letters.append(letter)
                    request.output()
                body = json.dumps({"text": "".join(letters)}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def load(address, clients, seconds, shortest, longest, seed):
    """Each client asks again as soon as it was answered. Returns latencies in seconds, of all that succeeded, and the failures."""
    latencies, failures, lock = [], [0], threading.Lock()
    until = time.monotonic() + seconds

    def client(number):
        chance = random.Random(seed + number)
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc, timeout=60)
        while time.monotonic() < until:
            body = json.dumps({"prompt": "once upon a time", "count": chance.randint(shortest, longest)})
            began = time.monotonic()
            connection.request("POST", "/", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            with lock:
                if answer.status == 200:
                    latencies.append(time.monotonic() - began)
                else:
                    failures[0] += 1
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(latencies), failures[0]


def quantile(ordered, share):
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("serve", help="serve until Ctrl-C; prints its address")
    server.add_argument("--port", type=int, default=0)
    client = commands.add_parser("load", help="ask again and again; prints latencies as JSON")
    client.add_argument("address")
    client.add_argument("--clients", type=int, default=2)
    client.add_argument("--seconds", type=float, default=30)
    client.add_argument("--shortest", type=int, default=10, help="letters that the shortest request asks for")
    client.add_argument("--longest", type=int, default=60)
    client.add_argument("--seed", type=int, default=1)
    client.add_argument("--list", action="store_true", help="print every latency too, the shortest first")
    flags = parser.parse_args()
    if flags.command == "serve":
        serve(flags.port)
    latencies, failures = load(flags.address, flags.clients, flags.seconds, flags.shortest, flags.longest, flags.seed)
    print(json.dumps({**({"latencies_s": latencies} if flags.list else {}), "requests": len(latencies), "failures": failures, "seconds": flags.seconds,
                      **{f"p{round(share * 100)}_s": quantile(latencies, share) for share in (0.5, 0.95, 0.99) if latencies}}))


if __name__ == "__main__":
    main()
