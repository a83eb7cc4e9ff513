"""Seeds of the decoders and archives."""
import gzip
import io
import subprocess
import tarfile
import zipfile

from corpus import write
from kineto_text import kineto, op

# --- archive --------------------------------------------------------------------------------------------------

TEXT = kineto([op(i) for i in range(6)]).encode()


def tar(entries, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as archive:
        for name, data, kind, target in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = target
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue().rstrip(b"\0") + b"\0" * 1024


def zipped(entries, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def stream(name, data, window=3):
    write("archive", name, bytes([0, window]) + data)


def archive(name, data, window=4):
    write("archive", name, bytes([1, window]) + data)


stream("gzip", gzip.compress(TEXT, mtime=0))
stream("gzip_stored", gzip.compress(b"stored " * 20, 0, mtime=0))
stream("gzip_members", gzip.compress(TEXT, mtime=0) + gzip.compress(b"", mtime=0) + gzip.compress(b"tail", mtime=0))
stream("gzip_cut", gzip.compress(TEXT, mtime=0)[:100])
stream("gzip_text_behind", gzip.compress(b"{}", mtime=0) + b'{"traceEvents": []}')
stream("gzip_zeros_behind", gzip.compress(b"{}", mtime=0) + b"\0" * 100)
stream("gzip_bomb", gzip.compress(b"\0" * (5 << 20), 9, mtime=0))
# Every optional header field: extra, name, comment, header checksum flag off.
stream("gzip_fields", b"\x1f\x8b\x08\x1c\0\0\0\0\0\x03" + b"\x04\x00abcd" + b"name\0" + b"comment\0" + gzip.compress(b"fields", mtime=0)[10:])
stream("zstd", zstd(TEXT))
stream("zstd_frames", b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd(TEXT) + zstd(b"") + zstd(b"tail"))
stream("zstd_cut", zstd(TEXT)[:80])
stream("xz", b"\xfd7zXZ\0")
stream("plain", b"plain text")
stream("empty", b"")

REG, DIR, SYM, LNK, CHR = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE
RANKS = [("job", b"", DIR, ""), ("job/rank0.json", TEXT, REG, ""), ("job/rank1.json.gz", gzip.compress(TEXT, mtime=0), REG, ""), ("README", b"x", REG, "")]
ODD = [
    ("../../rank0.json", b"up", REG, ""), ("/etc/rank1.json", b"absolute", REG, ""), ("rank2.json", b"", SYM, "/etc/passwd"),
    ("rank3.json", b"", LNK, "rank0.json"), ("rank4.json", b"", CHR, ""), ("n" * 200 + "rank5.json", b"long", REG, ""),
    ("a\x1b[2J\nrank6.json", b"control", REG, ""), ("inner.tgz", b"x", REG, ""), ("rank7.json", b"", REG, ""),
]
archive("tar", tar(RANKS))
archive("tar_ustar", tar(RANKS[:3], tarfile.USTAR_FORMAT))
archive("tar_odd", tar(ODD))
archive("tar_gnu", tar(ODD[:6], tarfile.GNU_FORMAT))
archive("tar_gz", gzip.compress(tar(RANKS), mtime=0))
archive("tar_zst", zstd(tar(RANKS)))
archive("tar_cut", tar(RANKS)[:1500])
archive("tar_gz_cut", gzip.compress(tar(RANKS), mtime=0)[:300])
archive("zip_stored", zipped([("rank0.json", TEXT), ("a/rank1.json", b"one")], zipfile.ZIP_STORED))
archive("zip_deflated", zipped([("rank0.json", TEXT), ("../rank1.json", b"one")], zipfile.ZIP_DEFLATED))
archive("zip_cut", zipped([("rank0.json", TEXT)], zipfile.ZIP_DEFLATED)[:-30])
archive("zip_empty", zipped([], zipfile.ZIP_STORED))
# A sparse member that claims a hole of 8 GiB (GNU 1.0 sparse map in a pax header).
sparse = tarfile.TarInfo("rank0.json")
sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "rank0.json", "GNU.sparse.realsize": str(8 << 30)}
sparse.size = 1024
body = io.BytesIO()
with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT) as t:
    t.addfile(sparse, io.BytesIO((b"1\n%d\n512\n" % ((8 << 30) - 512)).ljust(512, b"\0") + b"d" * 512))
archive("tar_sparse", body.getvalue().rstrip(b"\0") + b"\0" * 1024)
