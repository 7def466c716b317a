"""Inflates a gzip file with a library, `inflate.py isal|zlib-ng FILE`, and prints its times as JSON."""

import json
import sys
import time
from pathlib import Path

from isal import isal_zlib
from zlib_ng import zlib_ng

LIBRARIES = {"isal": isal_zlib, "zlib-ng": zlib_ng}
# Bytes of input at once: outputs of some 200 KB stay in the cache.
PIECE_BYTES = 64 << 10
# Bits of the window, and that a gzip header is read.
GZIP = 16 + 15

library = LIBRARIES[sys.argv[1]]
stored = Path(sys.argv[2]).read_bytes()
wall, cpu = time.perf_counter(), time.process_time()
decoder = library.decompressobj(GZIP)
size = 0
for at in range(0, len(stored), PIECE_BYTES):
    size += len(decoder.decompress(stored[at : at + PIECE_BYTES]))
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
print(json.dumps({"wall": wall, "cpu": cpu, "bytes": size}))
