"""usage: robusta.py URL KEY QUESTION   The streaming client of Robusta's chat document, but for address and key."""
import sys

import requests
import json

url, key, question = sys.argv[1:]
response = requests.post(
    url,
    headers={
        "Content-Type": "application/json",
        "Authorization": f"Bearer {key}",
    },
    json={
        "ask": question,
        "stream": True,
    },
    stream=True,
)

event_type = None
for line in response.iter_lines(decode_unicode=True):
    if not line:
        continue
    if line.startswith("event: "):
        event_type = line[7:]
    elif line.startswith("data: ") and event_type:
        data = json.loads(line[6:])
        if event_type == "ai_answer_end":
            print("Final analysis:", data["analysis"])
        elif event_type == "ai_message":
            print("AI:", data["content"])
        elif event_type == "start_tool_calling":
            print(f"Running tool: {data['tool_name']}")
        elif event_type == "error":
            print(f"Error: {data['msg']}")
        event_type = None
