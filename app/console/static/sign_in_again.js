// A dialog for a session that has ended. The page stays as it is, so nothing that the user has typed is lost.

const html = document.documentElement;
const dialog = document.createElement("dialog");
let done = null;

const OTHER_TAB = "You have signed out, or signed in again, in another tab of this browser.";

function element(name, text, attributes = {}) {
  const created = Object.assign(document.createElement(name), attributes);
  created.textContent = text;
  return created;
}

/** Read the token of the session that the browser has now. The page of the sign-in has none. */
async function renew() {
  const page = await (await fetch(location.href)).text();
  const { csrf } = new DOMParser().parseFromString(page, "text/html").documentElement.dataset;
  if (!csrf) return false;
  html.dataset.csrf = csrf;
  dialog.close();
  return true;
}

async function renewIfOpen() {
  if (dialog.open && (await renew())) done();
}

/**
 * Say that the session has ended, and why; close when the user has signed in again in another tab.
 * `whenDone` is called then.
 */
export function offerSignIn(problem, whenDone) {
  if (dialog.open) return;
  done = whenDone;
  const reason = problem?.code === "session_ended" ? `${problem.detail[0].toUpperCase()}${problem.detail.slice(1)}.` : OTHER_TAB;
  const title = element("h2", "Your session has ended", { id: "session-ended" });
  const help = element("p", "Sign in again in a new tab, then come back. This page keeps what you have typed.");
  const actions = element("p", "", { className: "actions" });
  const link = element("a", "Sign in", { href: `${html.dataset.root}/console/sign-in?next=${html.dataset.root}/console`, target: "_blank", className: "button main" });
  const go = element("button", "Continue", { type: "button" });
  const close = element("button", "Close", { type: "button", className: "plain" });
  const note = element("p", "", { className: "problem", hidden: true });
  note.setAttribute("role", "alert");
  go.addEventListener("click", async () => {
    if (await renew()) return done();
    note.textContent = "You are not signed in yet.";
    note.hidden = false;
  });
  close.addEventListener("click", () => dialog.close());
  actions.append(link, go, close);
  dialog.replaceChildren(title, element("p", reason), help, note, actions);
  dialog.setAttribute("aria-labelledby", "session-ended");
  document.body.append(dialog);
  dialog.showModal();
}

window.addEventListener("focus", renewIfOpen);
