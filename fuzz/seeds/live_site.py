"""Seeds of live_site_fuzz: the first byte says what the rest is."""

from corpus import write

for name, text in {
    "capture": 'c{"job_id":"4711","ranks":[0,3],"iterations":5,"stacks":true,"record_shapes":false,"memory":true}',
    "capture_pid": 'c{"job_id":"pid-4711","duration_ms":500}',
    "capture_both": 'c{"iterations":5,"duration_ms":500}',
    "hang": 'h{"job_id":"4711"}',
    "alerts": 'a{"status":"success","data":{"alerts":[{"labels":{"alertname":"LockstepGpuXidHardware","severity":"critical","gpu":"3"},'
              '"annotations":{"summary":"GPU 3","runbook_url":"docs/runbook/xid.md"},"state":"firing","activeAt":"2026-11-23T10:00:00.5Z","value":"1e+00"}]}}',
    "alerts_error": 'a{"status":"error","errorType":"execution","error":"too busy"}',
    "time": "t2024-02-29T12:34:56.789012345Z",
    "url": "uhttps://[::1]:9090/prometheus/",
    "query": "qa=b&token=0123456789abcdef0123456789abcdef&",
}.items():
    write("live_site", name, text.encode())
