// Shows the secret of a new key, which the service returns only once.

document.addEventListener("covey:done", (event) => {
  const { element, response } = event.detail;
  if (element.dataset.shows !== "secret") return;
  event.preventDefault();
  document.getElementById("secret").textContent = response.secret;
  const notice = document.getElementById("new-secret");
  notice.hidden = false;
  notice.scrollIntoView({ block: "nearest" });
});
