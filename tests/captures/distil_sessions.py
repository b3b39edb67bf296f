#!/usr/bin/env python3
"""Distils captures of a real everruns-serve to facts about the session protocol.

    distil_sessions.py CAPTURES FACTS.json

Keeps the order of the events of each flow, the paths and JSON types of everything that the events of each type say,
and of requests that fail the status and whether there is a `detail`. Nothing of the server's prose is kept.
"""

import json
import re
import sys
from pathlib import Path

FLOWS = ["plain", "tool", "second", "steer", "cancel", "failing"]
# Paths whose content is the client's or a tool's own.
OPAQUE = {"arguments", "request_body", "parameters"}
TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}


def frames(path):
    body = path.read_text().replace("\r\n", "\n").split("\n\n", 1)[1]
    for block in body.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in fields and "data" in fields:
            yield fields["event"], json.loads(fields["data"]), "id" in fields


def paths(value, at, into):
    if value is None:
        return
    into[at] = TYPES[type(value)]
    if isinstance(value, dict) and at.rsplit(".", 1)[-1] not in OPAQUE:
        for name, field in value.items():
            paths(field, f"{at}.{name}", into)
    if isinstance(value, list):
        for item in value:
            paths(item, f"{at}[]", into)


def placeholder(path):
    path = re.sub(r"session_(01a2[0-9a-f]{28})", "{session}", path)
    return re.sub(r"event_(01a2[0-9a-f]{28})", "{event}", path)


def main(captures, out):
    flows, fields = {}, {}
    for flow in FLOWS:
        events = [frame for frame in frames(captures / f"{flow}_stream.response.txt") if frame[0] != "connected"]
        flows[flow] = [name for name, _, _ in events if not name.endswith(".delta")]
        for name, event, _ in events:
            known = fields.setdefault(name, {})
            paths(event["data"], "data", known)
            paths(event["context"], "context", known)
    errors = {}
    for request in sorted(captures.glob("error_*.request.json")):
        name = request.name.removesuffix(".request.json")
        asked = json.loads(request.read_text())
        head, body = (captures / f"{name}.response.txt").read_text().replace("\r\n", "\n").split("\n\n", 1)
        content_type = {key.lower(): value for key, value in asked["headers"].items()}.get("content-type")
        errors[name.removeprefix("error_")] = {
            "method": asked["method"],
            "path": placeholder(asked["path"]),
            "content_type": content_type,
            "body": asked.get("body"),
            "status": int(head.split()[1]),
            "problem": body.startswith('{"detail"'),
        }
    facts = {"flows": flows, "fields": fields, "errors": errors}
    out.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")


main(Path(sys.argv[1]), Path(sys.argv[2]))
