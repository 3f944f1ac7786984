// Compare two runs, check new rows, export, history: each in a dialog.
import { ask, exportAddress, get, note, upload } from "./api.js";
import { fill, h, lines, shown } from "./dom.js";
import { save } from "./pictures.js";
import { dialog } from "./run.js";

const text = (told) => h("pre.told-text", {}, told.split("\n").map(shown).join("\n"));

export function compareDialog(tools, wanted) {
  const mine = tools.now().brief.source, same = (r) => (r.source === mine ? 0 : 1);
  const others = tools.overview.runs.filter((r) => r.name !== tools.run).sort((a, b) => same(a) - same(b));
  const out = h("div", { role: "status" });
  if (!others.length) { dialog("Compare", h("p.empty", {}, "There is no other run yet: fit the table once more with other options.")); return; }
  const which = h("select", { "aria-label": "The other run", onchange: load }, others.map((r) => h("option", { value: r.name }, `${shown(r.name)}: ${r.k} groups, ${r.word}${same(r) ? ", of another table" : ""}`)));
  if (wanted) which.value = wanted;
  dialog("Compare: who moved", h("p.row", {}, h("b", { dir: "auto" }, shown(tools.run)), " with ", which), out);
  async function load() {
    fill(out, h("p.cap", {}, "Comparing…"));
    try {
      const found = await get("compare", { first: tools.run, second: which.value });
      const said = { command: `ilk compare ${tools.run} ${which.value}`, python: `ilk.compare(${JSON.stringify(tools.run)}, ${JSON.stringify(which.value)})` };
      const some = found.rows;
      fill(out, found.cautions.map((c) => h("p.cap.low", {}, shown(c))), text(found.text), lines(said),
        some.length ? h("details.fold", {}, h("summary", {}, "Rows that moved, the first of them"), h("div.box.tall", { tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, found.columns.map((c) => h("th", { scope: "col" }, shown(c))))), h("tbody", {}, some.map((r) => h("tr", {}, r.map((c) => h("td", { dir: "auto" }, c === null ? "–" : shown(c))))))))) : null);
    } catch (error) { fill(out, h("p.low", {}, shown(error.message))); }
  }
  load();
}

export function checkDialog(tools) {
  const out = h("div", { role: "status" });
  const which = h("select", { "aria-label": "Table with new rows", onchange: () => which.value && load(which.value) }, h("option", { value: "" }, "a table of the folder"), tools.overview.tables.map((t) => h("option", { value: t.name }, shown(t.name))));
  const input = h("input", { type: "file", "aria-label": "File with new rows", onchange: () => send(input.files[0]) });
  const zone = h("label.drop.low-drop", {}, h("span", {}, "Drop new rows here, or choose a file"), input);
  zone.addEventListener("dragover", (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => { event.preventDefault(); send(event.dataTransfer.files[0]); });
  dialog("Check new rows", h("p.sub", {}, "Do they still look like those of the fit, and which groups do they get?"), tools.overview.read_only ? null : zone, h("p", {}, which), out);
  async function send(file) {
    if (!file) return;
    try { load((await upload(file, () => {})).table); } catch (error) { fill(out, h("p.low", {}, shown(error.message))); }
  }
  async function load(table) {
    fill(out, h("p.cap", {}, "Checking…"));
    try {
      const found = await ask("check", { run: tools.run, table });
      const word = found.document.verdict.word;
      fill(out, h("p", {}, h(`span.pill.${word === "no drift" ? "solid" : word === "drift" ? "weak" : "fair"}`, {}, word)), text(found.text),
        h("p", {}, h("a.button", { href: exportAddress("assigned", { run: tools.run, version: tools.now().version, table }), download: true }, "Save their groups as CSV")),
        lines({ command: `ilk check ${tools.run} ${table}`, python: `ilk.check(${JSON.stringify(tools.run)}, ${JSON.stringify(table)})` }));
    } catch (error) { fill(out, h("p.low", {}, shown(error.message))); }
  }
}

const EXPORTS = [
  ["assignments", "Assignments", "every row with its group, probability and second choice"],
  ["report", "Report", "one HTML file that needs nothing else"],
  ["model", "Model", "gives new rows their groups: ilk.load, ilk assign"],
  ["sql-duckdb", "SQL for DuckDB", "one SELECT that gives rows their group"],
  ["sql-spark", "SQL for Spark", "the same for Spark"],
  ["json", "Parameters", "the model as JSON for other programs"],
  ["zip", "Everything", "the run folder in a zip"],
];

// What may be refused is asked for first, so that the reason is read and no broken file is saved.
async function fetched(address, out) {
  const response = await fetch(address);
  if (!response.ok) { fill(out, h("p.low", {}, shown((await response.json()).error.text))); return; }
  const name = decodeURIComponent(response.headers.get("Content-Disposition").split("''")[1]);
  save(await response.blob(), name);
}

export function exportDialog(tools) {
  const now = tools.now(), query = { run: tools.run, version: now.version };
  const ruled = new Set(["sql-duckdb", "sql-spark", "json"]), out = h("div", { role: "status" });
  dialog("Export", h("ul.list", {}, EXPORTS.map(([what, title, about]) => {
    const off = ruled.has(what) && !now.has_rule;
    const link = h("a", { href: exportAddress(what, query), download: true, onclick: ruled.has(what) ? (event) => { event.preventDefault(); fetched(link.href, out); } : null }, title);
    return h("li", {}, off ? h("b.cap", {}, title) : link, h("span.cap", {}, off ? "these groups have no rule for new rows" : about));
  })), out, h("p.cap", {}, "Pictures: every one has its own buttons, SVG and PNG, at its upper right corner."), h("p.cap", {}, "This version lies in ", h("code", {}, shown([tools.run, now.version].filter(Boolean).join("/")))));
}

export function historyDialog(tools) {
  const state = tools.now().state;
  const made = dialog("History", h("p.sub", {}, "Each entry is a version in the run folder. The two lines do the same without the page."),
    h("ol.history", {}, state.entries.map((entry, i) => h(i === state.at ? "li.here" : i > state.at ? "li.undone" : "li", { "aria-current": i === state.at ? "step" : null },
      h("div.row", {}, h("b", {}, shown(entry.what)), h("span.grow"), i === state.at ? h("span.cap", {}, "shown now") : tools.overview.read_only ? null : h("button.small", { type: "button", onclick: () => { made.close(); tools.act("step", { at: i }); } }, i < state.at ? "Back to this" : "Forward to this")), lines(entry)))));
}
