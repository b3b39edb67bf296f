"""Turns the short seeds into whole Kubernetes objects: writes what controllers, scheduler and kubelets would have written.

All times in seeds are ages: "26m" is 26 minutes before seeding. `{uid:Kind/name}` in any text is filled in by the seeder.
SPDX-License-Identifier: Apache-2.0
"""
import copy

from .base import API, CLUSTER_SCOPED, World, seconds, suffix
from .infra import Infra
from .workloads import Workloads

__all__ = ["API", "CLUSTER_SCOPED", "World", "Scenario", "seconds", "suffix"]


class Scenario(Workloads, Infra):
    """One namespace of the seeds."""

    def load(self, items):
        for item in copy.deepcopy(items):
            handler = {"Deployment": self.deployment, "StatefulSet": self.statefulset, "Job": self.job, "CronJob": self.cronjob,
                       "Service": self.service, "PersistentVolumeClaim": self.claim, "Node": self.node}.get(item["kind"], self.plain)
            handler(item)
        for service in [o for o in self.objects if o["kind"] == "Service" and "selector" in o["spec"]]:
            self.endpoints(service)
        return self
