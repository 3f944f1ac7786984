// Sorting, order of the profile, one group on the map, hover, filter, copy, and where one is. The page is whole without it.
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.remove("nojs");
  function all(query, base) { return Array.prototype.slice.call((base || document).querySelectorAll(query)); }

  function keyOf(cell) {
    var given = cell.getAttribute("data-v"), text = given === null ? cell.textContent.trim() : given;
    var plain = text.replace(/[\u202f\u00a0 ,%+]/g, "").replace(/\u2212/g, "-").replace(/^[<>]/, "");
    return { text: text.toLowerCase(), number: plain !== "" && isFinite(plain) ? Number(plain) : null };
  }
  function before(a, b) {
    if (a.number !== null && b.number !== null) return a.number - b.number;
    if (a.number !== null) return -1;
    if (b.number !== null) return 1;
    return a.text < b.text ? -1 : a.text > b.text ? 1 : 0;
  }
  all("table.sortable").forEach(function (table) {
    var heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach(function (head, column) {
      var button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", function () {
        var up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        var lines = all("tr", body).map(function (line, place) { return { line: line, key: keyOf(line.cells[column]), place: place }; });
        lines.sort(function (a, b) { return (up ? 1 : -1) * before(a.key, b.key) || a.place - b.place; });
        lines.forEach(function (entry) { body.appendChild(entry.line); });
      });
    });
  });

  function pressed(buttons, chosen) {
    buttons.forEach(function (b) { b.setAttribute("aria-pressed", b === chosen ? "true" : "false"); });
  }
  all(".tools.order").forEach(function (tools) {
    var buttons = all("button", tools), grid = document.getElementById("profile");
    buttons.forEach(function (button) {
      button.addEventListener("click", function () {
        var by = button.getAttribute("data-by"), lines = all(".line:not(.head)", grid);
        lines.sort(function (a, b) {
          if (by === "name") return a.getAttribute("data-name") < b.getAttribute("data-name") ? -1 : 1;
          return Number(b.getAttribute("data-" + by)) - Number(a.getAttribute("data-" + by));
        });
        lines.forEach(function (line) { grid.appendChild(line); });
        pressed(buttons, button);
      });
    });
  });
  all(".tools.show").forEach(function (tools) {
    var buttons = all("button", tools), parts = all("#map [data-group]");
    buttons.forEach(function (button) {
      button.addEventListener("click", function () {
        var again = button.getAttribute("aria-pressed") === "true", wanted = button.getAttribute("data-group");
        parts.forEach(function (part) {
          part.classList.toggle("dim", !again && part.getAttribute("data-group") !== wanted);
        });
        pressed(buttons, again ? null : button);
      });
    });
  });
  all("input.filter").forEach(function (input) {
    input.addEventListener("input", function () {
      var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      all(".filtered tbody tr").forEach(function (line) {
        var text = line.textContent.toLowerCase();
        line.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
      });
    });
  });
  all(".copy button").forEach(function (button) {
    button.addEventListener("click", function () {
      var text = button.parentNode.querySelector("pre").textContent;
      if (!navigator.clipboard) return;
      navigator.clipboard.writeText(text).then(function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      }, function () { button.textContent = "Select and copy"; });
    });
  });

  var tip = document.getElementById("tip");
  if (!tip.hasAttribute("data-on")) document.addEventListener("pointermove", function (event) {
    var target = event.target && event.target.closest ? event.target.closest("[data-tip]") : null;
    if (!target) { tip.style.display = "none"; return; }
    tip.textContent = target.getAttribute("data-tip");
    tip.style.display = "block";
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(8, Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8)) + "px";
  });

  tip.setAttribute("data-on", "");

  var links = all("nav a"), sections = links.map(function (link) { return document.getElementById(link.getAttribute("href").slice(1)); });
  if ("IntersectionObserver" in window) {
    var watcher = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (!entry.isIntersecting) return;
        links.forEach(function (link, i) { link.classList.toggle("here", sections[i] === entry.target); });
      });
    }, { rootMargin: "-15% 0px -75% 0px" });
    sections.forEach(function (section) { if (section) watcher.observe(section); });
  }
})();
