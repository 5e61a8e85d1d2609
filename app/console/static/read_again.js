// Deletes a failed data set (`data-replaces`) after another one was made from its upload.

import { Problem, api, goOn, root } from "./console.js";

document.addEventListener("covey:done", async (event) => {
  const { element, response } = event.detail;
  if (!element.dataset.replaces) return;
  event.preventDefault();
  try {
    await api("DELETE", `${root}/v1/datasets/${element.dataset.replaces}`);
  } catch (error) {
    if (!(error instanceof Problem)) throw error; // it stays in the list
  }
  goOn(element.dataset.next, response);
});
