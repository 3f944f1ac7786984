// What the page asks of its server, and what is said when something goes wrong.
import { fill, h, shown } from "./dom.js";

export class Refused extends Error {
  constructor(said, status) { super(said.text); this.code = said.code; this.status = status; }
}

async function answered(response) {
  let made;
  try { made = await response.json(); } catch { made = { error: { code: "refused", text: "the server refused this" } }; }
  if (!response.ok) throw new Refused(made.error || { code: "refused", text: "the server refused this" }, response.status);
  return made;
}

export async function get(name, query) {
  const text = new URLSearchParams(query || {}).toString();
  return answered(await fetch(`api/${name}${text ? "?" + text : ""}`));
}

export async function ask(name, what, signal) {
  return answered(await fetch(`api/${name}`, { method: "POST", body: JSON.stringify(what), signal, headers: { "Content-Type": "application/json" } }));
}

export function upload(file, told) {
  return new Promise((done, lost) => {
    const request = new XMLHttpRequest();
    request.open("POST", `api/upload?name=${encodeURIComponent(file.name)}`);
    request.upload.addEventListener("progress", (event) => told(event.loaded, event.total));
    request.addEventListener("load", () => {
      let made;
      try { made = JSON.parse(request.responseText); } catch { made = { error: { code: "refused", text: "the server refused this file" } }; }
      if (request.status < 300) done(made);
      else lost(new Refused(made.error, request.status));
    });
    request.addEventListener("error", () => lost(new Refused({ code: "lost", text: "the server is gone: start ilk open again" }, 0)));
    request.send(file);
  });
}

export const exportAddress = (what, query) => `export/${what}?${new URLSearchParams(query)}`;

export function note(error) {
  const text = error instanceof Refused ? error.message : error instanceof TypeError
    ? "the server is gone: what was finished is in the run folders; start ilk open again" : String(error);
  const line = h("p.note-line", {}, shown(text), h("button.small", { type: "button", "aria-label": "Dismiss", onclick: () => line.remove() }, "×"));
  fill(document.getElementById("notes"), line);
}
