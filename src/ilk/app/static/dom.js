// Elements from plain data: text is always text, so that no name or cell of a table can be markup.

export function h(name, given, ...children) {
  const [tag, ...classes] = name.split(".");
  const made = document.createElement(tag || "div");
  if (classes.length) made.className = classes.join(" ");
  for (const [key, value] of Object.entries(given || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "indeterminate") made[key] = value;
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  add(made, children);
  return made;
}

function add(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(parent, child);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, given, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given || {})) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

// Characters that act on what stands around them are shown as escapes.
export function shown(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

export function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, children);
  return parent;
}

export const count = (n) => Number(n).toLocaleString("en-US");

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  const at = Math.min(Math.floor(Math.log10(n) / 3), 4);
  return `${Number((n / 1000 ** at).toPrecision(3))} ${["B", "kB", "MB", "GB", "TB"][at]}`;
}

export function seconds(n) {
  if (n === null || n === undefined) return "";
  if (n < 60) return `${n < 10 ? n.toFixed(1) : Math.round(n)} s`;
  return `${Math.floor(n / 60)} min ${Math.round(n % 60)} s`;
}

export const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

export function chip(group, extra) {
  const again = group.number >= 6 ? " again" : "";
  return h("span", { class: `chip g${group.number % 6}${again}${extra ? " " + extra : ""}` }, group.letter);
}

export function copied(text) {
  const button = h("button.small", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch { button.textContent = "Select and copy"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return button;
}

// The two lines that do the same without the page.
export function lines(given) {
  const one = (label, text) => h("div.said", {}, h("span.label", {}, label), h("code", {}, shown(text)), copied(() => text));
  return h("div.lines", {}, one("Command line", given.command), one("Python", given.python));
}
