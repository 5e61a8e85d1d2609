// What all pages share: requests to the API, forms, buttons, times, and messages.
//
// <form data-api="POST /v1/…" data-next="/console/…">  sends its fields as JSON; see `readForm`.
// <button data-api="DELETE /v1/…" data-confirm="…" data-body="{…}" data-next="">  sends one request.
// `data-next` is the page that follows; `{id}` and other fields of the response are replaced. Empty: this page again.
// `data-if-match` is the ETag that the resource must have.
// After a success, the event `covey:done` has {element, response}; a listener can prevent what follows.

import { offerSignIn } from "./sign_in_again.js";

const html = document.documentElement;
export const root = html.dataset.root;

/** An error response of the API. */
export class Problem extends Error {
  constructor(problem) {
    super(problem.detail || problem.title || "The request failed.");
    this.status = problem.status;
    this.errors = problem.errors || [];
  }
}

/** Send a request to the API and return the parsed response; null if it is empty. */
export async function api(method, path, body, headers = {}, more = {}) {
  const options = { ...more, method, headers: { Accept: "application/json", "X-CSRF-Token": html.dataset.csrf, ...headers } };
  if (body !== undefined) {
    const isRaw = body instanceof Blob || typeof body === "string";
    options.body = isRaw ? body : JSON.stringify(body);
    if (!isRaw) options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Problem({ detail: "The service does not respond. Check the connection and try again." });
  }
  return readResponse(response.status, await response.text());
}

/** Return the parsed body of a response, or throw its problem. */
export function readResponse(status, text) {
  let parsed = null;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    throw new Problem({ detail: `The service responded with status ${status} and no JSON.` });
  }
  if (status === 401 || parsed?.code === "csrf_token_invalid") {
    offerSignIn(parsed, () => announce("You are signed in again. Send what you have typed now."));
  }
  if (status >= 400) throw new Problem(parsed || { detail: `The service responded with status ${status}.` });
  return parsed;
}

/** Say to a screen reader what the page shows already. */
export function say(text) {
  const status = document.getElementById("status");
  status.classList.remove("shown");
  status.textContent = text;
}

/** Say something to the user, also to a screen reader. */
export function announce(text, isError = false) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.toggle("bad", isError);
  status.classList.add("shown");
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => status.classList.remove("shown"), isError ? 12000 : 6000);
}

/**
 * Return the fields of a form as a JSON object. The name of a field is its JSON pointer without the first slash:
 * `learner/rounds`. `data-type` is `number`, `boolean`, `list` (several fields with one name), `lines` (a list, one
 * item a line) or `json`. A checkbox of type `list` or `json` adds its value to a list. Empty fields are left out, so that the API uses its default.
 */
export function readForm(form) {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.matches(":disabled") || field.type === "submit" || field.type === "file") continue;
    const value = readField(field);
    if (value !== undefined) assign(body, field.name.split("/"), value);
  }
  return body;
}

function readField(field) {
  const type = field.dataset.type || (field.type === "number" ? "number" : "string");
  if (field.type === "checkbox") {
    if (type === "list") return field.checked ? [field.value] : undefined;
    if (type === "json") return field.checked ? [JSON.parse(field.value)] : undefined;
    return field.checked;
  }
  if (field.type === "radio" && !field.checked) return undefined;
  const text = field.value;
  if (text.trim() === "") return undefined;
  if (type === "number") return Number(text);
  if (type === "boolean") return text === "true";
  if (type === "lines") return text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (type === "json") {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Problem({ detail: "A field is not valid JSON.", errors: [{ pointer: `/${field.name}`, message: `is not valid JSON: ${error.message}` }] });
    }
  }
  if (type === "list") return [text];
  return text;
}

function assign(body, path, value) {
  const last = path.pop();
  let place = body;
  for (const part of path) place = place[part] ??= {};
  place[last] = Array.isArray(value) && Array.isArray(place[last]) ? [...place[last], ...value] : value;
}

