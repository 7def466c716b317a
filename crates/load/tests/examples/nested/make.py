# Nested tables by pyarrow, as Arrow (file, stream, lz4, zstd, sliced, list views, dictionaries within lists) and as Parquet.
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.ipc as ipc, datetime, decimal, random, sys
random.seed(7)
def maybe(v, p=0.2): return None if random.random() < p else v
N = int(sys.argv[1]) if len(sys.argv) > 1 else 60
words = ["", "a", 'quo"te', "längeres Wort mit mehr als zwölf", "x,y\nz"]
def row(n):
    return dict(
      n=n,
      s=maybe(dict(a=maybe(n), t=maybe(dict(x=maybe(random.choice(words)), l=maybe([maybe((n+i) % 30000) for i in range(random.randrange(4))]))))),
      l=maybe([maybe(random.randrange(100)) for _ in range(random.randrange(4))]),
      ll=maybe([maybe([maybe(random.choice(words)) for _ in range(random.randrange(3))]) for _ in range(random.randrange(3))]),
      ls=maybe([maybe(dict(k=maybe(random.choice(words)), d=maybe(decimal.Decimal(random.randrange(-10**6,10**6)).scaleb(-2)))) for _ in range(random.randrange(3))]),
      m=maybe([(random.choice(words)+str(i), maybe(random.random())) for i in range(random.randrange(4))]),
      mi=maybe([(i*7, maybe([maybe(True), False])) for i in range(random.randrange(3))]),
      f=maybe([maybe(random.randrange(9)), maybe(2)]),
      dts=maybe([maybe(datetime.date(2020,1,1)+datetime.timedelta(random.randrange(9999))) for _ in range(2)]),
      ts=maybe([maybe(datetime.datetime(2021,3,4,5,6,7,random.randrange(10**6))) for _ in range(2)]),
      b=maybe([maybe(bytes([random.randrange(256) for _ in range(3)])) for _ in range(2)]),
      fl=maybe([maybe(x) for x in [1.5, float("nan"), float("inf"), -0.0]]),
      u=maybe([maybe(2**64-1), 0]),
    )
T = pa.schema([("n", pa.int64()),
 ("s", pa.struct([("a", pa.int32()), ("t", pa.struct([("x", pa.string()), ("l", pa.list_(pa.int16()))]))])),
 ("l", pa.list_(pa.int32())), ("ll", pa.list_(pa.list_(pa.string()))),
 ("ls", pa.list_(pa.struct([("k", pa.string()), ("d", pa.decimal128(12,2))]))),
 ("m", pa.map_(pa.string(), pa.float64())), ("mi", pa.map_(pa.int32(), pa.list_(pa.bool_()))),
 ("f", pa.list_(pa.int8(), 2)), ("dts", pa.list_(pa.date32())), ("ts", pa.list_(pa.timestamp("us"))),
 ("b", pa.list_(pa.binary())), ("fl", pa.list_(pa.float64())), ("u", pa.list_(pa.uint64()))])
t = pa.Table.from_pylist([row(n) for n in range(N)], schema=T)
pq.write_table(t, "nested.parquet", row_group_size=max(7, N//3))
def w(name, table, stream=False, comp=None, chunk=None):
    o = ipc.IpcWriteOptions(compression=comp)
    f = ipc.new_stream(name, table.schema, options=o) if stream else ipc.new_file(name, table.schema, options=o)
    f.write_table(table, max_chunksize=chunk or max(11, N//4)); f.close()
w("file.arrow", t); w("stream.arrows", t, stream=True)
w("lz4.arrow", t, comp="lz4"); w("zstd.arrows", t, stream=True, comp="zstd")
# Sliced: behind rows that are not written.
more = pa.concat_tables([pa.Table.from_pylist([row(-1) for _ in range(13)], schema=T), t, pa.Table.from_pylist([row(-2) for _ in range(5)], schema=T)]).combine_chunks()
w("sliced.arrow", more.slice(13, N))
# The same values in other forms: large lists, list views, dictionaries and views of text within them.
d = pa.dictionary(pa.int8(), pa.string())
O = pa.schema([("n", pa.int64()),
 ("s", pa.struct([("a", pa.int32()), ("t", pa.struct([("x", d), ("l", pa.large_list(pa.int16()))]))])),
 ("l", pa.list_view(pa.int32())), ("ll", pa.large_list(pa.large_list_view(pa.string_view()))),
 ("ls", pa.list_(pa.struct([("k", d), ("d", pa.decimal128(12,2))]))),
 ("m", pa.map_(pa.large_string(), pa.float64())), ("mi", pa.map_(pa.int32(), pa.list_view(pa.bool_()))),
 ("f", pa.list_(pa.int8(), 2)), ("dts", pa.list_(pa.date64())), ("ts", pa.list_(pa.timestamp("ns"))),
 ("b", pa.list_(pa.binary_view())), ("fl", pa.list_(pa.float64())), ("u", pa.list_(pa.uint64()))])
rows = t.to_pylist()
other = pa.Table.from_pylist(rows, schema=O)
w("forms.arrow", other, chunk=N); w("forms.arrows", other, stream=True, chunk=9); w("forms_zstd.arrow", other, chunk=N, comp="zstd")
# A dictionary of lists.
lists = pa.array([[1, None], None, [], [3]], pa.list_(pa.int32()))
dl = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 3, 0, 2], pa.int8()), lists)
w("coded_lists.arrow", pa.table({"c": dl, "d": pa.array([[x] if x else None for x in range(6)], pa.list_(pa.int64()))}))
