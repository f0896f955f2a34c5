// The server's views. The token comes in the address, behind '#', and stays in this tab.

const KEY = "weft-viz-token";
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  sessionStorage.setItem(KEY, fragment.get("token"));
  fragment.delete("token");
  history.replaceState(null, "", `#${fragment}`);
}

async function failure(response) {
  try {
    return new Error((await response.json()).error.message);
  } catch {
    return new Error(`${response.status} ${response.statusText}`);
  }
}

// What takes longer than this is seen to be worked on.
const PATIENCE = 50;
let waiting = 0;

function showWaiting(by) {
  waiting += by;
  document.body.classList.toggle("waiting", waiting > 0);
}

async function withSign(answer) {
  let shown = false;
  const timer = setTimeout(() => showWaiting((shown = true, 1)), PATIENCE);
  try {
    return await answer;
  } finally {
    clearTimeout(timer);
    if (shown) showWaiting(-1);
  }
}

// The JSON of a view; `undefined` and empty parameters are left out.
export async function view(name, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const response = await withSign(fetch(`/api/${name}?${new URLSearchParams(given)}`, {
    headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` }, signal,
  }));
  if (!response.ok) throw await failure(response);
  return response.json();
}
