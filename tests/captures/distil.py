#!/usr/bin/env python3
"""Distils captures of a real HolmesGPT server to fixtures of facts.

    distil.py CAPTURES FIXTURES

CAPTURES holds NAME.request.json and NAME.response.txt. A fixture keeps the request, and of the answer its
status, its media type, the order of the events, the keys and JSON types of every payload, and the values that
the model's script determines. It keeps no prose of the server: prompts, notices, labels of buttons, error texts.

In a fixture "$string", "$number", "$boolean" stand for any value of that type, and "$string^TEXT" for any string
that begins with the text; everything else is exact.
"""

import json
import re
import sys
from pathlib import Path

COVERED = re.compile(
    r"get_(healthz|readyz|model)|auth_\w+|bad_\w+|method_not_allowed|not_found|no_content_type|unknown_field_ok"
    r"|(chat|stream)_(plain|1tool|1tool_say|2rounds_3tools|followup|llm_\d+|unknown_model)"
    r"|frontend_\w+|compaction_stream"
    r"|approval_\w+|(chat|stream)_approval_\w+"
    r"|chat_(model_second|structured|tool_unknown)"
    r"|(stream_)?investigate(_llm_\d+)?|issue_chat(_1tool)?|workload_health_(chat|check)"
    r"|stream_(additional_prompt_fast|image|passthrough_ids|todowrite|unicode|tool_(exit1|nodata|timeout|unknown))"
)

# Headers of the capturing client that say nothing about the request.
PLUMBING = {"host", "user-agent", "accept", "content-length", "connection"}
# A server with a key gave these captures.
KEYED = "auth_"

# What a server puts in the place of a history that was too long.
COMPACTED = re.compile(r"The conversation history was compacted")
# What a server puts after a question.
ADDED = re.compile(r"\n\n\n\n|\n\n# Runbook Selection")

SYSTEM = "You are a careful assistant."
PROSE = {"error", "icon_url", "request_id", "pre_action_notification_text", "prompt"}


def clean_content(role, content):
    """Content without what the server put into it."""
    if role == "system":
        return SYSTEM
    if isinstance(content, list):
        return [
            {**part, "text": clean_content(role, part["text"])} if part.get("type") == "text" else part
            for part in content
        ]
    return ADDED.split(content)[0] if role == "user" else content


def clean_message(message):
    if "content" not in message:
        return message
    return {**message, "content": clean_content(message["role"], message["content"])}


def kind(value):
    if isinstance(value, bool):
        return "$boolean"
    if isinstance(value, (int, float)):
        return "$number"
    return "$string" if isinstance(value, str) else value


def message_facts(message, sent):
    """A message that the client sent comes back as it was; of the others the shape and the script count."""
    message = clean_message(message)
    if message in sent:
        return message
    facts = {key: kind(value) if key == "token_count" else value for key, value in message.items()}
    if message["role"] in ("system", "tool"):
        facts["content"] = message_shape(message["content"])
    elif message["role"] == "user" and COMPACTED.match(str(message["content"])):
        facts["content"] = "$string"
    elif message["role"] == "user":
        facts["content"] = question_facts(message["content"])
    return facts


def message_shape(content):
    """Text, or parts of text."""
    if isinstance(content, str):
        return "$string"
    return [{**part, "text": "$string"} if "text" in part else part for part in content]


def question_facts(content):
    """The server may add to a question."""
    if isinstance(content, str):
        return f"$string^{content}"
    return [{**part, "text": f"$string^{part['text']}"} if "text" in part else part for part in content]


def result_facts(call):
    bash = call.get("tool_name", call.get("name")) == "bash"
    facts = dict(call)
    if not bash and call["description"]:
        facts["description"] = "$string"
    result = dict(call["result"])
    for key, value in result.items():
        loose = key in PROSE or key == "elapsed_seconds" or (key == "data" and value and not bash)
        result[key] = kind(value) if loose else value
    facts["result"] = result
    return facts


