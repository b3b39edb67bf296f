"""What every object and event of a seed needs: names, ages, owners.

SPDX-License-Identifier: Apache-2.0
"""
import calendar
import hashlib
import re
import time

API = {kind: version for version, kinds in {
    "apps/v1": "Deployment ReplicaSet StatefulSet", "batch/v1": "Job", "batch/v1beta1": "CronJob",
    "storage.k8s.io/v1": "StorageClass", "networking.k8s.io/v1": "Ingress", "discovery.k8s.io/v1beta1": "EndpointSlice",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding", "coordination.k8s.io/v1": "Lease",
    "apiregistration.k8s.io/v1": "APIService",
}.items() for kind in kinds.split()}
CLUSTER_SCOPED = "Namespace Node StorageClass PersistentVolume ClusterRole ClusterRoleBinding APIService".split()
REPORTERS = {  # who writes events about what; a reason says more than a kind
    "Scheduled": "default-scheduler", "FailedScheduling": "default-scheduler", "NodeNotReady": "node-controller",
    "TaintManagerEviction": "taint-controller", "Pod": "kubelet", "ReplicaSet": "replicaset-controller",
    "Deployment": "deployment-controller", "StatefulSet": "statefulset-controller", "Job": "job-controller",
    "CronJob": "cronjob-controller", "PersistentVolumeClaim": "persistentvolume-controller", "Node": "node-controller",
    "Service": "endpoint-controller",
}
EVENTS_LAST = 3600  # a real cluster forgets events after an hour: none are invented for what is older
NODES = {"worker-1": "10.0.0.11", "worker-2": "10.0.0.12", "worker-3": "10.0.0.13"}


def seconds(age):
    if isinstance(age, (int, float)):
        return age
    parts = re.findall(r"(\d+)(d|h|m|s)", age)
    assert parts and "".join(n + u for n, u in parts) == age, f"not an age: {age!r}"
    return sum(int(n) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[u] for n, u in parts)


def digest(*parts):
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()


def suffix(length, *parts):
    """Stable, and looks like a generated name."""
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(alphabet[int(digest(*parts)[2 * i:2 * i + 2], 16) % len(alphabet)] for i in range(length))


class World:
    """What all namespaces share: the time of seeding, and the address ranges of the nodes."""

    def __init__(self):
        self.now = time.time()
        self.used = {node: 1 for node in NODES}

    def at(self, age):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now - seconds(age)))

    def address(self, node):
        self.used[node] += 1
        return f"10.244.{list(NODES).index(node) + 1}.{self.used[node]}"


class Base:
    """The objects of one namespace in the order of creation, and its events."""

    def __init__(self, namespace, world):
        self.namespace, self.world, self.at = namespace, world, world.at
        self.objects, self.events, self.pods, self.usage = [], [], [], {}

    def add(self, kind, name, age, body, status=None, owner=None, labels=None, **metadata):
        place = {} if kind in CLUSTER_SCOPED else {"namespace": self.namespace}
        meta = {"name": name, "creationTimestamp": self.at(age), **place, **metadata}
        if labels:
            meta["labels"] = labels
        if owner:
            owner_kind, owner_name = owner.split("/")
            meta["ownerReferences"] = [{"apiVersion": API.get(owner_kind, "v1"), "kind": owner_kind, "name": owner_name,
                                        "uid": f"{{uid:{owner}}}", "controller": True, "blockOwnerDeletion": True}]
        obj = {"apiVersion": API.get(kind, "v1"), "kind": kind, "metadata": meta, **body}
        if status is not None:
            obj["status"] = status
        self.objects.append(obj)
        return obj

    def event(self, obj, event, field=None):
        """event: {"Warning": "BackOff", "message": ..., "first": "26m", "last": "40s", "count": 9}; first may be left out."""
        event = dict(event)
        kind = next(k for k in ("Warning", "Normal") if k in event)
        reason, last = event[kind], event.get("last", event.get("first"))
        name, involved = obj["metadata"]["name"], obj["kind"]
        about = {"kind": involved, "name": name, "apiVersion": obj["apiVersion"], "uid": f"{{uid:{involved}/{name}}}"}
        if involved == "Node":
            about = {"kind": "Node", "name": name, "uid": name}  # as the node controller and the kubelet do it
        else:
            about["namespace"] = self.namespace
        if "container" in event:
            field = f"spec.containers{{{event['container']}}}"
        if field:
            about["fieldPath"] = field
        reporter = event.get("from") or REPORTERS.get(reason) or REPORTERS[involved]
        source = {"component": reporter}
        if reporter == "kubelet":
            source["host"] = obj["spec"]["nodeName"] if involved == "Pod" else name
        message = event["message"].replace("{pod}", name).replace("{ns}", self.namespace)
        message = message.replace("{ip}", obj.get("status", {}).get("podIP", ""))
        begin = event.get("first", last)
        first, nanoseconds = self.at(begin), int((self.world.now - seconds(begin)) * 1e9) + len(self.events)
        self.events.append({
            "apiVersion": "v1", "kind": "Event", "type": kind, "reason": reason, "message": message, "count": event.get("count", 1),
            "firstTimestamp": first, "lastTimestamp": self.at(last), "source": source, "involvedObject": about,
            "metadata": {"name": f"{name}.{nanoseconds:x}", "creationTimestamp": first,
                         "namespace": self.namespace if involved != "Node" else "default"}})

    def plain(self, item):
        """Any other object, in its own shape except for the metadata."""
        kind, events = item.pop("kind"), item.pop("events", [])
        metadata = {k: item.pop(k) for k in ("labels", "annotations") if k in item}
        obj = self.add(kind, item.pop("name"), item.pop("age", "30d"), item, status=item.pop("status", None), **metadata)
        for event in events:
            self.event(obj, event)

    def ago(self, stamp):
        return int(self.world.now) - calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))

    def age_of(self, obj):
        return self.ago(obj["metadata"]["creationTimestamp"])

    def is_recent(self, obj):
        return self.age_of(obj) <= EVENTS_LAST
