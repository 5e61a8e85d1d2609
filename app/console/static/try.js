// Routes a message that was pasted, typed or dropped, and shows the decision with the deciding words.

import { Problem, api } from "./console.js";
import { element, mark, percent, sentence, titleOf } from "./message.js";

const MAX_SHOWN = 10;
const HEADER = /^(From |(Received|Return-Path|Delivered-To|Message-ID|MIME-Version|From|To|Cc|Date|Subject|Reply-To|DKIM-Signature|Content-Type|X-[\w-]+):)/i;

const form = document.getElementById("try");
if (form) start();

function start() {
  const text = document.getElementById("message");
  const subject = document.getElementById("subject");
  const file = document.getElementById("file");
  const drop = document.getElementById("drop");
  const kind = document.getElementById("kind");
  const problems = form.querySelector(".problems");
  let dropped = null;

  const isSource = () => HEADER.test(text.value.trimStart()) && /\n\s*\n/.test(text.value.trimStart());

  function describe() {
    if (dropped) kind.textContent = `The file ${dropped.name} is routed.`;
    else if (isSource()) kind.textContent = "This is read as the source of a message, with its header.";
    else kind.textContent = "";
    subject.disabled = Boolean(dropped) || isSource();
  }

  function choose(chosen) {
    dropped = chosen;
    if (chosen) text.value = "";
    describe();
  }

  text.addEventListener("input", () => {
    dropped = null;
    file.value = "";
    describe();
  });
  file.addEventListener("change", () => choose(file.files[0] || null));
  describe(); // the text may be older than this script: typed before it was loaded, or restored by the browser
  for (const type of ["dragover", "dragenter"]) {
    drop.addEventListener(type, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    drop.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    choose(event.dataTransfer.files[0]);
  });

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problems.replaceChildren();
    if (!dropped && !text.value.trim() && !subject.value.trim()) {
      problems.append(element("p", { class: "problem" }, "Paste a message first."));
      text.focus();
      return;
    }
    const button = form.querySelector("button");
    button.setAttribute("aria-busy", "true");
    try {
      show(await route());
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      const words = dropped ? error.message.replace(/^the body is not a raw message [^:]*: it/, dropped.name) : error.message;
      problems.append(element("p", { class: "problem" }, sentence(words)));
    } finally {
      button.removeAttribute("aria-busy");
    }
  });

  function route() {
    const router = form.dataset.router;
    if (dropped || isSource()) {
      const body = dropped || new Blob([text.value.trimStart().replace(/\r?\n/g, "\r\n")]);
      return api("POST", `${router}/messages?explain=true`, body, { "Content-Type": "message/rfc822" });
    }
    const email = { text: text.value };
    if (subject.value.trim()) email.subject = subject.value.trim();
    return api("POST", `${router}/message-parts?explain=true`, { email });
  }

  function show(decision) {
    const result = document.getElementById("result");
    result.replaceChildren(...parts(decision));
    result.hidden = false;
    result.focus();
    result.scrollIntoView({ block: "nearest" });
  }

  function parts(decision) {
    const place = `${form.dataset.console}/decisions/${decision.decision_id}`;
    const signs = { routed: ["ready", "✓"], review: ["review", "?"], fallback: ["", "→"] };
    const [style, sign] = signs[decision.disposition];
    const shown = [
      element("h2", {}, "Decision ", element("span", { class: `tag ${style}` }, `${sign} ${decision.disposition}`)),
    ];
    if (decision.departments.length) {
      const list = element("ul", { class: "list" });
      for (const item of decision.departments) {
        const probability = item.probability === undefined ? "" : `, probability ${percent(item.probability)}`;
        list.append(element("li", {}, element("strong", {}, item.label), ` to ${item.destination}${probability}`));
      }
      shown.push(list);
    } else {
      shown.push(element("p", {}, `No department: the message goes to ${decision.destinations.join(", ")}.`));
    }
    if (decision.set_probability !== undefined) {
      const what = decision.departments.length ? "exactly these departments are right" : "no department is right";
      shown.push(element("p", {}, `The probability that ${what} is ${percent(decision.set_probability)}.`));
    }
    const sampled = decision.sampled && "The message belongs to the random sample, so it is in the review queue, too.";
    for (const reason of [sampled, decision.review_reason, decision.fallback_reason, decision.not_kept_reason, ...decision.message.defects]) {
      if (reason) shown.push(element("p", { class: "notice" }, sentence(reason)));
    }
    const links = element("p", { class: "actions" }, element("a", { class: "button", href: place }, "Correct this decision"));
    if (decision.disposition === "review" || decision.sampled) {
      links.append(element("a", { class: "button", href: `${form.dataset.console}/review` }, "Review queue"));
    }
    shown.push(links, ...explained(decision), ...ranking(decision));
    return shown;
  }

  function explained(decision) {
    const texts = Object.entries(decision.texts || {});
    if (!decision.explanation) {
      return [element("p", { class: "quiet" }, "There are no deciding words: no department was found, the learner cannot explain its scores, or the message was routed before without them.")];
    }
    const shown = [element("h3", {}, "Deciding words")];
    for (const [field, content] of texts) {
      const target = element("p", { class: "text", "data-field": field });
      mark(target, field, content, decision.explanation);
      shown.push(element("h4", {}, titleOf(field)), target);
    }
    const words = element("dl", { class: "words" });
    for (const { label, terms } of decision.explanation) {
      const list = terms.slice(0, MAX_SHOWN).map((term) => `${(term.words || [term.term]).join("/")} ${signed(term.weight)}`);
      words.append(element("dt", {}, label), element("dd", {}, list.join(", ")));
    }
    shown.push(words, element("p", { class: "quiet" }, "A positive number counts for the label, a negative one against it."));
    return shown;
  }

  function ranking(decision) {
    if (!decision.ranking.length) return [];
    const rows = decision.ranking.slice(0, MAX_SHOWN).map((item) =>
      element("tr", {}, element("th", { scope: "row" }, item.label), element("td", {}, item.score.toFixed(3)),
        element("td", {}, item.probability === undefined ? "–" : percent(item.probability))));
    const head = element("tr", {}, ...["Label", "Score", "Probability"].map((name) => element("th", { scope: "col" }, name)));
    return [
      element("h3", {}, "Ranking"),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Ranking" },
        element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))),
    ];
  }
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${value.toFixed(2)}`;
}
