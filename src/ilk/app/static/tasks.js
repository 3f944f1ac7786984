// Fits that are under way: asked for every now and then, oftener while there are some.
import { ask, get } from "./api.js";
import { fill, h, seconds, shown } from "./dom.js";

const BUSY = 150, IDLE = 4000;
const listeners = new Set();
let last = [], timer = null, gone = 0;

export function onTasks(listener) {
  listeners.add(listener);
  listener(last);
  return () => listeners.delete(listener);
}

export function soon() { clearTimeout(timer); timer = setTimeout(poll, 60); }

const active = (task) => task.state === "waiting" || task.state === "running" || task.state === "stopping";

async function poll() {
  try {
    last = await get("tasks");
    gone = 0;
    for (const listener of [...listeners]) listener(last);
  } catch { gone += 1; }
  const busy = last.some((task) => active(task) || task.making !== null);
  timer = setTimeout(poll, gone ? Math.min(1000 * gone, 8000) : busy ? BUSY : IDLE);
}

export function watch(place) {
  onTasks((tasks) => {
    const busy = tasks.filter((task) => active(task) && task.what === "fit");
    fill(place, busy.length ? h("span.spin", { "aria-hidden": true }) : "", busy.length ? `${busy.length === 1 ? "A fit is" : busy.length + " fits are"} running` : "");
  });
  poll();
}

const STAGES = { fitting: "Trying models", resampling: "Testing stability", describing: "Describing the groups", writing: "Writing the run" };

// Fits as cards in a place: stage, best so far, what is left, and a way to stop. A card stays, so that its button keeps the focus.
export function drawCards(place, tasks, titled) {
  place.cards = place.cards || new Map();
  for (const [number, card] of place.cards) if (!tasks.some((t) => t.number === number)) { card.place.remove(); place.cards.delete(number); }
  for (const task of tasks) {
    if (!place.cards.has(task.number)) {
      const card = newCard(task, titled);
      place.cards.set(task.number, card);
      place.append(card.place);
    }
    drawCard(place.cards.get(task.number), task);
  }
}

function newCard(task, titled) {
  const card = { stage: h("b", { "aria-live": "polite" }), bar: h("progress", { "aria-label": "Progress" }), facts: h("p.cap") };
  card.stop = h("button", { type: "button", onclick: () => { card.stop.disabled = true; ask("stop", { task: task.number }).catch(() => {}); soon(); } }, "Stop and keep the best so far");
  card.place = h("div.panel", {}, titled ? h("p", { dir: "auto" }, h("b", {}, shown(task.table))) : null,
    h("div.progress", {}, h("div.row", {}, card.stage, h("span.grow"), card.stop), card.bar, card.facts, h("p.cap", {}, h("code", {}, shown(task.command || "")))));
  return card;
}

function drawCard(card, task) {
  const p = task.progress, known = p.total > 0 && p.stage === "fitting", facts = [];
  const stage = task.state === "waiting" ? "Waiting for another fit" : task.state === "stopping" ? "Stopping, keeping the best so far" : STAGES[p.stage] || "Reading the table";
  if (card.stage.textContent !== stage) card.stage.textContent = stage;
  if (known) { card.bar.max = p.total; card.bar.value = p.done; } else card.bar.removeAttribute("value");
  if (p.k) facts.push(`at ${p.k} groups`);
  else if (p.done && p.stage === "fitting") facts.push(`step ${p.done}`);
  if (p.bic !== null && p.bic !== undefined) facts.push(`best BIC so far ${Number(p.bic.toPrecision(7)).toLocaleString("en-US")}`);
  facts.push(`${seconds(task.seconds)} spent`);
  if (p.left) facts.push(`about ${seconds(p.left)} left`);
  card.facts.textContent = facts.join(" · ");
  card.stop.disabled = task.state === "stopping";
}

// Wait until a task is over.
export function finished(number) {
  soon();
  return new Promise((done, lost) => {
    const stop = onTasks((tasks) => {
      const task = tasks.find((one) => one.number === number);
      if (!task || active(task)) return;
      setTimeout(() => stop(), 0);
      if (task.state === "done") done(task);
      else lost(new Error(task.failed ? task.failed.text : "it failed"));
    });
  });
}
