// The login form: all that is shown to whoever has not logged in.

import { field, h, text } from "./dom.js";
import { post } from "./api.js";

export function login(root, onLogin) {
  const user = h("input", { name: "user", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const problem = h("p", { class: "problem", role: "alert" });
  const button = h("button", { class: "primary", type: "submit" }, "Log in");
  const form = h("form", {
    class: "card login",
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      text(problem, "");
      const answer = await post("/dashboard/login", { user: user.value, password: password.value });
      button.disabled = false;
      password.value = "";
      if (answer.ok) return onLogin(answer.data);
      text(problem, answer.problem);
      password.focus();
    },
  },
    h("img", { src: "/dashboard/assets/icon.svg", alt: "", width: 48, height: 48 }),
    h("h1", null, "umbel"),
    h("p", { class: "muted" }, "This host has users. Log in to see its cluster."),
    field("User", user), field("Password", password), button, problem,
    h("p", { class: "hint" }, "Users are made with ", h("code", null, "umbel config user add"), "."));
  root.replaceChildren(form);
  user.focus();
}
