// Asks for the columns of a CSV file that lacks the columns `text` and `labels`, which Covey reads by default.

import { element } from "./message.js";

const HEAD_BYTES = 65536;
const part = document.getElementById("columns");
const format = document.querySelector("[name='options/format']:not([type=hidden])");

/** Return the cells of the first line of a CSV file. The most frequent delimiter of the line separates them. */
function firstLine(text) {
  const line = text.replace(/^\uFEFF/, "").split(/\r?\n/, 1)[0];
  const count = (delimiter) => line.split(delimiter).length;
  const delimiter = [",", ";", "\t"].reduce((best, other) => (count(other) > count(best) ? other : best));
  const cells = line.match(new RegExp(`("(?:[^"]|"")*"|[^${delimiter}]*)(?:${delimiter}|$)`, "g")) || [];
  const names = cells.map((cell) => cell.replace(new RegExp(`${delimiter}$`), "").trim());
  return names.map((name) => (/^".*"$/.test(name) ? name.slice(1, -1).replaceAll('""', '"') : name)).filter(Boolean);
}

function show(names) {
  const boxes = names.map((name) => {
    const box = element("input", { type: "checkbox", name: "options/text", value: name, "data-type": "list" });
    box.checked = name === "text";
    return element("label", { class: "choice" }, box, ` ${name}`);
  });
  part.querySelector("[data-texts]").replaceChildren(...boxes);
  const select = part.querySelector("select");
  select.replaceChildren(element("option", { value: "" }, "choose one"), ...names.map((name) => element("option", { value: name }, name)));
  if (names.includes("labels")) select.value = "labels";
}

function enable(isShown) {
  if (part) part.hidden = part.disabled = !isShown;
}

/** Show the columns of a file if the user must choose some. */
export async function askForColumns(file) {
  enable(false);
  if (!part || !/\.(csv|tsv)$/i.test(file.name) || format?.value) return;
  const names = firstLine(await file.slice(0, HEAD_BYTES).text());
  if (names.length < 2 || (names.includes("text") && names.includes("labels"))) return;
  show(names);
  enable(true);
}

// A user who chooses the format names the columns there.
format?.addEventListener("change", () => enable(false));
