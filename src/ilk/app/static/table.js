// A table before a fit: its columns, what they are taken for, and what to ask of the fit.
import { ask, get, note } from "./api.js";
import { bytes, count, fill, h, lines, plural, shown, svg } from "./dom.js";
import { drawCards, finished, onTasks } from "./tasks.js";

const TYPES = ["numeric", "count", "binary", "categorical", "ordinal", "text"];
const ROLES = [["", "use"], ["ignore", "leave out"], ["id", "row id"], ["weight", "row weight"], ["truth", "known class, to compare"], ["known", "known class, to keep"]];
const TEXT = /\.(csv|tsv|txt|tab)(\.\w+)?$/i;
const SINGLE = ["id", "weight", "truth", "known"];

export async function tableView(work, table, go) {
  const earlier = JSON.parse(sessionStorage.getItem("options " + table) || "{}");
  const state = { options: earlier, seen: null, order: 0 };
  const body = h("tbody"), said = h("div"), cautions = h("div"), head = h("p.sub", { role: "status" }, "Reading the table…");
  const running = h("div"), finishedHere = h("div", { "aria-live": "polite" }), begun = new Set();
  const fit = h("button.primary", { type: "button", disabled: true, onclick: start }, "Find the groups");
  const asked = h("div.options");
  let list = null, latest = 0;
  const overview = await get("overview");
  fill(work, h("main.table", {},
    h("h1", { dir: "auto" }, shown(table)), head, finishedHere, running,
    h("section.ask", { "aria-label": "What to ask" }, asked, h("div.row.act", {}, fit, h("span.cap", {}, "The number of groups is found by itself, unless you set it.")), said),
    cautions,
    (list = h("section", { "aria-labelledby": "columns" }, h("h2", { id: "columns" }, "Columns"),
      h("div.box", { tabindex: 0, role: "region", "aria-label": "Columns" }, h("table.columns", {}, h("thead", {}, h("tr", {}, ["Column", "Use it as", "Type", "What is in it", "Missing", "Counts", "Scale"].map((t) => h("th", { scope: "col" }, t)))), body))))));
  if (overview.read_only) fit.remove();
  ask_for(asked, state.options, overview.methods, update, table);

  async function update(changed) {
    for (const [key, value] of Object.entries(changed)) {
      if (value === "" || value === null || value === undefined || (typeof value === "object" && !Object.keys(value).length)) delete state.options[key];
      else state.options[key] = value;
    }
    sessionStorage.setItem("options " + table, JSON.stringify(state.options));
    const mine = ++state.order;
    try {
      const seen = await ask("columns", { table, options: state.options });
      if (mine !== state.order) return;
      state.seen = seen;
      draw();
    } catch (error) { if (mine === state.order) { note(error); unread(); } }
  }

  function unread() {
    const more = asked.querySelector("details");
    head.textContent = "The table could not be read." + (more && TEXT.test(table) ? " Where it has another separator or encoding, say so under More." : "");
    if (more && TEXT.test(table)) more.open = true;
    list.hidden = true;
    fit.disabled = true;
    fill(said);
    fill(cautions);
  }

  function draw() {
    list.hidden = false;
    const { rows, columns } = state.seen;
    const used = columns.filter((c) => c.role === "used").length;
    head.textContent = `${plural(rows, "row")}, ${plural(columns.length, "column")}; ${used} used, ${columns.length - used} not`;
    const open = document.activeElement && document.activeElement.getAttribute("data-key");
    fill(body, columns.map((column) => columnLine(column, rows, state.options, update)));
    if (open) { const again = [...body.querySelectorAll("[data-key]")].find((e) => e.getAttribute("data-key") === open); if (again) again.focus(); }
    fill(cautions, state.seen.cautions.length ? h("details.fold", {}, h("summary", {}, `${plural(state.seen.cautions.length, "caution")} about how the table was read`),
      h("ul.cautions", {}, state.seen.cautions.map((c) => h("li", {}, h("span.code", {}, c.code), shown(c.text))))) : null);
    fill(said, lines(state.seen.lines));
    fit.disabled = !used;
  }

  async function start() {
    fit.disabled = true;
    try {
      const task = await ask("fit", { table, options: state.options });
      latest = task.number;
      begun.add(latest);
      fit.disabled = false; // another can be started, with other options
      const done = await finished(task.number);
      if (task.number === latest && new URLSearchParams(location.search).get("table") === table) await go({ run: done.run });
    } catch (error) { note(error); fit.disabled = false; }
  }

  const stop = onTasks((tasks) => {
    const fits = tasks.filter((t) => t.table === table && t.what === "fit"), under = (t) => ["running", "waiting", "stopping"].includes(t.state);
    const over = fits.filter((t) => t.state === "done" && begun.has(t.number) && t.number !== latest);
    if (over.length !== finishedHere.children.length) fill(finishedHere, over.map((t) => h("div.panel.row", {}, h("a", { href: "?" + new URLSearchParams({ run: t.run }), "data-go": true }, shown(t.run)), h("span.cap", {}, "is done"))));
    drawCards(running, fits.filter(under));
  });
  await update({});
  return stop;
}

