// Which view is shown: the address says it, ?table=NAME or ?run=NAME, so that back and forward work.
import { get, note } from "./api.js";
import { fill, h, shown } from "./dom.js";
import { home } from "./home.js";
import { tableView } from "./table.js";
import { runView } from "./run.js";
import { closeRows } from "./rows.js";
import { watch } from "./tasks.js";

const work = document.getElementById("work");
let left = () => {};

export function go(query) {
  history.pushState(null, "", "?" + new URLSearchParams(query));
  window.scrollTo(0, 0);
  return show();
}

async function show() {
  left();
  left = () => {};
  closeRows();
  fill(document.getElementById("notes"));
  const asked = new URLSearchParams(location.search);
  const table = asked.get("table"), run = asked.get("run");
  fill(document.getElementById("trail"), table || run ? h("span", { dir: "auto" }, shown(table || run)) : "");
  document.title = table || run ? `${shown(table || run)} · ilk` : "ilk";
  document.documentElement.classList.remove("nojs");
  try {
    if (table) left = await tableView(work, table, go) || left;
    else if (run) left = await runView(work, run, go) || left;
    else left = await home(work, go) || left;
  } catch (error) {
    note(error);
    fill(work, h("main", {}, h("p.empty", {}, "This could not be shown."), h("a", { href: "?", "data-go": true }, "All tables and runs")));
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a[data-go]") : null;
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(new URLSearchParams(new URL(link.href).search));
});
window.addEventListener("popstate", show);
// A file that is dropped beside its target must not take the place of the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());

watch(document.getElementById("busy"));
show();
