// What the page remembers, in this browser only.

const KEYS = { conversations: "weft.conversations", settings: "weft.settings" };
const MOST_CONVERSATIONS = 200;

function read(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

// A full store loses its oldest conversations, not the newest.
function write(key, value) {
  for (let kept = value; ; kept = kept.slice(0, -1)) {
    try {
      return localStorage.setItem(key, JSON.stringify(kept));
    } catch {
      if (!Array.isArray(kept) || kept.length <= 1) return;
    }
  }
}

export const settings = read(KEYS.settings, {});
export const saveSettings = () => write(KEYS.settings, settings);

export let conversations = read(KEYS.conversations, []);
if (!Array.isArray(conversations)) conversations = [];

export function save() {
  conversations = conversations.filter((c) => c.messages.length).slice(0, MOST_CONVERSATIONS);
  write(KEYS.conversations, conversations);
}

export function touch(conversation) {
  conversations = [conversation, ...conversations.filter((c) => c !== conversation)];
  save();
}

export function remove(conversation) {
  conversations = conversations.filter((c) => c !== conversation);
  save();
}

export function removeAll() {
  conversations = [];
  save();
}
