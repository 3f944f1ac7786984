// Rows in a drawer at the foot of the page: a page of them at a time, in any order, searched; one row explained.
import { ask, get, note } from "./api.js";
import { chip, count, fill, h, shown } from "./dom.js";

const drawer = document.getElementById("drawer");
const SIZE = 50;
let back = null;

export function closeRows() {
  if (drawer.hidden) return;
  drawer.hidden = true;
  document.body.classList.remove("drawn");
  fill(drawer);
  if (back && back.isConnected) back.focus();
}

document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !document.querySelector("dialog[open]")) closeRows(); });

export function openRows(run, answer, given) {
  back = document.activeElement;
  const query = { group: null, only: null, search: "", sort: null, down: false, page: 0, ...given };
  const groups = new Map(answer.groups.map((g) => [g.letter, g]));
  const box = h("div.box.grid", { tabindex: 0, role: "region", "aria-label": "Rows" }), foot = h("div.row.foot"), why = h("div.why", { role: "status" });
  const search = h("input", { type: "search", placeholder: "Search the rows", "aria-label": "Search the rows", oninput: () => { clearTimeout(search.timer); search.timer = setTimeout(() => { query.search = search.value; query.page = 0; load(); }, 200); } });
  const which = h("select", { "aria-label": "Group", onchange: () => { query.group = which.value || null; query.only = null; query.page = 0; load(); } },
    h("option", { value: "" }, query.only ? "chosen region" : "all rows"), answer.groups.map((g) => h("option", { value: g.letter }, `${g.letter}: ${shown(g.name)}`)));
  which.value = query.group || "";
  fill(drawer, h("div.row.head", {}, h("h2", {}, "Rows"), which, search, h("span.grow"), h("button", { type: "button", onclick: closeRows }, "Close")), h("div.split", {}, box, why), foot);
  drawer.hidden = false;
  document.body.classList.add("drawn");
  let order = 0, abort = null;
  async function load() {
    const mine = ++order;
    if (abort) abort.abort();
    abort = new AbortController();
    box.setAttribute("aria-busy", "true");
    try {
      const found = await ask("rows", { run, version: answer.version, size: SIZE, ...query }, abort.signal);
      if (mine === order) draw(found);
    } catch (error) { if (error.name !== "AbortError") note(error); } finally { if (mine === order) box.removeAttribute("aria-busy"); }
  }
  function draw(found) {
    const heads = found.columns.map((name) => {
      const sorted = query.sort === name ? (query.down ? "descending" : "ascending") : null;
      return h("th", { scope: "col", "aria-sort": sorted }, h("button", { type: "button", onclick: () => { query.down = query.sort === name && !query.down; query.sort = name; query.page = 0; load(); } }, h("span", { dir: "auto" }, shown(name))));
    });
    const at = found.columns.indexOf("row"), own = new Set(found.own);
    const body = found.rows.map((cells) => {
      const line = h("tr", { tabindex: 0, onclick: () => explain(cells[at], line), onkeydown: (e) => { if (e.key === "Enter") explain(cells[at], line); } },
        cells.map((cell, i) => {
          const name = found.columns[i];
          if (own.has(name) && ["group", "segment", "second"].includes(name) && groups.has(cell)) return h("td", {}, chip(groups.get(cell)));
          if (own.has(name) && ["probability", "novelty"].includes(name) && cell) return h("td.n", {}, Number(cell).toFixed(2));
          return h("td", { dir: "auto" }, cell === null ? h("span.cap", {}, "–") : shown(cell));
        }));
      return line;
    });
    fill(box, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, body)));
    box.scrollTop = 0;
    const pages = Math.max(Math.ceil(found.total / SIZE), 1);
    const step = (to, text, label) => h("button.small", { type: "button", "aria-label": label, disabled: to < 0 || to >= pages, onclick: () => { query.page = to; load(); } }, text);
    fill(foot, h("span.cap", { role: "status" }, `${count(found.total)} row${found.total === 1 ? "" : "s"}${query.only ? " of those drawn on the map" : ""}`), h("span.grow"),
      step(0, "«", "First page"), step(query.page - 1, "‹", "Previous page"), h("span.cap", {}, `page ${count(query.page + 1)} of ${count(pages)}`), step(query.page + 1, "›", "Next page"), step(pages - 1, "»", "Last page"));
  }
  async function explain(row, line) {
    for (const other of box.querySelectorAll("tr.here")) other.classList.remove("here");
    line.classList.add("here");
    try {
      const told = await get("row", { run, version: answer.version, row });
      fill(why, h("h3", {}, `Why row ${count(row)} is where it is`), h("pre", {}, shown2(told.text)));
    } catch (error) { note(error); }
  }
  load();
  search.focus({ preventScroll: true });
}

const shown2 = (text) => text.split("\n").map(shown).join("\n");
