// The answer, alive: the blocks of the report, a slider over K, groups that can be changed, a history.
import { ask, get, note } from "./api.js";
import { chip, count, fill, h, lines, plural, shown } from "./dom.js";
import { openRows } from "./rows.js";
import { finished, onTasks, soon } from "./tasks.js";
import { pictureButtons } from "./pictures.js";
import { checkDialog, compareDialog, exportDialog, historyDialog } from "./dialogs.js";

const FRAME = 12, AHEAD = 8; // milliseconds of drawing in a frame; answers that are fetched before they are asked for
const FOCUSED = "a[href],button:not(.faint),input,select,summary,[tabindex]";
const sheet = new CSSStyleSheet();
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

export async function runView(work, run, go) {
  let [answer, overview] = await Promise.all([get("answer", { run }), get("overview")]), waiting = null, drawing = 0, drawn = "";
  let acting = Promise.resolve(), under = 0, sliding = null;
  const ahead = new Map(), looked = new Map();
  const bar = h("div.workbar", { role: "toolbar", "aria-label": "What can be done" }), told = h("div.told", { "aria-live": "polite" });
  const main = h("main.answer-view"), blocks = h("nav", { "aria-label": "Blocks" });
  fill(work, h("div.sticky", {}, bar, told), blocks, main);
  const tools = { run, go, overview, now: () => answer, act, refit };
  await draw();
  if (!overview.read_only && answer.ks.some((e) => !e.ready || (!e.tested && e.k === answer.brief.k))) ask("prepare", { run }).then(soon, () => {});
  const wanted = new URLSearchParams(location.search).get("compare");
  if (wanted) compareDialog(tools, wanted);

  // Block by block, no frame longer than it must be: a large report at once would hold up the page.
  async function draw() {
    let began = performance.now();
    drawn = answer.html;
    const mine = ++drawing, made = document.createElement("template");
    made.innerHTML = answer.html; // escaped by construction on the server: ilk.report.html
    sheet.replaceSync(answer.css);
    blocks.innerHTML = answer.blocks;
    let above = () => { above = () => {}; refocused(bar, bar, drawBar); }; // after the first blocks: the focus costs a layout
    for (const [i, block] of [...made.content.children].entries()) {
      if (performance.now() - began > FRAME) { above(); await frame(); began = performance.now(); }
      if (mine !== drawing) return;
      refocused(main.children[i], block, () => {
        if (main.children[i]) main.children[i].replaceWith(block); else main.append(block);
        decorate(block, answer, tools);
      });
    }
    above();
    await frame();
    if (mine !== drawing) return;
    window.ilkReport();
    pictureButtons(main, run); // looks at sizes, which in between would cost a layout for every block
    lookAhead();
  }
  // The answers at the numbers of groups nearby are fetched before they are asked for.
  async function lookAhead() {
    const now = answer.brief.k, mine = drawing;
    const nearby = answer.ks.filter((e) => e.ready && e.k !== now).sort((a, b) => Math.abs(a.k - now) - Math.abs(b.k - now)).slice(0, AHEAD);
    for (const entry of nearby) {
      if (mine !== drawing) return;
      if (ahead.has(entry.k) && looked.get(entry.k) === entry.tested) continue;
      const made = await get("version", { run, version: entry.version }).catch(() => null);
      if (made) { ahead.set(entry.k, made); looked.set(entry.k, entry.tested); }
    }
  }
  function drawBar() {
    const state = answer.state, at = state.at, entry = state.entries[at];
    const step = (to, text, key) => h("button", { type: "button", title: key, disabled: to < 0 || to >= state.entries.length || overview.read_only, onclick: () => act("step", { at: to }) }, text);
    fill(bar, slider(answer, waiting, (k) => act("k", { k }), overview.read_only), step(at - 1, "Undo", "Ctrl+Z"), step(at + 1, "Redo", "Ctrl+Y"),
      h("button", { type: "button", onclick: () => historyDialog(tools) }, `History (${state.entries.length})`),
      h("span.grow"),
      h("button", { type: "button", onclick: () => openRows(run, answer, {}) }, "Rows"),
      h("button", { type: "button", onclick: () => compareDialog(tools) }, "Compare"),
      h("button", { type: "button", disabled: !answer.has_rule, title: answer.has_rule ? null : "these groups have no rule for new rows", onclick: () => checkDialog(tools) }, "Check new rows"),
      h("button.primary", { type: "button", onclick: () => exportDialog(tools) }, "Export"));
    fill(told, h("details", {}, h("summary", {}, h("b", {}, shown(entry.what)), " ", h("code", {}, shown(entry.command))), lines(entry)));
  }

  function drawReady() {
    const place = bar.querySelector(".k");
    place.querySelectorAll(".cap").forEach((old) => old.remove());
    place.append(...ready(answer, waiting));
  }

  // One after the other, each from where the one before has left the run; a number of groups that was passed is not asked for.
  function act(what, given) {
    waiting = null;
    under += 1;
    bar.setAttribute("aria-busy", "true");
    if (what === "k") {
      sliding = given.k;
      if (ahead.get(given.k)) { answer = { ...answer, ...ahead.get(given.k) }; draw(); }
    }
    acting = acting.then(() => perform(what, given)).finally(() => {
      under -= 1;
      if (!under) bar.removeAttribute("aria-busy");
    });
    return acting;
  }
  async function perform(what, given) {
    const passed = () => what === "k" && given.k !== sliding, revision = answer.state.revision;
    if (passed()) return;
    try {
      const made = what === "change" ? await ask("change", { run, revision, change: given }) : await ask(what, { run, revision, ...given });
      if (made.making) { waiting = made.making; soon(); refocused(bar, bar, drawBar); return; }
      if (passed()) { answer = { ...answer, state: made.state }; return; }
      if (!made.html) await finished(made.number);
      answer = made.html ? made : await get("answer", { run });
      if (answer.html === drawn) refocused(bar, bar, drawBar); else await draw();
    } catch (error) {
      note(error);
      answer = await get("answer", { run }).catch(() => answer);
      await draw();
    }
  }
  // What was shown at a glance is tested by now: the same groups, with how far to trust them.
  async function retell() {
    const now = await get("answer", { run }).catch(() => null);
    if (!now || now.state.revision !== answer.state.revision || under) return;
    answer = now;
    await draw();
  }
  function refit(changed) {
    const options = { ...answer.state.options, ...changed };
    sessionStorage.setItem("options " + answer.table, JSON.stringify(options));
    go({ table: answer.table });
  }

  // The tasks say which other numbers of groups are there by now.
  const stop = onTasks((tasks) => {
    const mine = tasks.filter((t) => t.run === run && (t.made.length || t.tested.length || Object.keys(t.unmade).length));
    let more = false, whole = false;
    for (const entry of answer.ks) {
      const why = mine.map((t) => t.unmade[entry.k]).find(Boolean);
      if (!entry.ready && mine.some((t) => t.made.includes(entry.k) || t.tested.includes(entry.k))) { entry.ready = true; more = true; }
      if (!entry.tested && mine.some((t) => t.tested.includes(entry.k))) { entry.tested = true; more = true; whole = whole || answer.version === `k/${entry.k}`; }
      if (why && !entry.why_not) { entry.why_not = why; more = true; }
    }
    if (whole) retell();
    const there = waiting !== null && answer.ks.find((e) => e.k === waiting);
    if (there && there.ready) { const k = waiting; waiting = null; act("k", { k }); } else if (there && there.why_not) { note(new Error(there.why_not)); waiting = null; drawBar(); } else if (more) { drawReady(); lookAhead(); }
  });
  const keys = (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.target.closest("input,textarea,select,dialog")) return;
    const to = event.key === "z" && !event.shiftKey ? answer.state.at - 1 : event.key === "y" || (event.key.toLowerCase() === "z" && event.shiftKey) ? answer.state.at + 1 : null;
    if (to === null || to < 0 || to >= answer.state.entries.length) return;
    event.preventDefault();
    act("step", { at: to });
  };
  document.addEventListener("keydown", keys);
  return () => { stop(); document.removeEventListener("keydown", keys); };
}

