// Uploads a file: creates a data set with POST /v1/datasets, and sends the file with PUT …/content.
//
// <form data-upload data-dataset="ds_…">: with an id, the file is the content of an existing data set.

import { askForColumns } from "./columns.js";
import { Problem, announce, api, readForm, readResponse, root, say, showProblem } from "./console.js";
import { sentence } from "./message.js";

const form = document.querySelector("form[data-upload]");
const input = form?.querySelector("input[type=file]");
const drop = form?.querySelector(".drop");
const meter = form?.querySelector("[data-meter]");
const HEAD_BYTES = 65536;
const ZIP_NAME = 30; // the position of the name of the first member of a zip
let dataset = form?.dataset.dataset || "";
let request = null;

async function choose(files) {
  if (files.length !== 1) {
    announce("Choose one file. Put several files into one zip file.", true);
    return;
  }
  if (input.files !== files) input.files = files;
  const [file] = files;
  drop.querySelector("[data-chosen]").textContent = `${file.name}, ${size(file.size)}`;
  const name = form.querySelector("[name=name]");
  if (name && !name.dataset.typed) name.value = file.name.replace(/(\.[A-Za-z0-9]{1,8}){1,2}$/, "") || file.name;
  const problem = await problemOf(file);
  input.setCustomValidity(problem);
  if (problem) {
    announce(problem, true);
    return;
  }
  say(`${file.name} is chosen.`);
  askForColumns(file);
}

/** Return why a file cannot be a data set, as its first bytes show; empty if it can. */
async function problemOf(file) {
  if (!file.size) return `${file.name} is empty.`;
  const start = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  const text = new TextDecoder("latin1").decode(start);
  const kind = JSON.parse(input.dataset.foreign).find(
    ({ magic, names, part }) => magic.every((byte, i) => start[i] === byte) && text.includes(part) &&
      (!names.length || names.some((name) => text.startsWith(name, ZIP_NAME))));
  return kind ? `${file.name} is ${kind.what}. ${sentence(kind.hint)}` : "";
}

function size(bytes) {
  const units = ["B", "kB", "MB", "GB"];
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), 3);
  return `${(bytes / 1000 ** step).toFixed(step ? 1 : 0)} ${units[step]}`;
}

/** Send the file. Only XMLHttpRequest reports the progress of an upload. */
function send(id, file) {
  return new Promise((resolve, reject) => {
    request = new XMLHttpRequest();
    request.open("PUT", `${root}/v1/datasets/${id}/content`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-CSRF-Token", document.documentElement.dataset.csrf);
    request.upload.addEventListener("progress", (event) => show(event.loaded, file.size));
    request.addEventListener("load", () => {
      try {
        resolve(readResponse(request.status, request.responseText));
      } catch (error) {
        reject(error);
      }
    });
    request.addEventListener("error", () => reject(new Problem({ detail: "The connection was lost. Choose Upload to try again." })));
    request.addEventListener("abort", () => reject(new Problem({ detail: "The upload was stopped. Choose Upload to start it again." })));
    request.addEventListener("loadend", () => (request = null));
    request.send(file);
  });
}

function show(sent, total) {
  meter.hidden = false;
  meter.querySelector("progress").value = total ? sent / total : 1;
  const isSent = sent >= total;
  meter.querySelector("[data-sent]").textContent = isSent
    ? "The file is sent. The service stores it."
    : `${size(sent)} of ${size(total)}, ${Math.floor((100 * sent) / total)} %`;
}

async function upload() {
  const body = readForm(form);
  const [file] = input.files;
  const hasArrived = !form.dataset.dataset && dataset && (await discard(dataset));
  if (!hasArrived) {
    if (!form.dataset.dataset) dataset = (await api("POST", `${root}/v1/datasets`, body)).id;
    show(0, file.size);
    await send(dataset, file);
  }
  location.assign(`${root}/console/datasets/${dataset}`);
}

/** Delete the data set of an interrupted upload. If its content has arrived, keep it and return true. */
async function discard(id) {
  const { state } = await api("GET", `${root}/v1/datasets/${id}`);
  if (state !== "awaiting_content") return true;
  dataset = "";
  await api("DELETE", `${root}/v1/datasets/${id}`);
  return false;
}

if (form) {
  input.addEventListener("change", () => input.files.length && choose(input.files));
  form.querySelector("[name=name]")?.addEventListener("input", (event) => (event.target.dataset.typed = "yes"));
  // A file that is dropped beside the field must not replace the page.
  for (const type of ["dragenter", "dragover"]) {
    document.addEventListener(type, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  document.addEventListener("dragleave", (event) => event.relatedTarget || drop.classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    choose(event.dataTransfer.files);
  });
  meter.querySelector("button").addEventListener("click", () => request?.abort());
  window.addEventListener("beforeunload", (event) => request && event.preventDefault()); // the browser asks
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    if (button?.getAttribute("aria-busy") === "true") return;
    button?.setAttribute("aria-busy", "true");
    try {
      await upload();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      meter.hidden = true;
      showProblem(form, error);
    } finally {
      button?.removeAttribute("aria-busy");
    }
  });
}
