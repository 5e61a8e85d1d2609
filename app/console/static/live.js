// Keeps a part of a page up to date: <section id="…" data-live="2" data-events="/console/…/events" data-says="…">
//
// With `data-events`, the server says what happens: progress is shown at once, and the page is read again when
// there is progress, at most once in `data-live` seconds, and at once when the job has another event. Without a
// stream, or while it is interrupted, the page is read again after that many seconds. The part of the new page
// replaces the part that is shown. A part without `data-live` is final. If the part before it has `data-reload`, the
// whole page is then loaded again, because more than the part changes. `data-says` is what a screen reader hears.

import { localize, say } from "./console.js";

let part = document.querySelector("[data-live]");
let timer = 0;
let reading = false;
let again = false;
let streaming = false;

/** Read the page again in a while, unless that is planned already. */
function plan() {
  if (part?.dataset.live && !timer) timer = setTimeout(refresh, 1000 * Number(part.dataset.live));
}

async function refresh() {
  clearTimeout(timer);
  timer = 0;
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    if (!document.hidden) await replace();
  } catch {
    // The service may be restarting; the next try tells.
  } finally {
    reading = false;
  }
  if (again) {
    again = false;
    refresh();
  } else if (!streaming) {
    plan();
  }
}

async function replace() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (response.redirected) location.reload(); // the session has ended
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const next = page.getElementById(part.id);
  if (!next) return;
  if (part.hasAttribute("data-reload") && !next.dataset.live) {
    location.reload();
    return;
  }
  localize(next);
  if (next.outerHTML === part.outerHTML) return;
  for (const details of part.querySelectorAll("details[open]")) {
    if (details.id) next.querySelector(`#${CSS.escape(details.id)}`)?.setAttribute("open", "");
  }
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  if (next.dataset.says && next.dataset.says !== part.dataset.says) say(next.dataset.says);
  part.replaceWith(next);
  part = next;
  if (focused) (document.getElementById(focused) ?? document.getElementById("main")).focus();
  if (!part.dataset.live) stop();
}

let stop = () => {};

/** Show the progress of a training in the part that the server has rendered. */
function showProgress({ phase, completed, total, unit, fraction }) {
  const text = part.querySelector("#progress-text");
  const bar = part.querySelector("progress[aria-labelledby]");
  if (text && bar) {
    const of = total === undefined ? "" : ` of ${total.toLocaleString("en")}`;
    const phases = JSON.parse(text.dataset.phases);
    text.textContent = `${phases[`${phase}/${unit}`] ?? phases[phase] ?? phase}: ${completed.toLocaleString("en")}${of} ${unit}`;
    if (fraction !== undefined) bar.value = fraction; // of the whole training
  }
  plan();
}

function listen(path) {
  const source = new EventSource(path);
  stop = () => source.close();
  source.addEventListener("open", () => (streaming = true));
  source.addEventListener("progress", (event) => showProgress(JSON.parse(event.data)));
  for (const type of ["started", "phase", "requeued", "succeeded", "failed", "cancelled"]) {
    source.addEventListener(type, refresh);
  }
  source.addEventListener("error", () => {
    streaming = false;
    if (part.dataset.live) plan();
    else source.close();
  });
}

if (part) {
  if (part.dataset.events) listen(part.dataset.events);
  else plan();
  document.addEventListener("visibilitychange", () => part.dataset.live && refresh());
}
