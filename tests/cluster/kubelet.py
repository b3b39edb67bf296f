#!/usr/bin/env python3
"""Stands in for the kubelets and for aggregated APIs: container logs, metrics.k8s.io, discovery.k8s.io/v1; HTTPS on loopback.

usage: kubelet.py DIR   (reads DIR/kubelet.json and DIR/logs, which the seeder writes; writes its port to DIR/kubelet.port)
SPDX-License-Identifier: Apache-2.0
"""
import calendar
import functools
import json
import os
import pathlib
import re
import select
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

STATE = pathlib.Path(sys.argv[1])


@functools.lru_cache(maxsize=1)
def parse(_modified):
    return json.loads((STATE / "kubelet.json").read_text())


def seeded():
    try:
        return parse((STATE / "kubelet.json").stat().st_mtime_ns)
    except FileNotFoundError:  # asked before the seeder was done
        return {"pods": {}, "nodes": {}, "slices": []}


class Refused(Exception):
    """What a kubelet answers when there is no log to read."""


def log_lines(namespace, pod, container, previous):
    """The lines `<time> <text>` of the run that a kubelet would choose, or its words for having none."""
    statuses = seeded()["pods"].get(f"{namespace}/{pod}", {}).get("statuses", [])
    status = next((s for s in statuses if s["name"] == container), None)
    if status is None:
        raise Refused(f'container "{container}" in pod "{pod}" is not available')
    state, last = status["state"], status.get("lastState", {})
    if previous and "terminated" not in last:
        raise Refused(f'previous terminated container "{container}" in pod "{pod}" not found')
    if "waiting" in state:
        if "terminated" not in last:
            reason = state["waiting"]["reason"]
            words = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}.get(reason, reason)
            raise Refused(f'container "{container}" in pod "{pod}" is waiting to start: {words}')
        previous = True  # between two runs the log is the last run's
    path = STATE / "logs" / namespace / pod / f"{container}{'.previous' if previous else ''}.log"
    return path.read_text().splitlines() if path.exists() else []


def since(query):
    if "sinceSeconds" in query:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - int(query["sinceSeconds"])))
    if "sinceTime" in query:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(instant(query["sinceTime"])))
    return ""


def instant(stamp):
    base, zone = re.fullmatch(r"(\d+-\d+-\d+T\d+:\d+:\d+)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", stamp).groups()
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 3600 + int(zone[4:]) * 60) * (-1 if zone[0] == "-" else 1)
    return calendar.timegm(time.strptime(base, "%Y-%m-%dT%H:%M:%S")) - offset


def selected(labels, selector):
    for term in filter(None, re.split(r",(?![^(]*\))", selector)):
        key, wanted, value = re.fullmatch(r"\s*([^!=\s]+)\s*(==|=|!=|in|notin)\s*(.*?)\s*", term).groups()
        values = [v.strip() for v in value.strip("()").split(",")]
        if (labels.get(key) in values) == (wanted in ("!=", "notin")):
            return False
    return True


def served(group):
    """The collections of an aggregated API: {resource: (kind, items)}."""
    data = seeded()
    if group == "metrics.k8s.io/v1beta1":
        stamp = {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "window": "30s"}

        def usage(pair):
            return {"cpu": pair[0], "memory": pair[1]}

        def pod(key, known):
            namespace, name = key.split("/")
            containers = [{"name": c, "usage": usage(u)} for c, u in known["usage"].items()]
            return {"metadata": {"name": name, "namespace": namespace, "labels": known["labels"]}, **stamp, "containers": containers}

        nodes = [{"metadata": {"name": n, "labels": {"kubernetes.io/hostname": n}}, **stamp, "usage": usage(u)} for n, u in data["nodes"].items()]
        return {"nodes": ("NodeMetrics", nodes), "pods": ("PodMetrics", [pod(k, v) for k, v in data["pods"].items() if v["usage"]])}
    if group == "discovery.k8s.io/v1":  # kubectl describes services by it; the server has v1beta1
        def newer(old):
            endpoints = [{**e, "nodeName": e["topology"]["kubernetes.io/hostname"]} for e in old["endpoints"]]
            return {**old, "endpoints": [{k: v for k, v in e.items() if k != "topology"} for e in endpoints]}

        return {"endpointslices": ("EndpointSlice", [newer(s) for s in data["slices"]])}
    return None


def aggregated(group, path, selector):
    """Answers for /apis/<group>/<path>, or None."""
    collections = served(group)
    if collections is None:
        return None
    if not path:
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": [
            {"name": name, "singularName": "", "namespaced": name != "nodes", "kind": kind, "verbs": ["get", "list"]}
            for name, (kind, _) in collections.items()]}
    namespace = path[1] if path[0] == "namespaces" else None
    resource, *name = path[2:] if namespace else path
    kind, items = collections[resource]
    items = [{"kind": kind, "apiVersion": group, **i} for i in items if not namespace or i["metadata"]["namespace"] == namespace]
    if name:
        return next((i for i in items if i["metadata"]["name"] == name[0]), None)
    items = [i for i in items if selected(i["metadata"]["labels"], selector)]
    return {"kind": f"{kind}List", "apiVersion": group, "metadata": {}, "items": items}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urlparse(self.path)
        query = {k: v[0] for k, v in parse_qs(url.query).items()}
        path = url.path.strip("/").split("/")
        try:
            if path[0] == "containerLogs" and len(path) == 4:
                return self.logs(log_lines(*path[1:], query.get("previous") == "true"), query)
            if path[0] == "apis" and len(path) > 2:
                answer = aggregated("/".join(path[1:3]), path[3:], query.get("labelSelector", ""))
                if answer is not None:
                    return self.send(200, json.dumps(answer), "application/json")
                return self.send(404, json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
                                                  "message": f'{path[-2]}.{path[1]} "{path[-1]}" not found'}), "application/json")
            return self.send(404, "404 page not found\n")
        except Refused as refused:
            return self.send(400, str(refused))

    def send(self, code, text, kind="text/plain"):
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def logs(self, lines, query):
        lines = [line for line in lines if line >= since(query)]
        if "tailLines" in query:
            lines = lines[max(len(lines) - int(query["tailLines"]), 0):]
        if query.get("timestamps") != "true":
            lines = [line.partition(" ")[2] for line in lines]
        body = "".join(line + "\n" for line in lines).encode()[:int(query.get("limitBytes", 1 << 40))]
        if query.get("follow") != "true":
            return self.send(200, body.decode(errors="replace"))
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(body)
        while STATE.exists() and not select.select([self.connection], [], [], 1)[0]:
            pass  # a running container that has nothing more to say; readable means that the reader has left


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(STATE / "server.crt", STATE / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    port = STATE / "kubelet.port"
    (STATE / "kubelet.port.new").write_text(str(server.server_port))
    os.rename(STATE / "kubelet.port.new", port)
    server.serve_forever()


if __name__ == "__main__":
    main()