function slider(answer, waiting, choose, fixed) {
  const ks = answer.ks, now = waiting || answer.brief.k, list = h("datalist", { id: "ks" }, ks.map((e) => h("option", { value: e.k })));
  const shownK = h("output", { for: "k" }, String(now));
  const range = h("input", { type: "range", id: "k", min: ks[0].k, max: ks[ks.length - 1].k, step: 1, list: "ks", value: now, disabled: fixed || ks.length < 2, "aria-label": "Number of groups",
    oninput: () => { shownK.textContent = range.value; }, onchange: () => choose(Number(range.value)) });
  range.value = now;
  return h("div.k", {}, h("label", { for: "k" }, "Groups"), range, list, shownK, ready(answer, waiting));
}

function ready(answer, waiting) {
  const ks = answer.ks, now = ks.find((e) => e.version === answer.version);
  if (waiting) return [h("span.cap", { role: "status" }, `fitting ${waiting} groups…`)];
  if (now && !now.tested) return [h("span.cap", { role: "status" }, "testing stability…")];
  const there = ks.filter((e) => e.ready || e.why_not).length;
  return there < ks.length ? [h("span.cap", { title: "The others are made in the background, or when you ask for them" }, `${there} of ${ks.length} ready`)] : [];
}

// Draw anew what may hold the focus, and give it to what stands in the same place.
function refocused(before, after, redraw) {
  const at = before ? [...before.querySelectorAll(FOCUSED)].indexOf(document.activeElement) : -1;
  redraw();
  const again = at < 0 ? null : after.querySelectorAll(FOCUSED)[at];
  if (again) again.focus({ preventScroll: true });
}

