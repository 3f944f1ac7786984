// Where one begins: drop a table, or take one of the folder; the runs so far, side by side.
import { get, note, upload } from "./api.js";
import { bytes, fill, h, plural, seconds, shown } from "./dom.js";
import { drawCards, onTasks } from "./tasks.js";

export async function home(work, go) {
  const seen = await get("overview");
  const running = h("div");
  const compared = new Set();
  const both = h("button", { type: "button", disabled: true, onclick: () => { const [a, b] = [...compared]; go({ run: a, compare: b }); } }, "Compare the two");
  const main = h("main.home", {},
    h("h1", {}, "Which rows are of the same ilk?"),
    seen.read_only ? h("p.sub", {}, "The page is read-only.") : drop(seen, go), running,
    h("div.halves", {},
      h("section", { "aria-labelledby": "tables" }, h("h2", { id: "tables" }, "Tables"), h("p.sub", {}, "In ", h("b", { dir: "auto" }, shown(seen.folder)), "."),
        seen.tables.length ? h("ul.list", {}, seen.tables.map(tableLine)) : h("p.empty", {}, "No table here yet.")),
      h("section", { "aria-labelledby": "runs" }, h("div.row", {}, h("h2", { id: "runs" }, "Runs"), h("span.grow"), seen.runs.length > 1 ? both : null),
        h("p.sub", {}, "Each is a folder as ", h("code", {}, "ilk fit"), " writes it."),
        seen.runs.length ? h("ul.list", {}, seen.runs.map((run) => runLine(run, compared, both, seen.runs.length > 1))) : h("p.empty", {}, "No run yet."))));
  fill(work, main);
  let known = new Set();
  return onTasks((tasks) => {
    const now = tasks.filter((t) => t.what === "fit" && ["running", "waiting", "stopping"].includes(t.state));
    drawCards(running, now, true);
    for (const number of known) if (!now.some((t) => t.number === number)) { known = new Set(); go({}); return; }
    known = new Set(now.map((t) => t.number));
  });
}

function drop(seen, go) {
  const input = h("input", { type: "file", id: "file", class: "hidden-input", onchange: () => input.files[0] && send(input.files[0]) });
  const said = h("p.cap", { role: "status" }, `CSV, Parquet, Arrow, JSON, Excel, SQLite, DuckDB; up to ${bytes(seen.most_upload)}. Nothing leaves this machine.`);
  const bar = h("progress", { hidden: true, "aria-label": "Upload" });
  const zone = h("label.drop", { for: "file" }, h("span.big", {}, "Drop a table here"), h("span.choose", {}, "or choose a file"), input, bar, said);
  async function send(file) {
    bar.hidden = false;
    said.textContent = `Copying ${shown(file.name)}`;
    try {
      const made = await upload(file, (loaded, total) => { bar.max = total; bar.value = loaded; });
      await go({ table: made.table });
    } catch (error) { note(error); bar.hidden = true; said.textContent = "Try another file."; }
  }
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
  });
  return zone;
}

function tableLine(table) {
  return h("li", {}, h("a", { href: "?" + new URLSearchParams({ table: table.name }), "data-go": true, dir: "auto" }, shown(table.name)),
    h("span.cap", {}, bytes(table.bytes)));
}

function runLine(run, compared, both, several) {
  const tick = h("input", { type: "checkbox", "aria-label": `Compare ${shown(run.name)}`, onchange: () => {
    tick.checked ? compared.add(run.name) : compared.delete(run.name);
    both.disabled = compared.size !== 2;
  } });
  const words = [plural(run.groups, run.k > 1 ? "group" : "segment"), run.method, plural(run.rows, "row"), seconds(run.seconds)];
  if (run.changes) words.push(plural(run.changes, "change"));
  if (run.interrupted) words.push("stopped early");
  return h("li", {}, several ? tick : null, h("div", {},
    h("a", { href: "?" + new URLSearchParams({ run: run.name }), "data-go": true, dir: "auto" }, shown(run.name)), " ",
    h(`span.pill.${{ solid: "solid", fair: "fair", weak: "weak" }[run.word] || "none"}`, {}, run.word),
    h("p.cap", {}, words.join(" · ")), h("p.cap", {}, h("code", {}, shown(run.command)))));
}
