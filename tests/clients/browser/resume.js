// Readers whose connections break: what each of them saw until the last event, and how often it connected.

import { fetchEventSource } from "@microsoft/fetch-event-source";

const { sources, post } = <READERS>;

function listen({ url, names, last }) {
  return new Promise((resolve) => {
    const reader = { seen: [], connections: 0 };
    const source = new EventSource(url);
    source.addEventListener("open", () => { reader.connections += 1; });
    for (const name of names) {
      source.addEventListener(name, (event) => {
        reader.seen.push({ id: event.lastEventId, event: name, data: JSON.parse(event.data) });
        if (name === last) {
          source.close();
          resolve(reader);
        }
      });
    }
  });
}

async function ask({ url, body, last }) {
  const reader = { seen: [], connections: 0 };
  let over = false;
  await fetchEventSource(url, {
    method: "POST",
    // The connection may break before the first event has come.
    headers: { "Content-Type": "application/json", "Idempotency-Key": "one question" },
    body: JSON.stringify(body),
    openWhenHidden: true,
    async onopen(response) {
      reader.connections += 1;
      reader.run = response.headers.get("x-sleuth-run-id");
    },
    onmessage({ id, event, data }) {
      reader.seen.push({ id, event, data: JSON.parse(data) });
      over = event === last;
    },
    onclose() {
      if (!over) throw new Error("the stream has no end");
    },
  });
  return reader;
}

const readers = await Promise.all([...sources.map(listen), ask(post)]);
await fetch("/report", { method: "POST", body: JSON.stringify(readers) });
