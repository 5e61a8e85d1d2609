// Forms that are made from a JSON Schema: shows the fields of the chosen variants.

function showVariant(select) {
  const key = select.selectedOptions[0]?.dataset.variant;
  for (const part of select.closest(".union").querySelectorAll(":scope > fieldset[data-variant]")) {
    part.hidden = part.disabled = part.dataset.variant !== key; // disabled fields are not sent
  }
}

document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-variants]")) showVariant(event.target);
});

// A browser keeps the choices of a page that the user comes back to.
window.addEventListener("pageshow", () => document.querySelectorAll("select[data-variants]").forEach(showVariant));

// The browser can only point to an invalid field that is visible.
document.addEventListener(
  "invalid",
  (event) => {
    for (let part = event.target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  },
  true,
);