/** Show a problem in a form: beside the fields that its pointers name, and otherwise above the form. */
export function showProblem(form, error) {
  clearProblem(form);
  const others = [];
  let first = null;
  for (const { pointer, message } of error.errors || []) {
    const field = findField(form, pointer);
    if (!field) {
      others.push(pointer ? `${pointer}: ${message}` : message);
      continue;
    }
    const note = document.createElement("p");
    note.className = "problem";
    note.id = `e-${field.id || field.name}`;
    note.textContent = message;
    field.setAttribute("aria-invalid", "true");
    field.dataset.describedby ??= field.getAttribute("aria-describedby") || "";
    field.setAttribute("aria-describedby", `${note.id} ${field.dataset.describedby}`.trim());
    (field.closest(".field, fieldset") || field.parentElement).append(note);
    for (let part = field.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    first ??= field;
  }
  if (!first || others.length) {
    const summary = document.createElement("p");
    summary.className = "problem";
    summary.setAttribute("role", "alert");
    summary.tabIndex = -1;
    summary.textContent = others.length ? others.join("; ") : error.message;
    form.prepend(summary);
    first ??= summary;
  }
  first.focus();
}

function findField(form, pointer) {
  // The error of a part belongs to the field of the whole.
  for (let path = (pointer || "").slice(1); path; path = path.slice(0, Math.max(path.lastIndexOf("/"), 0))) {
    const field = [...form.elements].find((element) => element.name === path && !element.matches(":disabled"));
    if (field) return field;
  }
  return null;
}

function clearProblem(form) {
  form.querySelectorAll("p.problem").forEach((note) => note.remove());
  form.querySelectorAll("[aria-invalid]").forEach((field) => {
    field.removeAttribute("aria-invalid");
    if (field.dataset.describedby) field.setAttribute("aria-describedby", field.dataset.describedby);
    else field.removeAttribute("aria-describedby");
  });
}

/** Ask a question in a dialog; return whether the user agrees. */
export function confirmed(question) {
  const dialog = document.createElement("dialog");
  const text = document.createElement("p");
  text.textContent = question;
  const form = document.createElement("form");
  form.method = "dialog";
  form.className = "actions";
  for (const [value, label] of [["", "Cancel"], ["yes", "Continue"]]) {
    const button = document.createElement("button");
    button.value = value;
    button.textContent = label;
    if (value) button.className = "main";
    form.append(button);
  }
  dialog.setAttribute("aria-label", "Confirm");
  dialog.append(text, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

/** Go to the page that follows a request. */
export function goOn(next, response) {
  if (next === undefined) return;
  if (next === "") {
    location.reload();
    return;
  }
  location.assign(next.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(response?.[name] ?? "")));
}

async function send(element, body) {
  const [method, path] = element.dataset.api.split(" ");
  const headers = element.dataset.ifMatch ? { "If-Match": element.dataset.ifMatch } : {};
  const response = await api(method, path, body, headers);
  const event = new CustomEvent("covey:done", { bubbles: true, cancelable: true, detail: { element, response } });
  if (element.dispatchEvent(event)) goOn(element.dataset.next, response);
}

async function busy(button, work) {
  if (button?.getAttribute("aria-busy") === "true") return;
  button?.setAttribute("aria-busy", "true");
  try {
    await work();
  } finally {
    button?.removeAttribute("aria-busy");
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.api) return;
  event.preventDefault();
  busy(event.submitter, async () => {
    try {
      clearProblem(form);
      await send(form, readForm(form));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      showProblem(form, error);
    }
  });
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-api]");
  if (!button) return;
  busy(button, async () => {
    try {
      if (button.dataset.confirm && !(await confirmed(button.dataset.confirm))) return;
      await send(button, button.dataset.body === undefined ? undefined : JSON.parse(button.dataset.body));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      announce(error.message, true);
    }
  });
});

/** Show times in the time zone of the browser. */
export function localize(part = document) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of part.querySelectorAll("time[datetime]")) {
    time.title = time.dateTime;
    time.textContent = format.format(new Date(time.dateTime));
  }
}

localize();
