"""usage: resume.py URL EVENT   Reads an event stream with httpx-sse up to an event of this name, however often its
connection breaks. Prints each event as a line of JSON, and at the end how often it connected."""
import json
import sys
import time

import httpx
from httpx_sse import connect_sse

DEADLINE = 60  # seconds
PAUSE = 0.1

url, last = sys.argv[1:]
until = time.monotonic() + DEADLINE
connections, cursor, over = 0, "", False
with httpx.Client(timeout=DEADLINE, trust_env=False) as client:
    while not over:
        if time.monotonic() > until:
            sys.exit(f"no {last} after {connections} connections")
        try:
            with connect_sse(client, "GET", url, headers={"Last-Event-ID": cursor} if cursor else {}) as source:
                connections += 1
                for event in source.iter_sse():
                    cursor, over = event.id, event.event == last
                    print(json.dumps({"id": event.id, "event": event.event, "data": event.json()}))
                    if over:
                        break
        except httpx.TransportError:
            time.sleep(PAUSE)
print(connections)
