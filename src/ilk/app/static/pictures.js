// Every picture as a file: its colours and fonts written into it, as SVG or drawn to PNG.
import { h } from "./dom.js";

const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-opacity", "opacity", "font-size", "font-weight", "font-family", "mix-blend-mode", "display"];
const SMALLEST = 150; // pixels of width from which a drawing is a picture

function standing(picture) {
  const made = picture.cloneNode(true);
  const from = [picture, ...picture.querySelectorAll("*")], to = [made, ...made.querySelectorAll("*")];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of KEPT) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  const { width, height } = picture.getBoundingClientRect();
  made.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  made.setAttribute("width", width);
  made.setAttribute("height", height);
  for (const old of made.querySelectorAll(".chosen")) old.remove();
  return { text: new XMLSerializer().serializeToString(made), width, height };
}

export function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function png(picture, name) {
  const { text, width, height } = standing(picture), image = new Image();
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = h("canvas", { width: 2 * width, height: 2 * height }), pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  canvas.toBlob((blob) => save(blob, name));
}

export function pictureButtons(main, run) {
  let number = 0;
  for (const figure of main.querySelectorAll("figure")) {
    if (figure.classList.contains("saved")) { number += 1; continue; }
    const picture = [...figure.querySelectorAll("svg")].find((one) => one.getBoundingClientRect().width >= SMALLEST);
    if (!picture) continue;
    const title = figure.querySelector("h3"), words = (title ? title.textContent : "map").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 40);
    const name = `${run.replace(/\.ilk$/, "")}-${String(++number).padStart(2, "0")}-${words}`;
    figure.classList.add("saved");
    figure.prepend(h("span.save", {}, h("button.small.faint", { type: "button", onclick: () => save(new Blob([standing(picture).text], { type: "image/svg+xml" }), name + ".svg"), "aria-label": `Save ${words} as SVG` }, "SVG"),
      h("button.small.faint", { type: "button", onclick: () => png(picture, name + ".png"), "aria-label": `Save ${words} as PNG` }, "PNG")));
  }
}
