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

// One fit as a card: stage, best so far, what is left, and a way to stop it.
export function progressCard(task) {
  const p = task.progress, known = p.total > 0 && p.stage === "fitting";
  const bar = h("progress", known ? { max: p.total, value: p.done, "aria-label": "Progress" } : { "aria-label": "Progress" });
  if (known) bar.value = p.done;
  const facts = [];
  if (p.k) facts.push(`at ${p.k} groups`);
  else if (p.done && p.stage === "fitting") facts.push(`step ${p.done}`);
  if (p.bic !== null && p.bic !== undefined) facts.push(`best BIC so far ${Number(p.bic.toPrecision(7)).toLocaleString("en-US")}`);
  facts.push(`${seconds(task.seconds)} spent`);
  if (p.left) facts.push(`about ${seconds(p.left)} left`);
  const stage = task.state === "waiting" ? "Waiting for another fit" : task.state === "stopping" ? "Stopping, keeping the best so far" : STAGES[p.stage] || "Reading the table";
  return h("div.progress", {},
    h("div.row", {}, h("b", {}, stage), h("span.grow"), h("button", { type: "button", disabled: task.state === "stopping", onclick: () => { ask("stop", { task: task.number }).catch(() => {}); soon(); } }, "Stop and keep the best so far")),
    bar, h("p.cap", {}, facts.join(" · ")), h("p.cap", {}, h("code", {}, shown(task.command || ""))));
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
