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

// The JSON of a view; `undefined` and empty parameters are left out.
export async function view(name, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const response = await fetch(`/api/${name}?${new URLSearchParams(given)}`, {
    headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` }, signal,
  });
  if (!response.ok) throw await failure(response);
  return response.json();
}
