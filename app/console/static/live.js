// Keeps a part of a page up to date: <section id="…" data-live="2" data-events="/v1/…/events" data-says="…">
//
// The page is read again after that many seconds, and at once when the job has an event. The part of the new page
// replaces the part that is shown. A part without `data-live` is final. If the part before it has `data-reload`, the
// whole page is then loaded again, because more than the part changes. `data-says` is what a screen reader hears.

import { announce, localize } from "./console.js";

let part = document.querySelector("[data-live]");
let timer = 0;
let reading = false;
let again = false;

function schedule() {
  clearTimeout(timer);
  if (part?.dataset.live) timer = setTimeout(refresh, 1000 * Number(part.dataset.live));
}

async function refresh() {
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
  } else {
    schedule();
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
  if (next.dataset.says && next.dataset.says !== part.dataset.says) announce(next.dataset.says);
  part.replaceWith(next);
  part = next;
  if (focused) (document.getElementById(focused) ?? document.getElementById("main")).focus();
  if (!part.dataset.live) stop();
}

let stop = () => {};

if (part) {
  if (part.dataset.events) {
    const source = new EventSource(part.dataset.events);
    stop = () => source.close();
    for (const type of ["started", "phase", "requeued", "succeeded", "failed", "cancelled"]) {
      source.addEventListener(type, refresh);
    }
    source.addEventListener("error", () => {
      if (!part.dataset.live) source.close();
    });
  }
  document.addEventListener("visibilitychange", () => part.dataset.live && refresh());
  schedule();
}
