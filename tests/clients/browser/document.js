// The client that HolmesGPT's API reference (Apache-2.0) prints, part by part and unchanged; the test puts in the address.

import { fetchEventSource } from "@microsoft/fetch-event-source";

const frontendTools = [
  {
    name: "render_chart",
    description: "Render a chart in the UI with the given metric and time range.",
    mode: "pause",
    parameters: {
      type: "object",
      properties: {
        chart_type: { type: "string", enum: ["line", "bar", "pie"] },
        metric: { type: "string" },
        time_range: { type: "string" }
      },
      required: ["chart_type", "metric"]
    }
  },
  {
    name: "navigate_to_page",
    description: "Navigate the user to a page in the application.",
    mode: "noop",
    noop_response: "Navigation triggered."
  }
];

function streamChat({ ask, conversationHistory, frontendToolResults }) {
  fetchEventSource("http://<HOLMES-URL>/api/chat", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      ask,
      stream: true,
      frontend_tools: frontendTools,
      conversation_history: conversationHistory,       // undefined on first request
      frontend_tool_results: frontendToolResults,       // undefined on first request
    }),
    onmessage(event) {
      const payload = JSON.parse(event.data);
      handleEvent(event.event, payload);
    },
  });
}

function handleEvent(eventType, payload) {
  switch (eventType) {
    case "approval_required":
      // Handle frontend tool calls
      if (payload.pending_frontend_tool_calls?.length > 0) {
        handleFrontendToolCalls(
          payload.pending_frontend_tool_calls,
          payload.conversation_history
        );
      }
      break;

    case "start_tool_calling":
      console.log(`Tool started: ${payload.tool_name}`);
      break;

    case "tool_calling_result":
      console.log(`Tool result: ${payload.name}`, payload.result);
      break;

    case "ai_message":
      renderMarkdown(payload.content);
      break;

    case "ai_answer_end":
      // Store conversation_history for follow-up messages
      saveConversationHistory(payload.conversation_history);
      break;
  }
}

async function handleFrontendToolCalls(pendingCalls, conversationHistory) {
  const results = [];

  for (const call of pendingCalls) {
    let result;
    switch (call.tool_name) {
      case "render_chart":
        result = await renderChartInUI(call.arguments);
        break;
      default:
        result = { error: `Unknown tool: ${call.tool_name}` };
    }

    results.push({
      tool_call_id: call.tool_call_id,
      tool_name: call.tool_name,
      result: JSON.stringify(result)  // Must be a string
    });
  }

  // Request 2: resume the LLM with tool results
  streamChat({
    ask: originalQuestion,
    conversationHistory,
    frontendToolResults: results,
  });
}