def shape(value):
    if isinstance(value, dict):
        return {key: shape(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return kind(value)


def tells_of_compaction(payload):
    return "initial_tokens" in payload.get("metadata", {}) or set(payload) == {"content"}


def payload_facts(payload, sent):
    """The facts of an event's data or of a whole answer."""
    if "result" in payload:
        return result_facts(payload)
    facts = {}
    for key, value in payload.items():
        if key in ("conversation_history", "messages"):
            facts[key] = [message_facts(message, sent) for message in value]
        elif key == "tool_calls":
            facts[key] = [result_facts(call) for call in value]
        elif key == "content" and tells_of_compaction(payload):
            facts[key] = "$string"
        elif key == "metadata":
            facts[key] = {**shape(value), **{k: value[k] for k in ("finish_reason",) if k in value}}
        elif key == "follow_up_actions":
            facts[key] = [{k: kind(v) if k in PROSE else v for k, v in action.items()} for action in value]
        else:
            facts[key] = value
    if "error_code" in payload:
        facts["description"] = "$string"
        if payload["error_code"] == 1:
            facts["msg"] = "$string"
    return facts


def answer_facts(name, head, body, sent):
    lines = head.splitlines()
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    facts = {"status": int(lines[0].split()[1]), "content_type": headers["content-type"]}
    if "allow" in headers:
        facts["allow"] = headers["allow"].upper()
    if headers["content-type"].startswith("text/event-stream"):
        frames = [frame.split("\n", 1) for frame in body.strip().split("\n\n")]
        facts["events"] = [
            {
                "event": event.removeprefix("event: "),
                "data": payload_facts(json.loads(data.removeprefix("data: ")), sent),
            }
            for event, data in frames
        ]
        return facts
    answer = json.loads(body)
    if "_llm_" in name:
        answer = shape(answer)
    facts["body"] = payload_facts(answer, sent)
    return facts


ELIDED = re.compile(r"<(?:long user text|system prompt) elided, (\d+) characters>")


# Stands for the one that the server under test gives.
SIGNATURE = "$approval_token"


def fill(message):
    """The captures leave out long texts; words of the same length stand for them."""
    text = message.get("content")
    elided = ELIDED.fullmatch(text) if isinstance(text, str) else None
    if not elided:
        return message
    length = int(elided[1])
    return {**message, "content": ("words and words " * (length // 16 + 1))[:length]}


def unsigned(message):
    """A call that waits, without the signature of the server that made it wait."""
    calls = message.get("tool_calls")
    if not calls:
        return message
    signed = [{**call, "approval_token": SIGNATURE} if "approval_token" in call else call for call in calls]
    return {**message, "tool_calls": signed}


def distil(name, folder):
    request = json.loads((folder / f"{name}.request.json").read_text())
    request["headers"] = {k: v for k, v in request["headers"].items() if k.lower() not in PLUMBING}
    body = request.get("body")
    if isinstance(body, dict) and name.endswith("_followup"):
        body["conversation_history"] = [clean_message(message) for message in body["conversation_history"]]
    elif name.startswith("approval_") and "conversation_history" in body:
        history = body["conversation_history"]
        body["conversation_history"] = [unsigned(clean_message(message)) for message in history]
    elif isinstance(body, dict) and name.startswith("compaction"):
        body["conversation_history"] = [fill(message) for message in body["conversation_history"]]
    sent = (body or {}).get("conversation_history", [])
    response = (folder / f"{name}.response.txt").read_text().replace("\r\n", "\n")
    head, answer = response.split("\n\n", 1)
    return {"keyed": name.startswith(KEYED), "request": request, "answer": answer_facts(name, head, answer, sent)}


def main():
    captures, fixtures = Path(sys.argv[1]), Path(sys.argv[2])
    fixtures.mkdir(parents=True, exist_ok=True)
    for path in sorted(captures.glob("*.request.json")):
        name = path.name.removesuffix(".request.json")
        if COVERED.fullmatch(name):
            text = json.dumps(distil(name, captures), ensure_ascii=False, indent=1)
            (fixtures / f"{name}.json").write_text(text + "\n")


main()
