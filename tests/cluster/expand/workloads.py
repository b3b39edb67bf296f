"""Workloads as their controllers would have left them.

SPDX-License-Identifier: Apache-2.0
"""
import copy
import json

from .base import EVENTS_LAST, seconds, suffix
from .pods import Pods, is_ready


class Workloads(Pods):
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
