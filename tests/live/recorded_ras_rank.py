"""No NCCL, which needs GPUs: a process that has a rank's environment and answers as NCCL's RAS did once.

Arguments: the number of a listening socket that it inherited, and a file with the answer, which is given each time it is asked.
"""

import pathlib
import socket
import sys
import threading


def serve(listener, answer):
    """RAS's line protocol, for one question a connection."""
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw", encoding="utf-8", newline="\n") as stream:
            for line in stream:
                words = line.split()
                if words[:2] == ["CLIENT", "PROTOCOL"]:
                    stream.write("SERVER PROTOCOL 2\n")
                elif words[:1] == ["TIMEOUT"] or words == ["SET", "FORMAT", "json"]:
                    stream.write("OK\n")
                elif words == ["VERBOSE", "STATUS"]:
                    stream.write(answer)
                    stream.flush()
                    break
                else:
                    stream.write("ERROR: Unknown command\n")
                stream.flush()


def main():
    listener = socket.socket(fileno=int(sys.argv[1]))
    answer = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
