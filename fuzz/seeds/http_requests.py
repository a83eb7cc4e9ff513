"""Seeds of HTTP."""
from corpus import write

# --- http_request ---------------------------------------------------------------------------------------------

for name, lines in {
    "own_page": ["/api/v1/captures", "localhost:9476", "gzip", "", "", "http://localhost:9476", "same-origin"],
    "other_page": ["/api/v1/captures", "10.1.2.3:9476", "", "", "", "https://evil.example", "cross-site"],
    "named": ["/", "Node17:9476", "", "", "", "null", "none"],
    "bracketed": ["/", "[2001:db8::1]:9476", "", "", "", "http://[2001:db8::1]:9476", ""],
}.items():
    write("http_request", name, "\n".join(lines).encode())

# --- http_bytes -----------------------------------------------------------------------------------------------

HOST = b"Host: localhost\r\n"
CHUNKED = b"POST /c HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
POST = b"POST /api/v1/captures HTTP/1.1\r\n" + HOST
for name, data in {
    "get": b"\x18GET /-/healthy HTTP/1.1\r\n" + HOST + b"\r\n",
    "pipelined": b"\x09GET /a?b HTTP/1.1\r\n" + HOST + b"\r\n" + POST + b"Content-Length: 2\r\n\r\n{}DELETE /x HTTP/1.1\r\n" + HOST + b"\r\n",
    "chunked": b"\x29" + CHUNKED + b"3;e=1\r\nabc\r\na\r\n0123456789\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n",
    "chunk_too_large": b"\x01" + CHUNKED + b"101\r\nabc",
    "chunk_bad": b"\x01" + CHUNKED + b"zz\r\n",
    "two_lengths": b"\x01" + POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length_and_chunks": b"\x01" + POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "expect": b"\x01" + POST + b"Content-Length: 2\r\nExpect: 100-continue\r\nAuthorization: Bearer t\r\n\r\n{}",
    "other_site": b"\x01" + POST + b"Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n\r\n",
    "no_bodies": b"\x00" + POST + b"Content-Length: 2\r\n\r\n{}",
    "unix_socket": b"\x07GET / HTTP/1.0\r\n\r\n",
    "folded": b"\x20GET / HTTP/1.1\r\nHost:\r\n localhost\r\n\r\n",
    "large_header": b"\x21GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 480 + b"\r\n\r\n",
    "many_lines": b"\x31GET / HTTP/1.1\r\n" + HOST + b"a: b\r\n" * 100 + b"\r\n",
    "tls": b"\x01\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}.items():
    write("http_bytes", name, data)