function field(label, control, hint) {
  return h("label.field", {}, h("span.label", {}, label), control, hint ? h("span.cap", {}, hint) : null);
}

function ask_for(place, options, methods, update, table) {
  const k = h("input", { type: "text", value: options.k || "", placeholder: "auto", inputmode: "numeric", "aria-label": "Number of groups", onchange: () => {
    const text = k.value.trim();
    update({ k: /^\d+$/.test(text) ? Number(text) : text });
  } });
  const method = h("select", { onchange: () => update({ method: method.value === "auto" ? "" : method.value }) },
    h("option", { value: "auto" }, "auto"), methods.filter((m) => m.name !== "auto").map((m) => h("option", { value: m.name, title: m.text || null }, m.name)));
  method.value = options.method || "auto";
  const number = (name, shownAs, hint) => {
    const input = h("input", { type: "number", min: name === "budget" ? 1 : 1, value: options[name] || "", placeholder: "no limit", onchange: () => update({ [name]: input.value ? Number(input.value) : "" }) });
    return field(shownAs, input, hint);
  };
  const reading = (name, label) => {
    const input = h("input", { type: "text", value: options[name] || "", onchange: () => update({ [name]: input.value.trim() }) });
    return field(label, input);
  };
  const book = /\.(xlsx?|ods)$/i.test(table), base = /\.(sqlite3?|db|duckdb)$/i.test(table);
  fill(place, field("Groups", k, "auto, 5 or 2..9"), field("Method", method), number("budget", "Time limit", "seconds"),
    book ? reading("sheet", "Sheet") : null, base ? reading("table", "Table of the database") : null,
    h("details.fold", {}, h("summary", {}, "More"), h("div.options", {}, number("min_size", "Smallest group", "rows"), number("max_size", "Largest group", "rows"),
      TEXT.test(table) ? [reading("sep", "Separator"), reading("encoding", "Encoding"), reading("decimal", "Decimal mark")] : null)));
}