// The next frame; soon, too, where the page is hidden and has none.
const frame = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); setTimeout(done, 100); });

function decorate(main, answer, tools) {
  const fixed = tools.overview.read_only, named = new Map(answer.groups.map((g) => [g.letter, g]));
  for (const card of main.querySelectorAll("article.card")) {
    const letter = card.querySelector(".chip").textContent.trim(), group = named.get(letter);
    if (!group) continue;
    const button = (text, act) => h("button.small", { type: "button", onclick: act }, text);
    card.append(h("div.tools.hand", {}, button(`Rows (${count(group.rows)})`, () => openRows(tools.run, answer, { group: letter })),
      fixed ? null : [button("Rename", () => rename(group, tools)), button("Colour", () => colour(group, tools)), button("Split", () => tools.act("change", { split: letter })),
        answer.groups.length > 2 ? button("Merge with…", () => merge(group, answer, tools)) : null]));
  }
  for (const name of main.querySelectorAll("#profile .line[data-name]")) {
    if (fixed || !answer.table) break;
    const column = name.getAttribute("data-name");
    name.firstElementChild.append(h("button.small.faint", { type: "button", title: `Leave ${shown(column)} out and fit again`, onclick: () => tools.refit({ ignore: [...(answer.state.options.ignore || []), column] }) }, "leave out…"));
  }
  region(main, answer, tools);
}

function dialog(title, ...children) {
  const made = h("dialog", { "aria-label": title }, h("form", { method: "dialog" }, h("div.row", {}, h("h2", {}, title), h("span.grow"), h("button.small", { type: "submit", formnovalidate: true }, "Close")), children));
  document.body.append(made);
  made.addEventListener("close", () => made.remove());
  made.showModal();
  return made;
}

function rename(group, tools) {
  const input = h("input", { type: "text", value: group.name, maxlength: 120, required: true, "aria-label": `Name of ${group.letter}` });
  const made = dialog(`Rename ${group.letter}`, h("p", {}, input), h("button.primary", { type: "button", onclick: () => {
    if (!input.value.trim()) return;
    made.close();
    tools.act("change", { names: { [group.letter]: input.value.trim() } });
  } }, "Rename"));
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); made.querySelector(".primary").click(); } });
  input.select();
}

function colour(group, tools) {
  const made = dialog(`Colour of ${group.letter}`, h("div.row.palette", {}, [0, 1, 2, 3, 4, 5].map((i) => h("button", { type: "button", class: `swatch-button p${i}`, "aria-label": `Colour ${i + 1}`, onclick: () => { made.close(); tools.act("change", { colours: { [group.letter]: i + 1 } }); } }, group.letter))));
}

function merge(group, answer, tools) {
  const made = dialog(`Merge ${group.letter} with`, h("ul.list", {}, answer.groups.filter((g) => g.letter !== group.letter).map((g) => h("li", {}, h("button.line", { type: "button", onclick: () => { made.close(); tools.act("change", { merge: [group.letter, g.letter] }); } }, chip(g), " ", h("span", { dir: "auto" }, shown(g.name)), h("span.cap", {}, ` ${plural(g.rows, "row")}`))))));
}

// A region of the map: drag a box over dots to see their rows.
function region(main, answer, tools) {
  const picture = main.querySelector("#map svg");
  if (!picture || !answer.points) return;
  picture.parentNode.append(h("p.cap", {}, "Drag a box over the map to see the rows in it."));
  let from = null, box = null;
  const place = (event) => {
    const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    return [p.x, p.y];
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch") return;
    from = place(event);
    box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    box.setAttribute("class", "chosen");
    picture.append(box);
    picture.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  const corners = (to) => [Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])];
  picture.addEventListener("pointermove", (event) => {
    if (!from) return;
    const [x0, y0, x1, y1] = corners(place(event));
    for (const [key, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) box.setAttribute(key, value);
  });
  picture.addEventListener("pointerup", (event) => {
    if (!from) return;
    const [x0, y0, x1, y1] = corners(place(event));
    from = null;
    const only = answer.points.filter(([x, y]) => x >= x0 && x <= x1 && y >= y0 && y <= y1).map((p) => p[2]);
    const drawn = box;
    box = null;
    if (x1 - x0 < 4 || !only.length) { drawn.remove(); return; }
    for (const old of picture.querySelectorAll(".chosen")) if (old !== drawn) old.remove();
    openRows(tools.run, answer, { only });
  });
}

export { dialog };
