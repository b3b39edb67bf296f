"""Writes the seeds into a running API server: create, status, events; then makes the objects as old as they claim to be.

SPDX-License-Identifier: Apache-2.0
"""
import base64
import http.client
import json
import pathlib
import re
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

from expand import API, CLUSTER_SCOPED, World, Scenario, seconds, suffix

SEEDS = pathlib.Path(__file__).parent / "seed"
SYSTEM = ["default", "kube-system", "kube-public", "kube-node-lease"]  # the API server makes these itself


class Api:
    """A keep-alive connection per thread."""

    def __init__(self, port, ca, token):
        self.port, self.token = port, token
        self.context = ssl.create_default_context(cafile=str(ca))
        self.local = threading.local()

    def call(self, method, path, body=None, kind="application/json"):
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=30)
        connection = self.local.connection
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Authorization": f"Bearer {self.token}", "Content-Type": kind})
        response = connection.getresponse()
        text = response.read().decode()
        if response.status >= 400:
            raise RuntimeError(f"{method} {path}: {response.status} {text}\n{json.dumps(body)[:2000]}")
        return json.loads(text) if text.startswith("{") else text

    def url(self, obj, *parts):
        version, kind = obj["apiVersion"], obj["kind"]
        plural = {"Endpoints": "endpoints", "Ingress": "ingresses", "StorageClass": "storageclasses"}.get(kind, kind.lower() + "s")
        place = [] if kind in CLUSTER_SCOPED else ["namespaces", obj["metadata"]["namespace"]]
        return "/".join(["", "api" if version == "v1" else "apis", version, *place, plural, *parts])


def basics(name, age):
    """What every namespace has in a real 1.20 cluster."""
    token = f"default-token-{suffix(5, name)}"
    account = {"kubernetes.io/service-account.name": "default"}
    own = [] if name in SYSTEM else [{"kind": "Namespace", "name": name, "age": age, "labels": {}}]
    return own + [
        {"kind": "ServiceAccount", "name": "default", "age": age, "secrets": [{"name": token}]},
        {"kind": "ConfigMap", "name": "kube-root-ca.crt", "age": age, "data": {"ca.crt": "(the cluster's CA)\n"}},
        {"kind": "Secret", "name": token, "age": age, "type": "kubernetes.io/service-account-token", "annotations": account,
         "stringData": {"namespace": name, "token": "not-a-real-token"}},
    ]


def seed_scenario(api, scenario):
    uids = {}

    def filled(value):
        return json.loads(re.sub(r"\{uid:([^}]+)\}", lambda m: uids[m[1]], json.dumps(value)))

    for obj in scenario.objects:
        status, binds = obj.pop("status", None), obj.pop("binds", None)
        made = api.call("POST", api.url(obj), body := filled(obj))
        name = made["metadata"]["name"]
        uids[f"{obj['kind']}/{obj['metadata']['name']}"] = made["metadata"]["uid"]
        obj["metadata"] = body["metadata"]
        path, patch = api.url(obj, name), "application/merge-patch+json"
        if binds:
            api.call("PATCH", path, {"spec": {"volumeName": filled(binds)}}, patch)
        if obj["kind"] == "Node":  # admission adds the not-ready taint of a new node
            api.call("PATCH", path, {"spec": {"taints": obj["spec"]["taints"]}}, patch)
        if status is not None:
            obj["status"] = filled(status)
            api.call("PATCH", f"{path}/status", {"status": obj["status"]}, patch)
    for event in scenario.events:
        api.call("POST", api.url(event), filled(event))


