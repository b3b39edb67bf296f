"""Renders the chart with Helm's engine: a request as JSON on standard input, the answer as JSON on standard output.

A request has `chart`, `values` and `name`, and optionally `kubeconfig`, whose cluster `lookup` then asks. The answer has
`objects`, each checked strictly against the schemas of Kubernetes, or `error`.
"""
# SPDX-License-Identifier: Apache-2.0

import json
import sys

import helm_python
import kubernetes_validate
import yaml

KUBERNETES = "1.34"


def render(request):
    options = {"name": request["name"], "namespace": "default"}
    with helm_python.Chart.load(request["chart"]) as chart:
        chart.validate_schema(request["values"])
        if kubeconfig := request.get("kubeconfig"):
            with helm_python.Config(kubeconfig_path=kubeconfig, namespace="default") as cluster:
                files = cluster.render(chart, request["values"], **options)
        else:
            files = chart.render(request["values"], **options)
    manifests = [text for path, text in sorted(files.items()) if path.endswith(".yaml")]
    return [document for text in manifests for document in yaml.safe_load_all(text) if document]


def check(document):
    try:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        # Somebody else's kind.
        assert document["apiVersion"].startswith("monitoring.coreos.com/"), document


def lint(path):
    report = helm_python.lint(path, strict=True)
    return report["errors"] + [m["error"] for m in report["messages"] if m["severity"] > 1]


def answer(request):
    if findings := lint(request["chart"]):
        return {"error": "; ".join(findings)}
    try:
        objects = render(request)
        for document in objects:
            check(document)
    except (helm_python.HelmError, kubernetes_validate.ValidationError) as error:
        return {"error": str(error)}
    return {"objects": objects}


json.dump(answer(json.load(sys.stdin)), sys.stdout)
