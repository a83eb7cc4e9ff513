"""What docs/query.md shows: questions, their SQL, and what is printed."""

import re

QUESTION = re.compile(r"^### (?P<number>\d+)\. (?P<title>[^\n]+)\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPE = re.compile(r"^    lockstep_trace_gen (?P<options>[^\n]+)$", re.MULTILINE)


def questions(text):
    """Title, SQL, printed text and the span of the printed text, of each."""
    for match in QUESTION.finditer(text):
        body = match["body"]
        sql, output = SQL.search(body), OUTPUT.search(body)
        start = match.start("body")
        yield (int(match["number"]), match["title"], sql[1], output[1], (start + output.start(1), start + output.end(1)))