def backdate(etcd_port, scenarios, birth):
    """The API stamps creation times itself, so the true ages are written below it, straight into etcd (stored as JSON).

    What the API server made for itself is as old as the cluster claims to be.
    """
    wanted, found = {}, 0
    for obj in [o for s in scenarios for o in s.objects + s.events]:
        meta = obj["metadata"]
        times = {k: meta[k] for k in ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds") if k in meta}
        wanted[obj["kind"], meta.get("namespace"), meta["name"]] = times
    connection = http.client.HTTPConnection("127.0.0.1", etcd_port, timeout=30)

    def etcd(path, body):
        connection.request("POST", f"/v3/kv/{path}", json.dumps(body))
        return json.load(connection.getresponse())

    puts = []
    for entry in etcd("range", {"key": encode(b"/registry/"), "range_end": encode(b"/registry0")})["kvs"]:
        value = base64.b64decode(entry["value"])
        obj = json.loads(value) if value.startswith(b"{") else {}
        meta = obj.get("metadata", {})
        if "creationTimestamp" not in meta or "name" not in meta:
            continue  # the API server's own bookkeeping
        key = (obj["kind"], meta.get("namespace"), meta["name"])
        found += key in wanted
        meta.update(wanted.get(key, {"creationTimestamp": birth}))
        meta.pop("managedFields", None)
        puts.append({"requestPut": {"key": entry["key"], "value": encode(json.dumps(obj).encode()), "lease": entry.get("lease", "0")}})
    for i in range(0, len(puts), 100):  # etcd takes 128 operations at once
        assert etcd("txn", {"success": puts[i:i + 100]}).get("succeeded")
    assert found == len(wanted), f"{len(wanted) - found} objects were not found in etcd"


def encode(raw):
    return base64.b64encode(raw).decode()


def log_lines(source, world, run):
    """A line is `<age> <text>`, or `<age>..<age>/<step> <text>` to repeat it; `+<time>` counts from the start of the container's run
    instead. One without either shares the time of the line before. In the text, {t} is the line's time and {n} a number that grows.
    """
    lines = []
    for raw in source.read_text().splitlines():
        found = re.match(r"(\+?)((?:\d+[dhms])+)(?:\.\.((?:\d+[dhms])+)/((?:\d+[dhms])+))? (.*)", raw)
        if not found:
            lines.append((lines[-1][0], raw))
            continue
        plus, first, last, step, text = found.groups()
        if not step:
            lines.append((run - seconds(first) if plus else min(seconds(first), run), text))
            continue
        age = seconds(first)
        while age >= seconds(last):
            if age <= run:  # a younger pod has a shorter log
                lines.append((age, text))
            age -= seconds(step)
    for n, (age, text) in enumerate(sorted(lines, key=lambda line: -line[0])):
        stamp = f"{world.at(age)[:-1]}.{n * 37 % 1000:03}"
        yield f"{stamp}{n * 7919 % 1000000:06}Z {text.replace('{t}', stamp + 'Z').replace('{n}', str(41000 + n * 3))}\n"


def write_logs(target, scenario):
    """seed/<namespace>/logs/<pod, or what its name starts with>/<container>[.previous].log -> the same for each pod, with real times."""
    for source in sorted((SEEDS / scenario.namespace / "logs").glob("*/*.log")):  # a longer name is later, and wins
        container, previous = source.name.split(".")[0], ".previous." in source.name
        pods = [p for p in scenario.pods if (p["metadata"]["name"] + "-").startswith(source.parent.name + "-")]
        assert pods, f"{source}: no such pod"
        for pod in pods:
            statuses = pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", [])
            status = next(s for s in statuses if s["name"] == container)
            started = [s["startedAt"] for s in status["lastState" if previous else "state"].values() if "startedAt" in s]
            if started:
                path = target / scenario.namespace / pod["metadata"]["name"] / source.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("".join(log_lines(source, scenario.world, scenario.ago(started[0]))))


def seed(state, api_port, etcd_port, kubelet_port, token):
    world = World()
    api = Api(api_port, state / "ca.crt", token)
    cluster = Scenario("kube-system", world).load(json.loads((SEEDS / "cluster.json").read_text()))
    for obj in cluster.objects:
        if obj["kind"] == "Node":
            lost = obj["spec"]["taints"]
            # The API server finds kubelets by ExternalDNS (see `up`): a lost node's refuses the connection.
            obj["status"]["addresses"].append({"type": "ExternalDNS", "address": "localhost"})
            obj["status"]["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250 if lost else kubelet_port}}
        if obj["kind"] == "APIService":
            obj["spec"].update(insecureSkipTLSVerify=True, service={"namespace": "kube-system", "name": "metrics-server", "port": kubelet_port})
    scenarios = [Scenario(name, world).load(basics(name, "64d")) for name in SYSTEM]
    scenarios[1].load(json.loads((SEEDS / "kube-system" / "objects.json").read_text()))
    for source in sorted(SEEDS.glob("*/objects.json")):
        name = source.parent.name
        if name not in SYSTEM:
            scenarios.append(Scenario(name, world).load(basics(name, "45d") + json.loads(source.read_text())))
    for scenario in scenarios:
        write_logs(state / "logs", scenario)
    seed_scenario(api, cluster)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda s: seed_scenario(api, s), scenarios))
    backdate(etcd_port, [cluster, *scenarios], world.at("64d"))
    pods = {f"{s.namespace}/{p['metadata']['name']}": {
        "labels": p["metadata"]["labels"], "usage": s.usage.get(p["metadata"]["name"], {}),
        "statuses": p["status"].get("initContainerStatuses", []) + p["status"].get("containerStatuses", [])} for s in scenarios for p in s.pods}
    slices = [o for s in scenarios for o in s.objects if o["kind"] == "EndpointSlice"]
    (state / "kubelet.json.new").write_text(json.dumps({"pods": pods, "nodes": cluster.usage, "slices": slices}))
    (state / "kubelet.json.new").rename(state / "kubelet.json")
