"""Services with their endpoints, claims with their volumes, nodes.

SPDX-License-Identifier: Apache-2.0
"""
from .base import NODES, Base, digest, seconds, suffix
from .pods import is_ready


class Infra(Base):
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
