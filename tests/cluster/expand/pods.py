"""Pods as their kubelet would report them.

SPDX-License-Identifier: Apache-2.0
"""
import copy

from .base import EVENTS_LAST, NODES, Base, digest, seconds, suffix


class Pods(Base):
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
        address = self.world.address(node)
        status.update(podIP=address, podIPs=[{"ip": address}])
        running = [c["name"] for c in mains if "running" in c["state"]]
        if running and "nodeLost" not in seen:
            self.usage[obj["metadata"]["name"]] = {c: seen.get("usage", {}).get(c, [f"{2 + int(digest(c, address), 16) % 9}m",
                                                   f"{24 + int(digest(address, c), 16) % 40}Mi"]) for c in running}
        return status

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