function columnLine(column, rows, options, update) {
  const name = column.name, types = options.types || {}, ignore = options.ignore || [];
  const role = ignore.includes(name) ? "ignore" : SINGLE.find((r) => options[r] === name) || "";
  const use = h("select", { "aria-label": `Use ${shown(name)} as`, "data-key": "use " + name, onchange: () => {
    const changed = { ignore: ignore.filter((n) => n !== name) };
    for (const r of SINGLE) if (options[r] === name) changed[r] = "";
    if (use.value === "ignore") changed.ignore = [...changed.ignore, name];
    else if (use.value) changed[use.value] = name;
    update(changed);
  } }, ROLES.map(([value, text]) => h("option", { value }, value === "" && column.role === "left out" && role === "" ? "not used" : text)));
  use.value = role;
  const left = column.role === "left out" && role === "";
  const type = h("select", { "aria-label": `Type of ${shown(name)}`, "data-key": "type " + name, onchange: () => {
    const changed = { ...types };
    if (type.value) changed[name] = type.value; else delete changed[name];
    update({ types: changed });
  } }, h("option", { value: "" }, left ? "–" : column.role === "used" && !types[name] ? `auto: ${column.type}` : "auto"), TYPES.map((t) => h("option", { value: t }, t)));
  type.value = types[name] || "";
  type.disabled = role !== "";
  const weight = h("input", { type: "number", min: 0, step: "any", placeholder: "1", value: (options.column_weights || {})[name] ?? "", "aria-label": `Weight of ${shown(name)}`, "data-key": "weight " + name, onchange: () => {
    const changed = { ...(options.column_weights || {}) };
    if (weight.value === "") delete changed[name]; else changed[name] = Number(weight.value);
    update({ column_weights: changed });
  } });
  const numeric = column.type === "numeric" || column.type === "count";
  const scale = h("select", { "aria-label": `Scale of ${shown(name)}`, "data-key": "scale " + name, disabled: !numeric, onchange: () => {
    const changed = { ...(options.transforms || {}) };
    if (scale.value) changed[name] = scale.value; else delete changed[name];
    update({ transforms: changed });
  } }, [["", "auto"], ["log", "logarithm"], ["rank", "rank"], ["none", "as it is"]].map(([value, text]) => h("option", { value }, text)));
  scale.value = (options.transforms || {})[name] || "";
  const off = column.role === "left out";
  return h(off ? "tr.off" : "tr", {},
    h("th", { scope: "row" }, h("span", { dir: "auto" }, shown(name) || "(no name)"), h("span.cap", {}, shown(column.reason))),
    h("td", { "data-label": "Use it as" }, use), h("td", { "data-label": "Type" }, type),
    h("td.what", { "data-label": "What is in it" }, picture(column)),
    h("td", { "data-label": "Missing" }, missing(column.missing, rows)),
    h("td", { "data-label": "Counts" }, off ? null : weight), h("td", { "data-label": "Scale" }, off ? null : scale));
}

function missing(n, rows) {
  if (!n) return h("span.cap", {}, "none");
  const share = n / rows;
  return h("span.missing", { title: `${count(n)} of ${count(rows)}` }, h("meter", { min: 0, max: 1, value: share, "aria-hidden": true }), `${share < 0.01 ? "<1" : Math.round(100 * share)}%`);
}

function picture(column) {
  const p = column.picture;
  if (!p) return h("span.cap", {}, "–");
  if (p.bars) {
    const most = Math.max(...p.bars, 1), wide = 120 / p.bars.length;
    const drawn = svg("svg", { viewBox: "0 0 120 26", width: 120, height: 26, role: "img", "aria-label": `From ${p.low} to ${p.high}` },
      ...p.bars.map((n, i) => svg("rect", { x: i * wide, y: 26 - (n ? Math.max(26 * Math.sqrt(n / most), 1) : 0), width: Math.max(wide - 0.6, 0.6), height: n ? Math.max(26 * Math.sqrt(n / most), 1) : 0, class: "bar-fill" })));
    return h("div.hist", {}, drawn, h("span.cap", {}, h("span", {}, p.low), h("span", {}, p.high)));
  }
  return h("div.levels", {}, p.levels.slice(0, 3).map(([text, n]) => h("span.level", { title: `${shown(text)}: ${count(n)}` }, h("span", { dir: "auto" }, shown(text)), h("span.cap", {}, p.more && n <= 1 ? "" : ` ${count(n)}`))),
    p.more || p.levels.length > 3 ? h("span.cap", {}, `${count(p.more + Math.max(p.levels.length - 3, 0))} more`) : null);
}
