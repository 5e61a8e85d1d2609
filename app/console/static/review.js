// Corrects a decision by mouse, by touch, or with the keyboard alone.

import { Problem, announce, api, goOn } from "./console.js";
import { element } from "./message.js";

const form = document.getElementById("correction");
if (form) start();

function start() {
  const problems = form.querySelector(".problems");
  const other = document.getElementById("other-label");
  const boxes = () => [...form.querySelectorAll("input[name=labels]")];
  const chosen = () => boxes().filter((box) => box.checked).map((box) => box.value);
  const { reservation, taken } = form.dataset;
  if (reservation) {
    reserve();
    setInterval(reserve, 240_000); // a reservation lasts for ten minutes
  }

  /** Keep the message for this person; if another one has it, go to the next message or say so. */
  async function reserve() {
    try {
      await api("PUT", reservation);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (error.status !== 409) return; // without a reservation, two people may see the message
      if (taken) location.replace(taken);
      else problems.replaceChildren(element("p", { class: "notice" }, `${error.message}.`));
    }
  }

  document.getElementById("skip")?.addEventListener("click", () => {
    if (reservation) api("DELETE", reservation, undefined, {}, { keepalive: true }).catch(() => {});
  });

  async function save(labels) {
    if (form.getAttribute("aria-busy") === "true") return;
    form.setAttribute("aria-busy", "true");
    problems.replaceChildren();
    try {
      await api("POST", form.dataset.decision, { labels });
      goOn(form.dataset.next);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      form.removeAttribute("aria-busy");
      problems.append(element("p", { class: "problem" }, error.message));
    }
  }

  /** Add the label that was typed as a chosen one; return whether there was one. */
  function addOther() {
    const label = other.value.trim();
    if (!label) return false;
    const known = boxes().find((box) => box.value === label);
    if (known) {
      known.checked = true;
    } else {
      const box = element("input", { type: "checkbox", name: "labels", value: label });
      box.checked = true;
      other.parentElement.before(element("label", { class: "choice" }, box, ` ${label}`));
    }
    other.value = "";
    announce(`${label} is chosen.`);
    return true;
  }

  function saveChosen() {
    addOther();
    const labels = chosen();
    if (labels.length) save(labels);
    else {
      problems.replaceChildren(
        element("p", { class: "problem" }, "Choose a department first, or say that no department is right (0)."),
      );
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const action = event.submitter?.value;
    if (action === "agree") save(JSON.parse(form.dataset.suggested));
    else if (action === "none") save([]);
    else saveChosen();
  });
  other.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    addOther();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const typing = event.target.matches("textarea, select, input:not([type=checkbox])");
    if (typing || document.querySelector("dialog[open]")) return;
    const key = event.key.toLowerCase();
    const actions = {
      a: () => form.querySelector("button[value=agree]")?.click(),
      0: () => form.querySelector("button[value=none]").click(),
      l: () => other.focus(),
      s: () => document.getElementById("skip")?.click(),
      arrowdown: () => move(1),
      arrowup: () => move(-1),
    };
    if (/^[1-9]$/.test(key)) {
      const box = boxes()[Number(key) - 1];
      if (!box) return;
      box.checked = !box.checked;
      announce(`${box.value} is ${box.checked ? "chosen" : "not chosen"}.`);
    } else if (key === "enter") {
      // A focused button or link keeps its own meaning.
      if (event.target.closest("button, a, summary")) return;
      saveChosen();
    } else if (actions[key]) {
      actions[key]();
    } else {
      return;
    }
    event.preventDefault();
  });

  function move(step) {
    const all = boxes();
    const at = all.indexOf(document.activeElement);
    all[at < 0 ? (step > 0 ? 0 : all.length - 1) : (at + step + all.length) % all.length]?.focus();
  }
}
