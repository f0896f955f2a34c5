// The chat page: conversations, messages, keys.
import { chat, modelName } from "./api.js";
import { element, markdown } from "./markdown.js";
import * as store from "./store.js";

const $ = (id) => document.getElementById(id);
const { settings } = store;
const messages = $("messages");
const input = $("input");
let current = null;   // the conversation that is shown
let running = null;   // {controller, conversation} of the answer that is being written

// ---- colours

const THEMES = ["system", "light", "dark"];
const systemDark = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  const theme = settings.theme ?? "system";
  const dark = theme === "dark" || (theme === "system" && systemDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").textContent = `Colours: ${theme}`;
}

$("theme").addEventListener("click", () => {
  settings.theme = THEMES[(THEMES.indexOf(settings.theme ?? "system") + 1) % THEMES.length];
  store.saveSettings();
  showTheme();
});
systemDark.addEventListener("change", showTheme);

// ---- messages

function button(text, label, action) {
  const made = element("button", { type: "button", "aria-label": label }, text);
  made.addEventListener("click", action);
  return made;
}

function tools(message, index) {
  const row = element("div", { className: "tools" });
  row.append(button("Copy", "Copy the message", () => navigator.clipboard.writeText(message.content)));
  if (message.role === "user") row.append(button("Edit", "Edit the message and ask again", () => edit(index)));
  const last = index === current.messages.length - 1;
  if (message.role === "assistant" && last) row.append(button("Regenerate", "Answer again", () => answerFrom(index)));
  return row;
}

function fill(article, message, index) {
  const isUser = message.role === "user";
  const parts = [element("div", { className: "who" }, isUser ? "You" : "Model")];
  if (message.reasoning) {
    const open = article.querySelector("details")?.open ?? false;
    parts.push(element("details", { open }, element("summary", {}, "Thoughts"), message.reasoning));
  }
  parts.push(element("div", { className: "body" }, ...(isUser ? [message.content] : markdown(message.content))));
  if (message.error) parts.push(element("p", { className: "error", role: "alert" }, message.error));
  if (!article.classList.contains("running")) parts.push(tools(message, index));
  article.replaceChildren(...parts);
}

function show(conversation) {
  current = conversation;
  const all = conversation.messages.map((message, index) => {
    const isRunning = running?.message === message;
    const article = element("article", { className: message.role + (isRunning ? " running" : "") });
    fill(article, message, index);
    if (isRunning) running.article = article;
    return article;
  });
  const empty = element("p", { className: "empty" }, "What would you like to know?");
  messages.replaceChildren(...(all.length ? all : [empty]));
  messages.scrollTop = messages.scrollHeight;
  showList();
}

function showList() {
  $("conversations").replaceChildren(...store.conversations.map((c) => {
    const row = element("li", {}, button(c.title, c.title, () => show(c)),
      button("×", `Delete ${c.title}`, () => {
        if (running?.conversation === c) stop();
        store.remove(c);
        c === current ? begin() : showList();
      }));
    if (c === current) row.setAttribute("aria-current", "true");
    return row;
  }));
}

function begin() {
  show({ title: "", messages: [] });
  input.focus();
}

function edit(index) {
  const message = current.messages[index];
  const article = messages.children[index];
  const area = element("textarea", { value: message.content, rows: 4, "aria-label": "Edit the message" });
  const done = () => {
    message.content = area.value.trim() || message.content;
    answerFrom(index + 1);
  };
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) done();
    else if (event.key === "Escape") show(current);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  article.replaceChildren(area, element("div", { className: "tools" },
    button("Ask again", "Ask again with the edited message", done), button("Cancel", "Leave it as it was", () => show(current))));
  area.focus();
}

// ---- answers

function stop() {
  running?.controller.abort();
}

function setRunning(now) {
  running = now;
  $("stop").hidden = !now;
  $("send").hidden = Boolean(now);
}

function toSend(conversation) {
  const system = settings.system?.trim();
  return [...(system ? [{ role: "system", content: system }] : []),
    ...conversation.messages.slice(0, -1).map(({ role, content }) => ({ role, content }))];
}

// The conversation is cut at `index`, and the model goes on from there.
async function answerFrom(index) {
  stop();
  const conversation = current;
  const message = { role: "assistant", content: "", reasoning: "" };
  conversation.messages.splice(index, Infinity, message);
  const mine = { controller: new AbortController(), conversation, message, article: null };
  setRunning(mine);
  store.touch(conversation);
  show(conversation);
  await write(mine, conversation);
  if (running === mine) setRunning(null);
  mine.article?.classList.remove("running");
  store.save();
  if (current === conversation) show(conversation);
}

async function write(mine, conversation) {
  const { message } = mine;
  const started = performance.now();
  let due = false;
  const draw = () => {
    due = false;
    if (current !== conversation || !mine.article?.classList.contains("running")) return;
    const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 60;
    fill(mine.article, message, conversation.messages.length - 1);
    if (atEnd) messages.scrollTop = messages.scrollHeight;
  };
  $("status").textContent = "The model is writing.";
  try {
    await chat(toSend(conversation), settings, mine.controller.signal, (delta) => {
      message.content += delta.content;
      message.reasoning += delta.reasoning;
      if (delta.usage) showRate(delta.usage.completion_tokens, performance.now() - started);
      if (!due) setTimeout(() => requestAnimationFrame(draw), 40);
      due = true;
    });
    $("status").textContent = "The answer is complete.";
  } catch (error) {
    const stopped = error.name === "AbortError";
    if (!stopped) message.error = error.message;
    $("status").textContent = stopped ? "Stopped." : "The answer failed.";
  }
}

function showRate(tokens, milliseconds) {
  $("rate").textContent = `${tokens} tokens, ${(tokens * 1000 / milliseconds).toFixed(1)} per second`;
}

function send() {
  const text = input.value.trim();
  if (!text || running) return;
  input.value = "";
  grow();
  if (!current.title) current.title = text.slice(0, 60);
  current.messages.push({ role: "user", content: text });
  answerFrom(current.messages.length);
}

function grow() {
  input.rows = Math.min(12, input.value.split("\n").length);
}

// ---- keys and buttons

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
input.addEventListener("input", grow);
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  } else if (event.key === "ArrowUp" && !input.value) {
    const last = current.messages.findLastIndex((m) => m.role === "user");
    if (last >= 0 && !running) edit(last);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running && !$("settings").open) stop();
  if (event.altKey && event.key.toLowerCase() === "n") {
    event.preventDefault();
    begin();
  }
});
$("stop").addEventListener("click", stop);
$("new").addEventListener("click", begin);
$("toggle-side").addEventListener("click", () => {
  const narrow = document.body.classList.toggle("narrow");
  $("toggle-side").setAttribute("aria-expanded", String(!narrow));
});

// ---- settings

const form = $("settings-form");
$("open-settings").addEventListener("click", () => {
  for (const field of form.querySelectorAll("[name]")) field.value = settings[field.name] ?? "";
  $("settings").showModal();
});
$("settings").addEventListener("close", () => {
  for (const field of form.querySelectorAll("[name]")) settings[field.name] = field.value;
  store.saveSettings();
  showModel();
});
$("forget").addEventListener("click", () => {
  stop();
  store.removeAll();
  begin();
  $("settings").close();
});

async function showModel() {
  try {
    $("model").textContent = await modelName(settings);
    $("status").textContent = "";
  } catch (error) {
    $("status").textContent = error.message;
  }
}

if (innerWidth <= 700) $("toggle-side").click();
showTheme();
begin();
showModel();
