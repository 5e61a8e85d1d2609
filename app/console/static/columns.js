// Shows the columns of a CSV file with its first rows, and asks what each column contains.

import { element } from "./message.js";

const HEAD_BYTES = 65536;
const MAX_COLUMNS = 100;
const SAMPLES = 3;
const YES_OR_NO = /^(|[01x?]|-1|yes|no|true|false|ja|nein|wahr|falsch|oui|non|vrai|faux|sí|verdadero|falso|vero)$/i;
const DELIMITERS = { ",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars" };
const ROLES = { "": "not used", text: "text", labels: "labels", flag: "a label: yes or no", id: "id" };

const part = document.getElementById("columns");
const format = document.querySelector("[name='options/format']:not([type=hidden])");

/** Return the text of the first bytes of a file, and the encoding to set if it is not the default. */
function decode(bytes) {
  const mark = `${bytes[0]},${bytes[1]}`;
  const encoding = { "255,254": "utf-16le", "254,255": "utf-16be" }[mark] || "utf-8";
  try {
    return [new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: true }), ""];
  } catch {
    return [new TextDecoder("windows-1252").decode(bytes), "cp1252"];
  }
}

/** Return the most frequent delimiter of a line. */
function delimiterOf(line) {
  const count = (delimiter) => line.replace(/"[^"]*"/g, "").split(delimiter).length;
  return Object.keys(DELIMITERS).reduce((best, other) => (count(other) > count(best) ? other : best));
}

/** Return the rows of a CSV text. The last one can be cut. */
function rowsOf(text, delimiter) {
  const rows = [];
  let row = [];
  let cell = "";
  let isQuoted = false;
  function endCell() {
    row.push(cell.trim());
    cell = "";
  }
  function endRow() {
    if (!row.length && !cell) return;
    endCell();
    rows.push(row);
    row = [];
  }
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (isQuoted) {
      if (char !== '"') cell += char;
      else if (text[i + 1] === '"') cell += text[i++];
      else isQuoted = false;
    } else if (char === '"' && !cell) isQuoted = true;
    else if (char === delimiter) endCell();
    else if (char === "\n" || char === "\r") endRow();
    else cell += char;
  }
  endRow();
  return rows;
}

/** Return what a column probably contains, by its name and its values. */
function roleOf(name, values, hasLabels) {
  if (name === "text" || name === "id") return name;
  if (name === "labels" || name === "label") return "labels";
  const isFlag = !hasLabels && values.length > 0 && values.every((value) => YES_OR_NO.test(value));
  return isFlag && values.some((value) => value !== "") ? "flag" : "";
}

function show(names, rows, note, encoding) {
  const hasLabels = names.includes("labels") || names.includes("label");
  const lines = names.flatMap((name, j) => {
    if (!name || names.indexOf(name) !== j || j >= MAX_COLUMNS) return [];
    const values = rows.map((row) => row[j] ?? "");
    const select = element("select", { "aria-label": name, "data-column": name });
    for (const [role, words] of Object.entries(ROLES)) select.append(element("option", { value: role }, words));
    select.value = roleOf(name, values, hasLabels);
    const samples = Array.from({ length: SAMPLES }, (_, i) => element("td", {}, (values[i] || "").slice(0, 80)));
    return [element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, select), ...samples)];
  });
  part.querySelector("tbody").replaceChildren(...lines);
  part.querySelector("[data-note]").textContent = note;
  const field = part.querySelector("[name='options/encoding']");
  field.value = encoding; // an empty field is not sent
  apply();
}

/** Write the chosen roles into the fields that are sent. */
function apply() {
  const selects = [...part.querySelectorAll("select")];
  const named = (role) => selects.filter((select) => select.value === role).map((select) => select.dataset.column);
  const labels = named("labels");
  const flags = named("flag");
  const options = { text: named("text"), id: named("id").slice(0, 1), label_columns: flags };
  options[labels.length > 1 ? "labels_in" : "labels"] = labels;
  const lists = new Set(["text", "label_columns", "labels_in"]);
  const fields = Object.entries(options).flatMap(([name, columns]) =>
    columns.map((value) => element("input", { type: "hidden", name: `options/${name}`, value, "data-type": lists.has(name) ? "list" : "string" })));
  part.querySelector("[data-fields]").replaceChildren(...fields);
  let problem = "";
  if (!labels.length && !flags.length) problem = "Choose the column that contains the labels.";
  if (labels.length && flags.length) problem = "Choose either columns that contain labels, or columns that are a label each.";
  selects.forEach((select, j) => select.setCustomValidity(j ? "" : problem));
}

function enable(isShown) {
  if (part) part.hidden = part.disabled = !isShown;
}

/** Show the columns of a file if it is CSV. */
export async function askForColumns(file) {
  enable(false);
  if (!part || !/\.(csv|tsv|tab|txt)$/i.test(file.name) || format?.value) return;
  const [decoded, encoding] = decode(new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer()));
  const [, separator, text] = decoded.replace(/^\uFEFF/, "").match(/^(?:"?sep=([\t !#-~])"?\r?\n)?([^]*)$/i);
  const delimiter = separator || delimiterOf(text.split(/\r?\n/, 1)[0]);
  const [names, ...rows] = rowsOf(text, delimiter);
  if (file.size > HEAD_BYTES) rows.pop();
  if (!names || names.length < 2) return;
  const isTable = rows.every((row) => row.length === names.length) && !/^(?:[[{]|__label__)/.test(text);
  if (/\.txt$/i.test(file.name) && !isTable) return;
  const read = `This looks like CSV with ${DELIMITERS[delimiter] || `“${delimiter}”`} between the cells`;
  show(names, rows, encoding ? `${read}, in Windows-1252.` : `${read}.`, encoding);
  enable(true);
}

part?.addEventListener("change", apply);
// A user who chooses the format names the columns there.
format?.addEventListener("change", () => enable(false));
