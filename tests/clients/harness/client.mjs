// A client of the harness API, written from its document alone: asks, approves each relay, and returns what it saw. The
// same in Node and in browsers.
export async function converse(base, question) {
  const post = (path, body) =>
    fetch(new URL(path, base), {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });

  const { models } = await (await fetch(new URL("/models", base))).json();
  const response = await post("/chat", { messages: [{ role: "user", content: question }] });
  if (!response.ok) throw new Error(await response.text());

  const seen = { models, text: "", relays: [], results: [], reason: null };
  const calls = new Map();
  let session;

  const handlers = {
    connected: (event) => { session = event.sessionId; },
    text: (event) => { seen.text += event.content; },
    tool_call: (event) => calls.set(event.id, event.name),
    tool_result: (event) => {
      if (!calls.has(event.id)) throw new Error(`a result without its call: ${event.id}`);
      seen.results.push(event.output.result);
    },
    relay: async (event) => {
      if (event.kind !== "permission") throw new Error(`an unknown relay: ${event.kind}`);
      seen.relays.push({ tool: event.tool, params: event.params });
      const answer = await post(`/chat/relay/${event.id}`, { sessionId: session, response: { approved: true } });
      if (answer.status !== 200 || !(await answer.json()).success) throw new Error("the relay was not taken");
    },
    error: (event) => { throw new Error(event.message); },
    harness_end: (event) => { seen.reason = event.reason; },
  };

  let rest = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    rest += chunk;
    const frames = rest.split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (!data) continue;
      const event = JSON.parse(data.slice("data: ".length));
      await handlers[event.type]?.(event);
    }
  }
  return seen;
}
