// The server's API: models, and a chat as a stream of deltas.

const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed"];

function headers(settings) {
  const all = { "Content-Type": "application/json" };
  if (settings.key) all.Authorization = `Bearer ${settings.key}`;
  return all;
}

async function failure(response) {
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // what there is then is the status
  }
  return new Error(message);
}

export async function modelName(settings) {
  const response = await fetch("/v1/models", { headers: headers(settings) });
  if (!response.ok) throw await failure(response);
  return (await response.json()).data[0].id;
}

function body(messages, settings) {
  const asked = { messages, stream: true, stream_options: { include_usage: true } };
  for (const name of NUMBERS) {
    if (settings[name] !== "" && settings[name] !== undefined) asked[name] = Number(settings[name]);
  }
  return JSON.stringify(asked);
}

// Calls onDelta({content, reasoning, finish, usage}) for every part of the answer.
export async function chat(messages, settings, signal, onDelta) {
  const response = await fetch("/v1/chat/completions", {
    method: "POST", headers: headers(settings), body: body(messages, settings), signal,
  });
  if (!response.ok) throw await failure(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the server ended the connection");
    const events = (held + value).split("\n\n");
    held = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, "");
      if (data === "[DONE]") return;
      const part = JSON.parse(data);
      if (part.error) throw new Error(part.error.message);
      const choice = part.choices[0];
      onDelta({
        content: choice?.delta.content ?? "", reasoning: choice?.delta.reasoning_content ?? "",
        finish: choice?.finish_reason, usage: part.usage,
      });
    }
  }
}
