"""Seeds of SQL."""
from corpus import write

# --- query ----------------------------------------------------------------------------------------------------

def sql(name, text):
    write("query", name, text if isinstance(text, bytes) else text.encode())


sql("count", "SELECT count(*) FROM events")
sql("all_events", "SELECT * FROM events WHERE rank = 1 AND name LIKE 'aten%' ORDER BY start_ns LIMIT 5")
sql("kernels", "SELECT kind, short_name(name, 20), step, launch_start_ns FROM kernels WHERE track IN (3, 4) AND duration_ns > 50.5")
sql("ranges", "SELECT id FROM events WHERE start_ns BETWEEN 1700000000000000100 AND 1.7e18 + 900 AND end_ns >= 17e17 AND correlation <> 3")
sql("join", "SELECT sum(overlap_ns(a.start_ns, a.end_ns, b.start_ns, b.end_ns)) FROM kernels a JOIN kernels b ON b.rank = a.rank AND b.start_ns < a.end_ns AND b.end_ns > a.start_ns")
sql("aggregates", "SELECT rank, median(duration_ns), percentile(duration_ns, 99), stddev(depth), union_ns(start_ns, end_ns), intersect_ns(start_ns, end_ns, lane = 'device') FROM events GROUP BY rank, window")
sql("window", "SELECT start_ns - lag(end_ns) OVER (PARTITION BY track ORDER BY id) AS gap FROM kernels ORDER BY gap DESC LIMIT 3")
sql("with", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT x, format_ns(x * 1e6), format_bytes(x << 20), format_rate(x * 1e9) FROM c")
sql("steps", "SELECT step, max(span_ns), communication_overlap_ratio FROM steps NATURAL JOIN breakdown GROUP BY step HAVING count(*) > 1")
sql("json", "SELECT f.id, j.value FROM findings f, json_each(f.advice) j UNION ALL SELECT code, message FROM ledger")
sql("every_table", "SELECT (SELECT count(*) FROM ranks), (SELECT count(*) FROM tracks), (SELECT count(*) FROM collectives), (SELECT count(*) FROM memory_events WHERE time_ns > 17e17), (SELECT max(meaning) FROM catalog)")
sql("printf", "SELECT printf('%-8.3f|%,d|%05x|%s|%q|%Q|%%|%w', 3.14, 1234567, 255, name, 'it''s', NULL, 'w') FROM ranks")
sql("explain", "EXPLAIN QUERY PLAN SELECT * FROM collectives WHERE instance = 3 AND rank = 1")
sql("explain_code", "EXPLAIN SELECT * FROM idle")
sql("pragma", "PRAGMA table_info(events)")
sql("attach", "ATTACH 'x.db' AS x")
sql("vacuum", "VACUUM INTO 'x'")
sql("create", "CREATE VIRTUAL TABLE t USING events")
sql("insert", "INSERT INTO ranks(rank) VALUES (1) RETURNING *")
sql("extension", "SELECT load_extension('x')")
sql("pragma_bad", "PRAGMA writable_schema=ON")
sql("two", "SELECT 1; SELECT 2")
sql("comment", "-- nothing\n/* here */ ;")
sql("unknown", "SELECT durration_ns FROM evnts")
sql("syntax", "SELECT rank,,\n\t'\xff FROM (((")
sql("endless", "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c")
sql("blob", "SELECT zeroblob(70), x'00ff', char(0, 27, 10), 9e999, -9e999, 1 AS a, 2 AS a")
sql("null_byte", b"SELECT 1\0, 2")
sql("not_text", bytes(range(256)))
