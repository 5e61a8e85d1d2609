// The form of a router: its fields, the destinations of labels, and the other settings become one request.

import { Problem, api, goOn, readForm, root, showProblem } from "./console.js";

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
      showProblem(form, error.status === 412 ? changed() : error);
    } finally {
      button?.removeAttribute("aria-busy");
    }
  });
}

/** Explain that the router has changed. What was typed stays in the form. */
function changed() {
  const offer = document.getElementById("changed");
  offer.hidden = false;
  return new Problem({ detail: "This router has changed since you opened its settings. Nothing is saved yet." });
}

document.getElementById("overwrite")?.addEventListener("click", async () => {
  const response = await fetch(form.dataset.path + encodeURIComponent(form.dataset.name), { headers: { Accept: "application/json" } });
  if (response.ok) form.dataset.etag = response.headers.get("ETag");
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
