// The form of a router: its fields, the destinations of labels, and the other settings become one request.

import { Problem, api, goOn, readForm, root, showProblem } from "./console.js";
import { element } from "./message.js";

const form = document.getElementById("settings");

if (form) {
  const model = form.querySelector("select[data-reloads]");
  model?.addEventListener("change", () => location.assign(model.dataset.reloads + encodeURIComponent(model.value)));

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    button?.setAttribute("aria-busy", "true");
    try {
      const { name, ...body } = readBody();
      const target = form.dataset.name || name;
      const headers = form.dataset.etag ? { "If-Match": form.dataset.etag } : {};
      await api("PUT", form.dataset.path + encodeURIComponent(target), body, headers);
      goOn(`${root}/console/routers/${encodeURIComponent(target)}`);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      showProblem(form, error.status === 412 ? await changed() : error);
    } finally {
      button?.removeAttribute("aria-busy");
    }
  });
}

/** Explain that the router has changed, and what differs. What was typed stays in the form. */
async function changed() {
  const offer = document.getElementById("changed");
  const response = await fetch(form.dataset.path + encodeURIComponent(form.dataset.name), { headers: { Accept: "application/json" } });
  if (response.ok) {
    form.dataset.saved = response.headers.get("ETag");
    offer.querySelector("ul").replaceChildren(...differences(await response.json(), readBody()));
  }
  offer.hidden = false;
  return new Problem({ detail: "This router has changed since you opened its settings. Nothing is saved yet." });
}

const SHOWN_ONLY = new Set(["name", "created_at", "updated_at", "warnings"]); // not settings

/** Return an item for each setting that differs: the saved value, and the one of this page. */
function differences(saved, mine) {
  const names = [...new Set([...Object.keys(saved), ...Object.keys(mine)])].filter((name) => !SHOWN_ONLY.has(name));
  const text = (value) => (isEmpty(value) ? "nothing" : typeof value === "string" ? value : JSON.stringify(value));
  return names
    .filter((name) => text(saved[name]) !== text(mine[name]))
    .map((name) => element("li", {}, element("strong", {}, labelOf(name)), `: saved ${text(saved[name])}, yours ${text(mine[name])}`));
}

/** A list or an object without items is the same as no value. */
function isEmpty(value) {
  return value === undefined || value === null || (typeof value === "object" && !Object.keys(value).length);
}

function labelOf(name) {
  const field = form.elements.namedItem(name);
  const words = field?.labels?.[0]?.firstChild?.textContent.trim() || name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

document.getElementById("overwrite")?.addEventListener("click", () => {
  form.dataset.etag = form.dataset.saved;
  form.requestSubmit();
});

function readBody() {
  const body = { ...readRest(), ...readForm(form) };
  for (const reference of ["version", "shadow"]) {
    if (/^\d+$/.test(body[reference] ?? "")) body[reference] = Number(body[reference]);
  }
  const fields = [...form.querySelectorAll("[data-destination]")];
  if (fields.length) {
    body.destinations = Object.fromEntries(
      fields.filter((field) => field.value.trim()).map((field) => [field.dataset.destination, field.value.trim()]),
    );
  }
  return body;
}

function readRest() {
  const text = document.getElementById("f-rest").value.trim();
  try {
    return text ? JSON.parse(text) : {};
  } catch (error) {
    throw new Problem({ detail: `The other settings are not valid JSON: ${error.message}` });
  }
}
