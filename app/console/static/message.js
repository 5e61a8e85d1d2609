// Shows the texts of a message with the deciding words of an explanation.

const PLACES = new Map([["subject", "Subject"], ["text", "Text"], ["new_text", "Text"], ["quoted_text", "Quoted text"], ["attachment_names", "Attachments"]]);

/** The title of a text of a message. */
export function titleOf(field) {
  return PLACES.get(field) || field.replaceAll("_", " ");
}

/** A message of the service as a sentence. */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}

/** A fraction in percent. Only 0 and 1 are shown as 0 % and 100 %. */
export function percent(value) {
  const shown = value === 0 || value === 1 ? String(100 * value) : (100 * value).toFixed(1);
  return `${{ "0.0": "< 0.1", "100.0": "> 99.9" }[shown] ?? shown} %`;
}

/** Create an element with attributes and children. */
export function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

/**
 * Replace the content of an element by a text in which deciding words are marked. Words that count for a label are
 * underlined once, words that count against it have a dotted line; the title of a mark names labels and weights.
 */
export function mark(target, field, text, explanation) {
  const characters = Array.from(text); // places count code points
  const about = new Map();
  for (const { label, terms } of explanation) {
    for (const term of terms) {
      for (const place of term.occurrences || []) {
        if (place.field !== field || place.end > characters.length) continue;
        for (let i = place.start; i < place.end; i++) {
          if (!about.has(i)) about.set(i, new Map());
          about.get(i).set(`${label} ${term.weight > 0 ? "+" : ""}${term.weight.toFixed(2)}`, term.weight);
        }
      }
    }
  }
  target.replaceChildren();
  const keyOf = (i) => (about.has(i) ? [...about.get(i).keys()].join(", ") : "");
  for (let start = 0; start < characters.length; ) {
    const key = keyOf(start);
    let end = start + 1;
    while (end < characters.length && keyOf(end) === key) end++;
    const part = characters.slice(start, end).join("");
    if (key) {
      const weights = [...about.get(start).values()];
      target.append(element("mark", { class: Math.max(...weights) > 0 ? "for" : "against", title: key }, part));
    } else {
      target.append(part);
    }
    start = end;
  }
}

for (const message of document.querySelectorAll(".message[data-texts]")) {
  const texts = JSON.parse(message.dataset.texts);
  const explanation = JSON.parse(message.dataset.explanation);
  for (const target of message.querySelectorAll("[data-field]")) {
    mark(target, target.dataset.field, texts[target.dataset.field], explanation);
  }
}
