"""Turns the short seeds into whole Kubernetes objects: writes what controllers, scheduler and kubelets would have written.

All times in seeds are ages: "26m" is 26 minutes before seeding. `{uid:Kind/name}` in any text is filled in by the seeder.
SPDX-License-Identifier: Apache-2.0
"""
import calendar
import copy
import hashlib
import json
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


class Clock:
    def __init__(self):
        self.now = time.time()

    def at(self, age):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now - seconds(age)))


class Scenario:
    """One namespace: its objects in the order of creation, then its events."""

    def __init__(self, namespace, clock):
        self.namespace, self.clock, self.at = namespace, clock, clock.at
        self.objects, self.events, self.pods, self.usage = [], [], [], {}
        self.addresses = {}

    def load(self, items):
        for item in copy.deepcopy(items):
            handler = {"Deployment": self.deployment, "StatefulSet": self.statefulset, "Job": self.job, "CronJob": self.cronjob,
                       "Service": self.service, "PersistentVolumeClaim": self.claim, "Node": self.node}.get(item["kind"], self.plain)
            handler(item)
        for service in [o for o in self.objects if o["kind"] == "Service" and "selector" in o["spec"]]:
            self.endpoints(service)
        return self

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
        first, nanoseconds = self.at(begin), int((self.clock.now - seconds(begin)) * 1e9) + len(self.events)
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

    # -- workloads ---------------------------------------------------------------------------------------------------

    def template(self, item):
        """`pod` is a pod's spec; `containers` alone is its short form."""
        return {"containers": item["containers"]} if "containers" in item else item["pod"]

    def deployment(self, item):
        name, age = item["name"], seconds(item["age"])
        labels = item.get("labels", {"app": name})
        wanted = item.get("replicas", len(item.get("pods", [])))
        selector = {"matchLabels": labels}
        strategy = item.get("strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}})
        sets = [item["previous"], item] if "previous" in item else [item]
        obj = self.add("Deployment", name, age, {"spec": {
            "replicas": wanted, "selector": selector, "strategy": strategy,
            "template": {"metadata": {"labels": labels}, "spec": self.template(item)}}},
            labels=labels, annotations={**item.get("annotations", {}), "deployment.kubernetes.io/revision": str(len(sets))})
        pods, newest = [], None
        for revision, part in enumerate(sets, 1):
            rolled = min(age, seconds(part.get("rolled", age)))
            spec, seen = self.template(part), part.get("pods", [])
            replicas = wanted if "forbidden" in part else sum("deleted" not in p for p in seen)
            pod_hash = suffix(9, self.namespace, name, json.dumps(spec))
            newest = f"{name}-{pod_hash}"
            hashed = dict(labels, **{"pod-template-hash": pod_hash})
            replica_set = self.add("ReplicaSet", newest, rolled, {"spec": {
                "replicas": replicas, "selector": {"matchLabels": hashed}, "template": {"metadata": {"labels": hashed}, "spec": spec}}},
                labels=hashed, owner=f"Deployment/{name}", annotations={
                    "deployment.kubernetes.io/revision": str(revision), "deployment.kubernetes.io/desired-replicas": str(wanted),
                    "deployment.kubernetes.io/max-replicas": str(-(-wanted * 5 // 4))})
            own = [self.pod(f"{newest}-{suffix(5, newest, i)}", spec, p, rolled, f"ReplicaSet/{newest}", hashed) for i, p in enumerate(seen)]
            live = [p for p in own if "deletionTimestamp" not in p["metadata"]]
            ready = sum(map(is_ready, live))
            replica_set["status"] = {"replicas": len(live), "fullyLabeledReplicas": len(live), "readyReplicas": ready,
                                     "availableReplicas": ready, "observedGeneration": 1}
            if revision == len(sets) and "forbidden" in item:
                self.forbidden(item["forbidden"], obj, replica_set)
            for p in own:
                if self.is_recent(p):
                    self.event(replica_set, {"Normal": "SuccessfulCreate", "message": f"Created pod: {p['metadata']['name']}",
                                             "last": self.age_of(p)})
            if rolled <= EVENTS_LAST and replicas:
                self.event(obj, {"Normal": "ScalingReplicaSet", "message": f"Scaled up replica set {newest} to {replicas}", "last": rolled})
            pods += live
        self.deployment_status(obj, item, wanted, pods, live, newest)

    def forbidden(self, failure, deployment, replica_set):
        """The API refused further pods of this ReplicaSet."""
        message = failure["message"].replace("{pod}", f"{replica_set['metadata']['name']}-{suffix(5, failure)}")
        condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message,
                     "lastTransitionTime": self.at(failure["first"])}
        deployment["refused"] = condition
        replica_set["status"]["conditions"] = [condition]
        error = f"Error creating: {message}"
        self.event(replica_set, {"Warning": "FailedCreate", "message": error, "last": failure["first"]})
        self.event(replica_set, {**failure, "message": f"(combined from similar events): {error}"})

    def deployment_status(self, obj, item, wanted, pods, updated, newest):
        ready = sum(map(is_ready, pods))
        available = ready >= wanted - wanted // 4
        rollout = item.get("rollout", "complete")
        age = seconds(item.get("rolled", item["age"]))
        progress = {"complete": ("True", "NewReplicaSetAvailable", f'ReplicaSet "{newest}" has successfully progressed.', age - 20),
                    "progressing": ("True", "ReplicaSetUpdated", f'ReplicaSet "{newest}" is progressing.', age),
                    "timed out": ("False", "ProgressDeadlineExceeded", f'ReplicaSet "{newest}" has timed out progressing.', age - 600)}[rollout]
        since = self.at(item.get("down", age) if not available else age - 20)
        conditions = [
            {"type": "Available", "status": str(available), "lastTransitionTime": since, "lastUpdateTime": since,
             "reason": f"MinimumReplicas{'Available' if available else 'Unavailable'}",
             "message": f"Deployment {'has' if available else 'does not have'} minimum availability."},
            {"type": "Progressing", "status": progress[0], "reason": progress[1], "message": progress[2],
             "lastTransitionTime": self.at(age if progress[0] == "True" else progress[3]), "lastUpdateTime": self.at(progress[3])}]
        if "refused" in obj:
            refused = obj.pop("refused")
            conditions.append(dict(refused, lastUpdateTime=refused["lastTransitionTime"]))
        obj["status"] = {"observedGeneration": 1, "replicas": len(pods), "updatedReplicas": len(updated), "readyReplicas": ready,
                         "availableReplicas": ready, "unavailableReplicas": max(wanted - ready, 0), "conditions": conditions}
        for event in item.get("events", []):
            self.event(obj, event)

    def statefulset(self, item):
        name, age, spec = item["name"], item["age"], self.template(item)
        labels, claims = {"app": name}, item.get("volumeClaimTemplates", [])
        revision = f"{name}-{suffix(10, self.namespace, name)}"
        obj = self.add("StatefulSet", name, age, {"spec": {
            "replicas": len(item["pods"]), "serviceName": item.get("serviceName", name), "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec}, "volumeClaimTemplates": claims}}, labels=labels)
        pods = []
        for i, seen in enumerate(item["pods"]):
            own = copy.deepcopy(spec)
            own.setdefault("volumes", []).extend(
                {"name": c["metadata"]["name"], "persistentVolumeClaim": {"claimName": f"{c['metadata']['name']}-{name}-{i}"}} for c in claims)
            pods.append(self.pod(f"{name}-{i}", own, seen, age, f"StatefulSet/{name}", {
                **labels, "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": f"{name}-{i}"}))
            if self.is_recent(pods[-1]):
                self.event(obj, {"Normal": "SuccessfulCreate", "last": self.age_of(pods[-1]),
                                 "message": f"create Pod {name}-{i} in StatefulSet {name} successful"})
        obj["status"] = {"observedGeneration": 1, "replicas": len(pods), "readyReplicas": sum(map(is_ready, pods)), "collisionCount": 0,
                         "currentReplicas": len(pods), "updatedReplicas": len(pods), "currentRevision": revision, "updateRevision": revision}
        for event in item.get("events", []):
            self.event(obj, event)

    def job(self, item):
        name, age = item["name"], seconds(item["age"])
        spec = dict(self.template(item), restartPolicy="Never")
        obj = self.add("Job", name, age, {"spec": {"backoffLimit": item.get("backoffLimit", 6), "completions": 1, "parallelism": 1,
                       "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}}, owner=item.get("owner"), labels={"app": name})
        pods = [self.pod(f"{name}-{suffix(5, self.namespace, name, i)}", spec, seen, age, f"Job/{name}",
                         {"app": name, "job-name": name, "controller-uid": f"{{uid:Job/{name}}}"}) for i, seen in enumerate(item["pods"])]
        phases = [p["status"]["phase"] for p in pods]
        status = {"startTime": self.at(age), "succeeded": phases.count("Succeeded"), "failed": phases.count("Failed"),
                  "active": phases.count("Running") + phases.count("Pending")}
        ended = self.at(item["ended"]) if "ended" in item else None
        condition = {"status": "True", "lastProbeTime": ended, "lastTransitionTime": ended}
        if ended and "Succeeded" in phases:
            status.update(completionTime=ended, conditions=[{"type": "Complete", **condition}])
            last = {"Normal": "Completed", "message": "Job completed"}
        elif ended:
            message = "Job has reached the specified backoff limit"
            status["conditions"] = [{"type": "Failed", "reason": "BackoffLimitExceeded", "message": message, **condition}]
            last = {"Warning": "BackoffLimitExceeded", "message": message}
        obj["status"] = {k: v for k, v in status.items() if v}
        for p in pods:
            if self.is_recent(p):
                self.event(obj, {"Normal": "SuccessfulCreate", "message": f"Created pod: {p['metadata']['name']}", "last": self.age_of(p)})
        if ended and seconds(item["ended"]) <= EVENTS_LAST:
            self.event(obj, {**last, "last": item["ended"]})

    def cronjob(self, item):
        name = item["name"]
        template = {"spec": {"template": {"spec": dict(self.template(item), restartPolicy="Never")}}}
        obj = self.add("CronJob", name, item["age"], {"spec": {"schedule": item["schedule"], "concurrencyPolicy": "Forbid", "jobTemplate": template}},
                       status={"lastScheduleTime": self.at(item["ran"])}, labels={"app": name})
        for event in item.get("events", []):
            self.event(obj, event)

    # -- pods --------------------------------------------------------------------------------------------------------

    def pod(self, name, spec, seen, age, owner, labels):
        """seen: what became of it: node, age, containers: {name: {...}}, events.

        A container's state: restarts, and one of waiting (with message), terminated, running (since when); last (how the run before
        ended); ready; unready and failing (since when).
        """
        age, spec, node = seconds(seen.get("age", age)), copy.deepcopy(spec), seen.get("node")
        token = {"name": f"default-token-{suffix(5, self.namespace)}"}
        spec.setdefault("volumes", []).append({**token, "secret": {"secretName": token["name"], "defaultMode": 420}})
        spec.setdefault("serviceAccountName", "default")
        for container in spec.get("initContainers", []) + spec["containers"]:
            container.setdefault("volumeMounts", []).append(
                {**token, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"})
        if node:
            spec["nodeName"] = node
        dying = {"deletionTimestamp": self.at(seen["deleted"]), "deletionGracePeriodSeconds": 30} if "deleted" in seen else {}
        if owner.startswith(("ReplicaSet", "Job")):
            dying["generateName"] = name[:-5]
        obj = self.add("Pod", name, age, {"spec": spec}, labels=labels, owner=owner, **dying)
        obj["status"] = self.pod_status(obj, seen, age) if node else {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": self.at(age),
             "message": seen["unschedulable"]}]}
        self.pods.append(obj)
        self.pod_events(obj, seen, age)
        return obj

    def pod_status(self, obj, seen, age):
        spec, node = obj["spec"], obj["spec"]["nodeName"]
        inits, mains, blocked = [], [], False
        for container in spec.get("initContainers", []):
            default = {"terminated": {"exit": 0, "ago": age - 4, "ran": "2s"}}
            state = {"waiting": "PodInitializing"} if blocked else seen.get("containers", {}).get(container["name"], default)
            inits.append(self.container_status(obj, container, state, age))
            blocked = blocked or inits[-1]["state"].get("terminated", {}).get("exitCode") != 0
            inits[-1]["ready"] = not blocked
        for container in spec["containers"]:
            state = {"waiting": "PodInitializing"} if blocked else seen.get("containers", {}).get(container["name"], {})
            mains.append(self.container_status(obj, container, state, age - 4 if inits else age))
        unready = [c["name"] for c in mains if not c["ready"]]
        phase = phase_of(blocked, mains)
        changed = min([seconds(c.get("unready", age)) for c in seen.get("containers", {}).values()] + [age])

        def condition(kind, true, reason=None, message=None):
            extra = {} if true else {"reason": reason, "message": message}
            since = age if kind in ("PodScheduled", "Initialized") else changed if not true else max(age - 5, 0)
            return {"type": kind, "status": str(true), "lastProbeTime": None, "lastTransitionTime": self.at(since), **extra}

        why = ("PodCompleted", None) if phase == "Succeeded" else ("ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
        incomplete = [c["name"] for c in inits if not c["ready"]]
        status = {"phase": phase, "startTime": self.at(age), "hostIP": NODES[node], "containerStatuses": mains, "conditions": [
            condition("Initialized", not blocked, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"),
            condition("Ready", not unready, *why), condition("ContainersReady", not unready, *why), condition("PodScheduled", True)]}
        if "nodeLost" in seen:  # the node controller touches only this one
            status["conditions"][1] = {"type": "Ready", "status": "False", "lastProbeTime": None, "lastTransitionTime": self.at(seen["nodeLost"])}
        if inits:
            status["initContainerStatuses"] = inits
        address = self.address(node)
        status.update(podIP=address, podIPs=[{"ip": address}])
        running = [c["name"] for c in mains if "running" in c["state"]]
        if running and "nodeLost" not in seen:
            self.usage[obj["metadata"]["name"]] = {c: seen.get("usage", {}).get(c, [f"{2 + int(digest(c, address), 16) % 9}m",
                                                   f"{24 + int(digest(address, c), 16) % 40}Mi"]) for c in running}
        return status

    def address(self, node):
        """Unique in the cluster without a shared counter: a namespace has its own range of 16 on each node."""
        self.addresses[node] = self.addresses.get(node, 1) + 1
        return f"10.244.{list(NODES).index(node) + 1}.{int(digest(self.namespace), 16) % 15 * 16 + self.addresses[node]}"

    def container_status(self, pod, container, state, age):
        name, image, restarts = container["name"], container["image"], state.get("restarts", 0)
        pod_name = pod["metadata"]["name"]

        def run_id(n):
            return f"docker://{digest(self.namespace, pod_name, name, n)}"

        def ended(end, n):
            ago, exit_code = seconds(end["ago"]), end["exit"]
            return {"terminated": {"exitCode": exit_code, "reason": end.get("reason", "Error" if exit_code else "Completed"),
                                   "startedAt": self.at(ago + seconds(end["ran"])), "finishedAt": self.at(ago), "containerID": run_id(n)}}

        status = {"name": name, "image": image, "restartCount": restarts, "lastState": {}, "ready": False, "started": False}
        if "last" in state:
            status["lastState"] = ended(state["last"], restarts - 1 if "waiting" not in state else restarts)
        if "waiting" in state:
            status["state"] = {"waiting": {"reason": state["waiting"]}}
            message = state.get("message")
            if state["waiting"] == "CrashLoopBackOff":
                message = f"back-off 5m0s restarting failed container={name} pod={pod_name}_{self.namespace}({{uid:Pod/{pod_name}}})"
            if message:
                status["state"]["waiting"]["message"] = message
        elif "terminated" in state:
            status["state"] = ended(state["terminated"], restarts)
        else:
            status["state"] = {"running": {"startedAt": self.at(state.get("running", max(age - 2, 0)))}}
            status.update(ready=state.get("ready", True), started=True)
        ran = "waiting" not in state or "last" in state
        status["containerID"] = run_id(restarts) if ran else ""
        status["imageID"] = f"docker-pullable://{image.rsplit(':', 1)[0]}@sha256:{digest(image)}" if ran else ""
        return status

    def pod_events(self, obj, seen, age):
        node, name = obj["spec"].get("nodeName"), obj["metadata"]["name"]
        if node and age <= EVENTS_LAST:
            self.event(obj, {"Normal": "Scheduled", "message": f"Successfully assigned {self.namespace}/{name} to {node}", "last": age})
        for status in obj["status"].get("initContainerStatuses", []) + obj["status"].get("containerStatuses", []):
            state = {**status["lastState"], **status["state"]}
            started = [s["startedAt"] for s in state.values() if "startedAt" in s]
            if not started:
                continue  # what kept it from starting is told in the seed
            kind = "spec.initContainers" if status in obj["status"].get("initContainerStatuses", []) else "spec.containers"
            field, restarts, last = f"{kind}{{{status['name']}}}", status["restartCount"], min(map(self.ago, started))
            failing = seen.get("containers", {}).get(status["name"], {}).get("failing")
            times = {"first": failing or age - 1, "last": last, "count": restarts + (0 if failing else 1)}
            if last <= EVENTS_LAST:
                self.event(obj, {"Normal": "Pulled", "message": f'Container image "{status["image"]}" already present on machine', **times}, field)
                self.event(obj, {"Normal": "Created", "message": f"Created container {status['name']}", **times}, field)
                self.event(obj, {"Normal": "Started", "message": f"Started container {status['name']}", **times}, field)
            if state.get("waiting", {}).get("reason") == "CrashLoopBackOff":
                noise = int(digest(name), 16)
                self.event(obj, {"Warning": "BackOff", "message": "Back-off restarting failed container", "first": times["first"],
                                 "last": 3 + noise % 40, "count": restarts * 5 + noise % 7}, field)
        for event in seen.get("events", []):
            self.event(obj, event)

    def ago(self, stamp):
        return int(self.clock.now) - calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))

    def age_of(self, obj):
        return self.ago(obj["metadata"]["creationTimestamp"])

    def is_recent(self, obj):
        return self.age_of(obj) <= EVENTS_LAST

    # -- network, storage, nodes -------------------------------------------------------------------------------------

    def service(self, item):
        spec = {k: item[k] for k in ("selector", "ports", "clusterIP", "type", "externalName") if k in item}
        obj = self.add("Service", item["name"], item.get("age", "30d"), {"spec": spec}, labels=item.get("labels", {"app": item["name"]}))
        for event in item.get("events", []):
            self.event(obj, event)

    def endpoints(self, service):
        """The endpoint controller's rules: pods that match the selector, are not being deleted, and have the port."""
        name, selector = service["metadata"]["name"], service["spec"]["selector"].items()
        pods = [p for p in self.pods if selector <= p["metadata"]["labels"].items() and "podIP" in p["status"]
                and "deletionTimestamp" not in p["metadata"] and p["status"]["phase"] not in ("Succeeded", "Failed")]
        ports = []
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            if isinstance(target, str):
                named = [q["containerPort"] for p in pods for c in p["spec"]["containers"] for q in c.get("ports", []) if q.get("name") == target]
                if not named:
                    continue
                target = named[0]
            ports.append({"port": target, "protocol": "TCP", **({"name": port["name"]} if "name" in port else {})})
        if not ports:
            pods = []

        def target(p):
            return {"kind": "Pod", "name": p["metadata"]["name"], "namespace": self.namespace, "uid": f"{{uid:Pod/{p['metadata']['name']}}}"}

        subset = {"ports": ports}
        for key, wanted in (("addresses", True), ("notReadyAddresses", False)):
            found = [{"ip": p["status"]["podIP"], "nodeName": p["spec"]["nodeName"], "targetRef": target(p)} for p in pods if is_ready(p) == wanted]
            if found:
                subset[key] = found
        age, labels = service["metadata"]["creationTimestamp"], service["metadata"].get("labels", {})
        self.add("Endpoints", name, self.ago(age), {"subsets": [subset] if pods else []}, labels=labels)
        self.add("EndpointSlice", f"{name}-{suffix(5, self.namespace, name)}", self.ago(age), {
            "addressType": "IPv4", "ports": [{"name": "", **p} for p in ports], "endpoints": [
                {"addresses": [p["status"]["podIP"]], "conditions": {"ready": is_ready(p)}, "targetRef": target(p),
                 "topology": {"kubernetes.io/hostname": p["spec"]["nodeName"]}} for p in pods]},
            labels={**labels, "kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"},
            owner=f"Service/{name}")

    def claim(self, item):
        name, size, storage_class, age = item["name"], item["size"], item.get("storageClass", "standard"), item["age"]
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": {"requests": {"storage": size}}}
        obj = self.add("PersistentVolumeClaim", name, age, {"spec": spec}, labels=item.get("labels"))
        for event in item.get("events", []):
            self.event(obj, event)
        if not item.get("bound", True):
            return
        volume = f"pvc-{{uid:PersistentVolumeClaim/{name}}}"
        obj["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
        obj["binds"] = volume  # the seeder sets spec.volumeName once the claim's uid is known
        obj["status"] = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": {"storage": size}}
        self.add("PersistentVolume", volume, age, {"spec": {
            "accessModes": spec["accessModes"], "capacity": {"storage": size}, "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Delete", "csi": {"driver": "csi.example.com", "volumeHandle": volume},
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": self.namespace, "name": name,
                         "uid": f"{{uid:PersistentVolumeClaim/{name}}}"}}}, status={"phase": "Bound"})

    def node(self, item):
        name, age, lost = item["name"], item["age"], item.get("lost")
        number = list(NODES).index(name) + 1
        conditions = []
        for kind, fine, reason, message in (
                ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                ("Ready", "True", "KubeletReady", "kubelet is posting ready status")):
            if lost:
                fine, reason, message = "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."
            conditions.append({"type": kind, "status": fine, "reason": reason, "message": message,
                               "lastHeartbeatTime": self.at(seconds(lost) + 43 if lost else 20), "lastTransitionTime": self.at(lost or age)})
        addresses = [{"type": "InternalIP", "address": NODES[name]}, {"type": "Hostname", "address": name}]
        capacity = {"cpu": item["cpu"], "memory": item["memory"], "pods": "110", "ephemeral-storage": "101330012Ki"}
        taints = [{"key": "node.kubernetes.io/unreachable", "effect": e, "timeAdded": self.at(lost)} for e in ("NoSchedule", "NoExecute")] if lost else []
        labels = {f"{prefix}kubernetes.io/{k}": v for prefix in ("", "beta.") for k, v in (("arch", "amd64"), ("os", "linux"))}
        labels.update({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{'abc'[number - 1]}"})
        obj = self.add("Node", name, age, {"spec": {"podCIDR": f"10.244.{number}.0/24", "podCIDRs": [f"10.244.{number}.0/24"], "taints": taints}}, {
            "capacity": capacity, "allocatable": dict(capacity, **{"ephemeral-storage": "93385739Ki"}), "conditions": conditions,
            "addresses": addresses, "nodeInfo": {
                "machineID": digest(name)[:32], "systemUUID": digest(name, "system")[:32], "bootID": digest(name, "boot")[:32],
                "kernelVersion": "5.10.0-28-amd64", "osImage": "Debian GNU/Linux 11 (bullseye)", "containerRuntimeVersion": "docker://20.10.24",
                "kubeletVersion": "v1.20.2", "kubeProxyVersion": "v1.20.2", "operatingSystem": "linux", "architecture": "amd64"}}, labels=labels)
        self.add("Lease", name, age, {"spec": {"holderIdentity": name, "leaseDurationSeconds": 40,
                 "renewTime": self.at(seconds(lost) + 43 if lost else 2).replace("Z", ".000000Z")}}, namespace="kube-node-lease")
        if not lost:
            self.usage[name] = item["usage"]
        for event in item.get("events", []):
            self.event(obj, event)


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"]["conditions"])


def phase_of(blocked, mains):
    """As the kubelet decides it, for the restart policies the seeds use (Always, and Never for jobs)."""
    states = [c["state"] for c in mains]
    if blocked or any("waiting" in s and not c["lastState"] for s, c in zip(states, mains)):
        return "Pending"
    if all("terminated" in s for s in states):
        return "Failed" if any(s["terminated"]["exitCode"] for s in states) else "Succeeded"
    return "Running"
